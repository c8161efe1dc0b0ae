"""Filters made of other filters, and the shelf with one example of each filter of the library."""
import math
from collections.abc import Sequence
from functools import reduce
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.checks import check_count
from fourierqk.contract import check_map
from fourierqk.filters import (
    GRID,
    AllPass,
    CausalFilter,
    CausalGaussian,
    CausalMexicanHat,
    CircularFilter,
    FeatureMap,
    Filter,
    Gaussian,
    MexicanHat,
    Morlet,
    MorletCorrelation,
    RandomBands,
    Tone,
)  # fmt: skip
from fourierqk.parts import check_heads, check_signal, circular, compute_dtype, grid, is_single, precise, tokens
from fourierqk.streaming import Stream

__all__ = ["Analytic", "Bank", "Causal", "Padded", "PhaseRandomised", "Residual", "SlidingDFT", "Sum", "Unit", "shelf"]


class Causal(CausalFilter):
    """Lags 0 .. taps - 1 of another filter's impulse response.

    It is *not* the same band with the future cut off: peak and skirt move, and DC passes. Its own `response` shows
    what really runs; compare it inside `Unit`.
    """

    def __init__(self, inner: Filter, taps: int = 128) -> None:
        super().__init__()
        check_map(inner, Filter)
        self.inner, self.taps = inner, check_count(taps, "taps", most=GRID)

    def kernel(self) -> Tensor:
        return self.inner.impulse(GRID)[..., : self.taps]

    def settings(self) -> dict[str, object]:
        return {"taps": self.taps}


class SlidingDFT(CausalFilter):
    """At each token: the DFT of the trailing window, weighted by a filter, read at the window's last token.

    This is the causal reading of the paper's frequency collapse (S9): one weighted value a position. It equals a
    causal convolution with the circular kernel of `window` samples, wrapped lags included.
    """

    def __init__(self, inner: Filter, window: int = 128) -> None:
        super().__init__()
        check_map(inner, Filter)
        self.inner, self.window = inner, check_count(window, "window")

    def kernel(self) -> Tensor:
        return self.inner.impulse(self.window)

    def settings(self) -> dict[str, object]:
        return {"window": self.window}


class Padded(FeatureMap):
    """A filter on the text and as many zeros behind it, which are cut off again: nothing wraps round.

    What a two-sided filter hears of later tokens by look-ahead stays; what it hears across the ends of the window goes.
    On the line instead of the ring, so it has no `response` of its own length; `inner` has.
    """

    def __init__(self, inner: Filter) -> None:
        super().__init__()
        check_map(inner, Filter)
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        return self.inner(F.pad(precise(x), (0, 0, 0, n)))[..., :n, :].to(x.dtype)


class Unit(Filter):
    """Another filter scaled, head by head, to an impulse response of L2 norm `gain`.

    With gain 1 it leaves the variance of white noise as it was. The norm is taken over a fixed grid, so the gain
    never depends on the length of the text; that of a `Tone`, which is a bin of the running text, over that text.
    Raises ValueError where the response is zero.
    """

    def __init__(self, inner: Filter, gain: float = 1.0) -> None:
        super().__init__()
        check_map(inner, Filter)
        if not 0 < gain < math.inf:
            raise ValueError(f"gain {gain} must be a finite number above 0")
        self.inner, self.gain, self.fades = inner, float(gain), inner.fades
        if not (self._energy(GRID) > 0).all():
            raise ValueError(f"{inner} passes nothing on a grid of {GRID} tokens: a zero response has no gain")

    def _energy(self, n: int) -> Tensor:
        h = self.inner.impulse(self.inner.span(n))
        energy = (h * h.conj()).real.sum(-1)  # (heads | 1,), K in front; abs's gradient is NaN where h underflows
        return energy.reshape(-1, energy.shape[-1]).sum(0)

    def _scale(self, n: int) -> Tensor:
        return self.gain * self._energy(n).clamp_min(1e-30).rsqrt()  # (heads | 1,); training may silence a filter

    def response(self, f: Tensor) -> Tensor:
        return self._scale(tokens(f))[:, None] * self.inner.response(f)

    def impulse(self, n: int) -> Tensor:
        return self._scale(check_count(n, "n"))[:, None] * self.inner.impulse(n)

    def span(self, n: int) -> int:
        return self.inner.span(n)

    def amplified(self, x: Tensor, gain: Tensor | float) -> Tensor:
        check_signal(x)
        return self.inner.amplified(x, gain * self._scale(x.shape[-2])[:, None])

    def forward(self, x: Tensor) -> Tensor:
        return self.amplified(x, 1.0)

    def stream(self) -> Stream:
        gain, inner = self._scale(GRID)[:, None, None], self.inner.stream()
        return lambda x: (gain * inner(precise(x))).to(x.dtype)

    def settings(self) -> dict[str, object]:
        return {"gain": self.gain}


