"""Looking into a model: phase surrogates, what its filters pass and hear, what they learned."""
from fourierqk.analysis.phases import (
    AmplitudeOnly,
    ConstantShift,
    IndependentPhase,
    Place,
    SharedPhase,
    Surrogate,
    coverage,
    future_share,
    learned_periods,
    reach,
    surrogates,
)  # fmt: skip

__all__ = [
    "AmplitudeOnly", "ConstantShift", "IndependentPhase", "Place", "SharedPhase", "Surrogate", "coverage",
    "future_share", "learned_periods", "reach", "surrogates",
]  # fmt: skip
