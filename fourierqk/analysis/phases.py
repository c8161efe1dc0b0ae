"""Phase surrogates: a signal whose amplitudes stay and whose phases change, alone or inside a model."""
import itertools
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from fourierqk.checks import check_count
from fourierqk.model import Attention, attentions
from fourierqk.parts import precise

__all__ = [
    "AmplitudeOnly", "ConstantShift", "IndependentPhase", "SharedPhase", "Stream", "Surrogate", "surrogates",
]  # fmt: skip


class Stream(NamedTuple):
    """Which stream of random numbers the angles come from: each is independent of all others, and repeats itself."""

    layer: int = 0
    role: int = 0  # 0: queries, 1: keys
    step: int = 0  # n: the n-th training step, in which every window draws its own; 0: evaluation, one draw for all


@dataclass(frozen=True)
class Surrogate:
    """A change of a signal's phases along time that keeps every amplitude (abstract).

    Called on a real signal (batch, heads, time, d) it returns a surrogate of it, real and of the same amplitude
    spectrum: |DFT| along time, per window, head and channel. Computed in at least float32. The DFT is that of the
    whole window, so a surrogate is circular and every token of it mixes the whole window, the future included.
    """

    def spectrum(self, z: Tensor, n: int, stream: Stream) -> Tensor:
        """Turn the one-sided spectrum z, (batch, heads, n // 2 + 1, d) and complex, of a signal of n tokens."""
        raise NotImplementedError

    def __call__(self, x: Tensor, stream: Stream = Stream()) -> Tensor:  # noqa: B008 (a tuple cannot change)
        z, n = precise(x), x.shape[-2]
        z = self.spectrum(torch.fft.rfft(z, dim=-2), n, stream)
        return torch.fft.irfft(z, n=n, dim=-2).to(x.dtype)


@dataclass(frozen=True)
class SharedPhase(Surrogate):
    """Random phases, the same for queries, keys and all channels: between them, every phase relation stays.

    Each frequency of each head turns by an angle uniform in [0, 2 pi) (Theiler et al. 1992; one draw for all channels
    as in Prichard and Theiler 1994). What is lost is where in the window anything happens. DC and Nyquist, which
    must be real, stay as they are.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.seed, "seed", least=0)

    def spectrum(self, z: Tensor, n: int, stream: Stream) -> Tensor:
        return _turn(z, n, _angles(z, self.seed, stream._replace(role=0)))


@dataclass(frozen=True)
class IndependentPhase(Surrogate):
    """Random phases, one draw for the queries and another for the keys: their phase relation goes too.

    Else as `SharedPhase`: the channels of the queries keep their relations, and so do those of the keys.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.seed, "seed", least=0)

    def spectrum(self, z: Tensor, n: int, stream: Stream) -> Tensor:
        return _turn(z, n, _angles(z, self.seed, stream))


@dataclass(frozen=True)
class AmplitudeOnly(Surrogate):
    """Every phase zero, DC and Nyquist included: |z| is all that is left, and it is real. Nothing is drawn.

    All waves of a window now peak at its first token, so the surrogate is even about it: x[t] = x[-t].
    """

    def spectrum(self, z: Tensor, n: int, stream: Stream) -> Tensor:
        return z.abs() + 0j


@dataclass(frozen=True)
class ConstantShift(Surrogate):
    """Every frequency turned by the same angle, in radians: a fractional Hilbert transform. DC and Nyquist stay.

    This is no delay. A circular shift by s tokens turns frequency f by -2 pi f s, a line through 0 that moves the
    whole window as it is; a constant angle moves each wave by the same part of its own period, and so changes
    the shape. A quarter turn, pi / 2, makes every sine a cosine; pi changes the sign of all but DC and Nyquist; on
    an `Analytic` pair without DC and Nyquist the turn cancels between query and key, and the scores stay.
    Angle 0 is the control of the machinery: the same transforms, and the signal comes back.
    """

    angle: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.angle):
            raise ValueError(f"angle {self.angle} must be a finite number of radians")

    def spectrum(self, z: Tensor, n: int, stream: Stream) -> Tensor:
        return _turn(z, n, z.real.new_full((z.shape[-2], 1), self.angle))