class Bank(Filter):
    """Filters side by side: features are concatenated, so that scores add; divided by K in score (S4).

    The features carry 1 / sqrt(K), which makes the score the mean of the K scores, without cross terms.
    """

    filters: Sequence[Filter]

    def __init__(self, *filters: Filter) -> None:
        super().__init__()
        _check_heads(filters, "bank")
        self.filters = cast(Sequence[Filter], nn.ModuleList(filters))
        self.fades = all(h.fades for h in filters)

    def _stack(self, parts: list[Tensor]) -> Tensor:
        heads = max(p.shape[-2] for p in parts)
        flat = [p.reshape(-1, *p.shape[-2:]).expand(-1, heads, -1) for p in parts]
        return torch.cat(flat) / math.sqrt(len(self.filters))

    def response(self, f: Tensor) -> Tensor:
        return self._stack([h.response(f) for h in self.filters])

    def impulse(self, n: int) -> Tensor:
        return self._stack([h.impulse(n) for h in self.filters])

    def span(self, n: int) -> int:
        return _span(self.filters, n)

    def amplified(self, x: Tensor, gain: Tensor | float) -> Tensor:
        z = precise(x)
        if all(isinstance(h, CircularFilter) for h in self.filters):  # one forward transform serves the whole bank
            return circular(z, gain * self.response(grid(x.shape[-2], z)), self.fades).to(x.dtype)
        gain = gain / math.sqrt(len(self.filters))
        return torch.cat([h.amplified(z, gain) for h in self.filters], -1).to(x.dtype)  # (B, heads, T, sum of d')

    def forward(self, x: Tensor) -> Tensor:
        return self.amplified(x, 1.0)

    def stream(self) -> Stream:
        each, gain = [h.stream() for h in self.filters], 1 / math.sqrt(len(self.filters))
        return lambda x: (gain * torch.cat([h(precise(x)) for h in each], -1)).to(x.dtype)


class Sum(Filter):
    """Filters added up to one: their responses add, and the score has a cross term for each pair of them.

    The filters must be real and single; put others side by side in a `Bank`.
    """

    filters: Sequence[Filter]

    def __init__(self, *filters: Filter) -> None:
        super().__init__()
        _check_heads(filters, "sum")
        if not all(is_single(h.impulse(2)) for h in filters):
            raise ValueError(
                "what is added must be real and keep d, so neither a complex filter nor a bank: "
                "use Bank(AllPass(), inner), or another bank, instead"
            )
        self.filters = cast(Sequence[Filter], nn.ModuleList(filters))
        self.fades = all(h.fades for h in filters)

    def response(self, f: Tensor) -> Tensor:
        return reduce(torch.add, (h.response(f) for h in self.filters))

    def impulse(self, n: int) -> Tensor:
        return reduce(torch.add, (h.impulse(n) for h in self.filters))

    def span(self, n: int) -> int:
        return _span(self.filters, n)

    def forward(self, x: Tensor) -> Tensor:
        z = precise(x)
        if all(isinstance(h, CircularFilter) for h in self.filters):
            return circular(z, self.response(grid(x.shape[-2], z)), self.fades).to(x.dtype)
        return reduce(torch.add, (h(z) for h in self.filters)).to(x.dtype)

    def stream(self) -> Stream:
        each = [h.stream() for h in self.filters]
        return lambda x: reduce(torch.add, (h(precise(x)) for h in each)).to(x.dtype)


class Residual(Sum):
    """The identity path plus another filter, x + inner(x): the exact token is kept beside what is filtered.

    inner must be real and single; with a complex filter or a bank use ``Bank(AllPass(), inner)``.
    """

    def __init__(self, inner: Filter) -> None:
        super().__init__(AllPass(), inner)


class Analytic(Filter):
    """Another filter's output and its Hilbert transform side by side: the band as a (cos, sin) pair.

    Positive frequencies double and negative ones vanish, as in scipy.signal.hilbert. Two-sided whatever `inner` is.
    """

    def __init__(self, inner: Filter) -> None:
        super().__init__()
        check_map(inner, Filter)
        self.inner, self.fades = inner, inner.fades

    def response(self, f: Tensor) -> Tensor:
        one_sided = 1 + torch.sign(f) * (f.abs() < 0.5)  # DC and Nyquist are their own mirror images
        return one_sided * self.inner.response(f)

    def impulse(self, n: int) -> Tensor:
        f = torch.fft.fftfreq(check_count(n, "n"), dtype=compute_dtype(self._like.dtype), device=self._like.device)
        return torch.fft.ifft(self.response(f))

    def span(self, n: int) -> int:
        return self.inner.span(n)

    def forward(self, x: Tensor) -> Tensor:
        z = precise(x)
        h = self.inner.response(grid(x.shape[-2], z))
        check_heads(h, x)
        pair = torch.stack([h, -1j * h], -3)  # (2, heads | 1, F), K in front for a bank; a quarter turn: cos to sin
        return circular(z, pair.flatten(0, -3), self.fades).to(x.dtype)  # (B, heads, T, 2 K d)


