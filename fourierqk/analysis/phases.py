"""Looking into a model: how much phases matter, what a filter passes, how far it hears, what it learned.

Frequencies in cycles per token, periods and lags in tokens.
"""
import copy
import itertools
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from fourierqk.filters import Filter
from fourierqk.model import Attention
from fourierqk.parts import check_count, precise

__all__ = [
    "AmplitudeOnly", "ConstantShift", "IndependentPhase", "SharedPhase", "Surrogate", "coverage", "future_share",
    "learned_periods", "reach", "surrogates",
]  # fmt: skip


# Phase surrogates


class Place(NamedTuple):
    """Where in a model a surrogate is drawn: every place draws its own angles, and the same ones each time."""

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

    def spectrum(self, z: Tensor, n: int, place: Place) -> Tensor:
        """Turn the one-sided spectrum z, (batch, heads, n // 2 + 1, d) and complex, of a signal of n tokens."""
        raise NotImplementedError

    def __call__(self, x: Tensor, place: Place = Place()) -> Tensor:  # noqa: B008 (a tuple cannot change)
        z, n = precise(x), x.shape[-2]
        z = self.spectrum(torch.fft.rfft(z, dim=-2), n, place)
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
        _check_seed(self.seed)

    def spectrum(self, z: Tensor, n: int, place: Place) -> Tensor:
        return _turn(z, n, _angles(z, self.seed, place._replace(role=0)))


@dataclass(frozen=True)
class IndependentPhase(Surrogate):
    """Random phases, one draw for the queries and another for the keys: their phase relation goes too.

    Else as `SharedPhase`: the channels of the queries keep their relations, and so do those of the keys.
    """

    seed: int = 0

    def __post_init__(self) -> None:
        _check_seed(self.seed)

    def spectrum(self, z: Tensor, n: int, place: Place) -> Tensor:
        return _turn(z, n, _angles(z, self.seed, place))


@dataclass(frozen=True)
class AmplitudeOnly(Surrogate):
    """Every phase zero, DC and Nyquist included: |z| is all that is left, and it is real. Nothing is drawn.

    All waves of a window now peak at its first token, so the surrogate is even about it: x[t] = x[-t].
    """

    def spectrum(self, z: Tensor, n: int, place: Place) -> Tensor:
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

    def spectrum(self, z: Tensor, n: int, place: Place) -> Tensor:
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
    open_, layers = [True], _attentions(model)
    with ExitStack() as stack:
        stack.callback(open_.clear)  # copies keep their hooks, which now do nothing
        for i, layer in enumerate(layers):
            for handle in _hook(layer, i, kind, open_):
                stack.enter_context(handle)
        yield model


def _hook(layer: Attention, index: int, kind: Surrogate, open_: list) -> Iterator[RemovableHandle]:
    """Replace what the filter answers, twice per call of its attention: first the queries, then the keys."""
    steps, roles = itertools.count(1), iter(())

    def begin(module: nn.Module, args: tuple) -> None:
        nonlocal roles
        step = next(steps) if module.training else 0
        roles = iter([Place(index, role, step) for role in (0, 1)] if open_ else [])

    def replace(module: nn.Module, args: tuple, output: Tensor) -> Tensor:
        place = next(roles, None)  # None: whoever calls the filter, it is not attention
        return output if place is None else kind(output, place)

    yield layer.register_forward_pre_hook(begin)
    yield layer.filter.register_forward_hook(replace)


def _angles(z: Tensor, seed: int, place: Place) -> Tensor:
    """Uniform in [0, 2 pi), on every device and in every precision the same -> (batch | 1, heads, F, 1)."""
    b, heads, bins, _ = z.shape
    angles = np.random.default_rng([seed, *place]).uniform(0, 2 * np.pi, (b if place.step else 1, heads, bins, 1))
    return torch.from_numpy(angles).to(z.real.dtype).to(z.device)


def _turn(z: Tensor, n: int, angles: Tensor) -> Tensor:
    """Turn each bin by its angle, but DC and, where n is even, Nyquist: a real signal needs these two real."""
    k = torch.arange(z.shape[-2], device=z.device)
    angles = torch.where(((k > 0) & (2 * k < n))[:, None], angles, 0)
    return z * torch.polar(torch.ones_like(angles), angles)


def _attentions(model: nn.Module) -> list[Attention]:
    found = [m for m in model.modules() if isinstance(m, Attention)] if isinstance(model, nn.Module) else []
    if not found:
        raise ValueError(f"{type(model).__name__} holds no fourierqk Attention, so it has no filtered queries and keys")
    return found


def _check_seed(seed: int) -> None:
    if not isinstance(seed, Integral) or seed < 0:
        raise ValueError(f"seed = {seed} must be a whole number, at least 0")


# What a filter passes, and how far it hears


