"""Looking into a model: phase surrogates, what its filters pass and hear, what they learned."""
from fourierqk.analysis.kernels import coverage, future_share, reach
from fourierqk.analysis.learned import learned_periods
from fourierqk.analysis.phases import (
    AmplitudeOnly,
    ConstantShift,
    IndependentPhase,
    SharedPhase,
    Stream,
    Surrogate,
    surrogates,
)  # fmt: skip

__all__ = [
    "AmplitudeOnly", "ConstantShift", "IndependentPhase", "SharedPhase", "Stream", "Surrogate", "coverage",
    "future_share", "learned_periods", "reach", "surrogates",
]  # fmt: skip