class PhaseRandomised(Filter):
    """Another filter's amplitude response with random phases, one a head and frequency (S10).

    Queries, keys and all their channels turn by the same angles, uniform in [0, 2 pi); DC and Nyquist, which must be
    real, stay. Every amplitude is kept, and so is the gain. Two-sided whatever `inner` is.

    In training every forward draws new angles from torch's global generator; what is filtered `together`, as queries
    and keys are, shares them. `response`, `impulse` and evaluation use one fixed draw of `seed`: an angle for each of
    the 513 frequencies of a DFT of 1024 tokens, of which any other frequency takes the nearest.
    """

    angles: Tensor  # (heads, GRID // 2 + 1)

    def __init__(self, inner: Filter, heads: int = 1, seed: int = 0) -> None:
        super().__init__()
        check_map(inner, Filter)
        self.inner, self.heads, self.seed = inner, check_count(heads, "heads"), seed
        self.fades = inner.fades
        rng = torch.Generator().manual_seed(seed)
        turns = torch.rand(self.heads, GRID // 2 + 1, generator=rng, dtype=torch.float64)
        self.register_buffer("angles", (2 * math.pi * turns).to(torch.get_default_dtype()), persistent=False)

    def response(self, f: Tensor) -> Tensor:
        nearest = (f.abs() * GRID).round().long()
        return self._rotated(f, self.angles.to(compute_dtype(self.angles.dtype))[:, nearest] * f.sign())

    def _rotated(self, f: Tensor, angles: Tensor) -> Tensor:
        """The response at frequencies f (F,) with phases `angles`, (heads, F), but DC and Nyquist as they are."""
        amplitude = self.inner.response(f.abs()).abs()
        angles = torch.where((f == 0) | (f.abs() == 0.5), 0, angles)
        return amplitude * torch.polar(torch.ones_like(angles), angles)

    def impulse(self, n: int) -> Tensor:
        return torch.fft.irfft(self.response(grid(check_count(n, "n"), self._like)), n=n)

    def span(self, n: int) -> int:
        return self.inner.span(n)

    def _draw(self, f: Tensor) -> Tensor:
        """An angle for each head and each of the frequencies f (F,) -> (heads, F), in [0, 2 pi)."""
        return 2 * math.pi * torch.rand(self.heads, len(f), dtype=f.dtype, device=f.device)

    def forward(self, x: Tensor) -> Tensor:
        z = precise(x)
        f = grid(x.shape[-2], z)
        h = self._rotated(f, self._draw(f)) if self.training else self.response(f)
        return circular(z, h, self.fades).to(x.dtype)

    def settings(self) -> dict[str, object]:
        return {"heads": self.heads, "seed": self.seed}


def _check_heads(filters: tuple[Filter, ...], what: str) -> None:
    if not filters:
        raise ValueError(f"a {what} needs at least one filter")
    for h in filters:
        check_map(h, Filter)
    heads = [h.impulse(1).shape[-2] for h in filters]
    if len(set(heads) - {1}) > 1:
        raise ValueError(f"the filters of a {what} have {heads} heads: give all the same number, or 1")


def _span(filters: Sequence[Filter], n: int) -> int:
    """That of a tone, which is the running text, if there is one among them."""
    return n if any(h.span(n) != GRID for h in filters) else GRID


def shelf() -> dict[str, Filter]:
    """One ready example of every filter, to evaluate: what the contract tests check and the galleries draw."""

    def band() -> Filter:
        return Gaussian(4 / 128, 2 / 128)

    examples = [
        AllPass(), Tone(), band(), MexicanHat(), RandomBands(), CausalGaussian(), CausalMexicanHat(), Morlet(),
        MorletCorrelation(), Causal(band()), SlidingDFT(band()), Unit(band()), Bank(band(), MexicanHat()),
        Sum(band(), MexicanHat()), Analytic(band()), Residual(band()), PhaseRandomised(band()),
    ]  # fmt: skip
    return {type(f).__name__: f.eval() for f in examples}