@torch.no_grad()
def coverage(filter: Filter, n: int) -> Tensor:
    """The effective number of bins a filter passes in a window of n tokens -> (heads | 1,), float64.

    The participation ratio (sum p)^2 / sum p^2 of the energies p = |response|^2 over the n // 2 + 1 bins of a real
    DFT: equal energy in m bins counts as m (Hill's number of order 2, Hill 1973). One-sided: a bin and its mirror
    image are one bin, to which a complex filter brings the mean of the two energies. A bank adds its filters' energies.
    So AllPass has n // 2 + 1, a Tone 1, a Gaussian well inside the band sqrt(2 pi) widths. No gain matters.
    Raises ValueError where nothing passes.
    """
    filter = _held(filter)
    f = torch.arange(check_count(n, "n") // 2 + 1, dtype=torch.float64) / n
    p = (filter.response(f).abs().double() ** 2 + filter.response(-f).abs().double() ** 2) / 2
    p = p.reshape(-1, *p.shape[-2:]).sum(0)  # over the filters of a bank
    _check_energy(filter, n, p)
    return p.sum(-1) ** 2 / (p**2).sum(-1)


@torch.no_grad()
def reach(filter: Filter, n: int, share: float = 0.99) -> tuple[Tensor, Tensor]:
    """How far a filter hears in a window of n tokens: (past, future), in tokens, (heads | 1,) each.

    Lags -future .. past hold at least `share` of the kernel's energy, that of all features together; what is left out
    is taken from both sides in proportion to their energies. So a symmetric kernel has past = future, and a causal
    one future = 0. Circular filters have lags -n/2 .. n/2, causal ones 0 .. n - 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"share = {share} must lie inside (0, 1)")
    energy = _lags(filter, n)
    ahead, behind = energy[:, : n - 1].flip(-1), energy[:, n:]  # each from lag 1 outwards
    total = energy.sum(-1, keepdim=True)
    sides = (ahead + behind).sum(-1, keepdim=True).clamp_min(torch.finfo(energy.dtype).tiny)
    given_up = (1 - share) * total / sides

    def least(side: Tensor) -> Tensor:
        beyond = side.flip(-1).cumsum(-1).flip(-1)  # entry r: the energy of lags above r
        return (beyond > given_up * side.sum(-1, keepdim=True) + 1e-12 * total).sum(-1)

    return least(behind), least(ahead)


def future_share(filter: Filter, n: int) -> Tensor:
    """The share of a filter's kernel energy at negative lags, in a window of n tokens -> (heads | 1,), float64.

    0 for a causal filter. Do not rank leaks by it: the trained weights behind may amplify a share of one in a million
    until the model lives on it, and every symmetric kernel has about one half (all but lag 0), however much or
    little is made of it. Whether a model leaks is for `audit` to say, how much it gains for `honest_loss`.
    """
    energy = _lags(filter, n)
    return energy[:, : n - 1].sum(-1) / energy.sum(-1)


@torch.no_grad()
def _lags(filter: Filter, n: int) -> Tensor:
    """A filter's kernel energy over n tokens, at lags -(n - 1) .. n - 1 -> (heads | 1, 2n - 1), float64.

    Asked of `forward`, since an impulse response does not say whether its last lags are far past or near future:
    a delta at the first token, in the middle and at the last token.
    """
    filter, n = _held(filter), check_count(n, "n")
    half, heads = n // 2, filter.impulse(1).shape[-2]
    x = torch.zeros(3, heads, n, 1, dtype=torch.float64)
    x[0, :, 0] = x[1, :, half] = x[2, :, -1] = 1
    first, middle, last = filter(x).double().square()  # (heads, n, features) each
    causal = last[:, :-1].sum(1, keepdim=True) == 0  # (heads, 1, features): nobody hears the last token early
    around = (middle * ~causal).sum(-1)  # lags -half .. n - 1 - half
    if n % 2 == 0:  # on a ring, n/2 tokens back is n/2 tokens ahead: half to either side
        edge = around[:, :1] / 2
        around = torch.cat([edge, around[:, 1:], edge], -1)
    energy = torch.zeros(heads, 2 * n - 1, dtype=torch.float64)
    energy[:, n - 1 :] = (first * causal).sum(-1)
    energy[:, n - 1 - half : n + half] += around
    _check_energy(filter, n, energy)
    return energy


def _held(filter: Filter) -> Filter:
    """A copy on the CPU, where float64 exists, that draws nothing."""
    if not isinstance(filter, Filter):
        raise ValueError(f"expected a Filter along time, got {type(filter).__name__}: take the filter of one attention")
    return copy.deepcopy(filter).cpu().eval()


def _check_energy(filter: Filter, n: int, energy: Tensor) -> None:
    if not (energy.sum(-1) > 0).all():
        raise ValueError(f"{type(filter).__name__} answers nothing in a window of {n} tokens: take more tokens")


# What a model learned


@torch.no_grad()
def learned_periods(model: nn.Module) -> list[Tensor]:
    """The periods that a model's filters have tuned to, in tokens per cycle: (bands, heads) for every layer.

    1 / the centre frequency of each band with learn=True, in the order of the bank. Of the band that is tuned: where
    `Causal` cuts it, the peak of what runs lies elsewhere (its `response` shows where).
    Raises ValueError for a model that learns no frequency.
    """
    layers = []
    for layer in _attentions(model):
        along_time = layer.filter.modules() if isinstance(layer.filter, Filter) else ()
        centres = (m.centre for m in along_time if isinstance(getattr(m, "centre", None), nn.Module))
        learned = [c for c in centres if any(p.requires_grad for p in c.parameters())]
        rows = [(1 / centre()).flatten().expand(layer.cfg.n_head).cpu() for centre in learned]
        layers.append(torch.stack(rows) if rows else torch.empty(0, layer.cfg.n_head))
    if not any(len(rows) for rows in layers):
        raise ValueError("no filter of this model learns a frequency: build it from bands with learn=True")
    return layers