@contextmanager
def surrogates(model: nn.Module, kind: Surrogate) -> Iterator[nn.Module]:
    """Inside ``with surrogates(model, SharedPhase(seed=0)):`` attention compares surrogates of what it compared.

    In every `Attention` of the model the filtered queries and keys (of base-dot, the plain ones) are replaced by
    their surrogates along time; values stay. At evaluation the model remains a function: the angles depend on seed,
    layer and head alone and serve all windows, so repeat with several seeds. In training, as with dropout, every step
    draws anew, for each window its own. Contexts nest: the inner one turns what the outer one has turned. Copies made
    inside belong to the context as well. Afterwards the model is as before, also where the body raises.

    Beware: a surrogate mixes the whole window, so inside the context *the future gets in even to a causal model*, and
    a loss over all positions confounds two effects, lost phases and future heard. What tells them apart:
    `honest_loss` inside the context, at the last position, which has no future to hear; and ``ConstantShift(0.0)``,
    the same transforms without a turn, which must change nothing beyond rounding.

    Raises ValueError for a model without our `Attention`.
    """
    if not isinstance(kind, Surrogate):
        raise ValueError(f"expected a surrogate such as SharedPhase(seed=0), got {kind!r}")
    layers = attentions(model) if isinstance(model, nn.Module) else []
    if not layers:
        raise ValueError(f"{type(model).__name__} holds no fourierqk Attention, so it has no filtered queries and keys")
    context = SimpleNamespace(active=True)
    try:
        with ExitStack() as stack:
            for i, layer in enumerate(layers):
                for handle in _hook(layer, i, kind, context):
                    stack.enter_context(handle)
            yield model
    finally:
        context.active = False  # copies keep their hooks, which now do nothing


def _hook(layer: Attention, index: int, kind: Surrogate, context: SimpleNamespace) -> Iterator[RemovableHandle]:
    """Replace what the filter answers in a call of its attention, of the queries first and then of the keys.

    It may be asked for both at once, one below the other along the batch.
    """
    steps = itertools.count(1)
    streams: Iterator[Stream] = iter(())
    rows = 1

    def begin(module: nn.Module, args: tuple) -> None:
        nonlocal streams, rows
        step, rows = next(steps) if module.training else 0, len(args[0])
        streams = iter([Stream(index, role, step) for role in (0, 1)] if context.active else [])

    def replace(module: nn.Module, args: tuple, output: Tensor) -> Tensor:
        answers = [(y, next(streams, None)) for y in output.split(rows)]
        if all(stream is None for _, stream in answers):  # whoever calls the filter, it is not attention
            return output
        return torch.cat([y if stream is None else kind(y, stream) for y, stream in answers])

    yield layer.register_forward_pre_hook(begin)
    yield layer.filter.register_forward_hook(replace)


def _angles(z: Tensor, seed: int, stream: Stream) -> Tensor:
    """Uniform in [0, 2 pi), on every device and in every precision the same -> (batch | 1, heads, F, 1)."""
    b, heads, bins, _ = z.shape
    angles = np.random.default_rng([seed, *stream]).uniform(0, 2 * np.pi, (b if stream.step else 1, heads, bins, 1))
    return torch.from_numpy(angles).to(z.real.dtype).to(z.device)


def _turn(z: Tensor, n: int, angles: Tensor) -> Tensor:
    """Turn each bin by its angle, but DC and, where n is even, Nyquist: a real signal needs these two real."""
    k = torch.arange(z.shape[-2], device=z.device)
    angles = torch.where(((k > 0) & (2 * k < n))[:, None], angles, 0)
    return z * torch.polar(torch.ones_like(angles), angles)
