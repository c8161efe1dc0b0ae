"""Filters along time: what a query or a key may hear.

A filter is a feature map along time, (batch, heads, time, d) -> (batch, heads, time, d'), with three faces:

- ``response(f)``: what each frequency is multiplied by, f in cycles per token;
- ``impulse(n)``: what one token turns into, lag 0 first (of a circular filter, lag n - 1 is lag -1: the future);
- ``forward(x)``: the filtered signal.

A real filter keeps d. A complex one concatenates its real and imaginary parts, a ``Bank`` concatenates its
filters, so that every attention score in this library is the plain product ``filter(q) . filter(k)``.

There are two kinds. A ``CircularFilter`` multiplies the DFT of the whole window: its kernel reaches both ways and
wraps round the ends, so it hears the future. A ``CausalFilter`` is a left-padded convolution: silence precedes the
first token, any length T >= 1 will do, and the future is out of reach.
"""
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.parts import (
    bins,
    check_count,
    check_frequency,
    check_heads,
    check_signal,
    check_width,
    convolve,
    grid,
    per_head,
    period,
    precise,
    precision,
)  # fmt: skip

__all__ = [
    "AllPass", "Analytic", "Bank", "Causal", "CausalFilter", "CircularFilter", "Filter", "Gaussian", "MexicanHat",
    "Morlet", "RandomBands", "Residual", "SlidingDFT", "Tone", "Unit", "bins", "period", "shelf",
]  # fmt: skip

GRID = 1024  # samples on which Causal cuts and Unit weighs an impulse response: one grid, so no gain depends on T


class Filter(nn.Module):
    """A linear, time-invariant feature map along time (abstract)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_like", torch.empty(0), persistent=False)  # where the filter lives, and its precision

    def response(self, f: Tensor) -> Tensor:
        """The factor at each frequency.

        f: (F,) in cycles per token, of either sign -> (heads | 1, F), real or complex; a `Bank` of K filters puts
        its K axis in front.
        """
        raise NotImplementedError

    def impulse(self, n: int) -> Tensor:
        """The reply to a single 1 at time 0, over `n` tokens, lag 0 first -> (heads | 1, n), K in front for a bank."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """(batch, heads, time, d) -> (batch, heads, time, d')."""
        raise NotImplementedError


class CircularFilter(Filter):
    """A real filter that multiplies the DFT of the whole window by `response` (abstract).

    Its kernel is two-sided and wraps round: at any position it hears the whole window, the future included.
    """

    def impulse(self, n: int) -> Tensor:
        return torch.fft.irfft(self.response(grid(check_count(n, "n"), self._like)), n=n)

    def forward(self, x: Tensor) -> Tensor:
        z, n = precise(x), x.shape[-2]
        h = self.response(grid(n, z))
        check_heads(h, x)
        h = h.reshape(-1, 1, *h.shape[-2:], 1)  # (K, 1, heads, F, 1)
        y = torch.fft.irfft(torch.fft.rfft(z, dim=-2) * h, n=n, dim=-2)  # (K, B, heads, T, d)
        return torch.cat(y.unbind(0), -1).to(x.dtype)


class CausalFilter(Filter):
    """A convolution with a one-sided kernel (abstract): position t hears t, t - 1, ..., t - taps + 1."""

    def kernel(self) -> Tensor:
        """The taps, lag 0 first -> (heads | 1, taps), real or complex; K in front for a bank."""
        raise NotImplementedError

    def response(self, f: Tensor) -> Tensor:
        k = self.kernel()
        lag = torch.arange(k.shape[-1], device=f.device, dtype=torch.promote_types(k.real.dtype, f.dtype))
        wave = torch.exp(-2j * math.pi * lag[:, None] * f)  # (taps, F)
        return k.to(wave.dtype) @ wave

    def impulse(self, n: int) -> Tensor:
        k = self.kernel()[..., : check_count(n, "n")]
        return F.pad(k, (0, n - k.shape[-1]))

    def forward(self, x: Tensor) -> Tensor:
        z, k = precise(x), self.kernel()
        check_heads(k, x)
        k = torch.stack([k.real, k.imag], -3) if k.is_complex() else k  # two kernels
        k = k.reshape(-1, *k.shape[-2:]).to(z.dtype)
        with torch.autocast(x.device.type, enabled=False):  # as precise as an FFT, which autocast leaves alone
            return torch.cat([convolve(z, h) for h in k], -1).to(x.dtype)


class _Centre(nn.Module):
    """One centre frequency a head, in cycles per token; learned as a logit, so that it never leaves (0, 1/2)."""

    def __init__(self, freq: Tensor, learn: bool) -> None:
        super().__init__()
        self.start = tuple(freq.flatten().tolist())  # tells two runs apart, long after training has moved the logit
        self.logit = nn.Parameter(torch.logit(2 * check_frequency(freq)), requires_grad=learn)

    def forward(self) -> Tensor:
        logit = self.logit.to(precision(self.logit.dtype))
        return torch.sigmoid(logit.clamp(-15, 15)) / 2  # (heads, 1); a larger logit would round to 0 or 1/2


class AllPass(Filter):
    """The filter that changes nothing: plain dot-product attention (S1)."""

    def response(self, f: Tensor) -> Tensor:
        return torch.ones_like(f)[None]

    def impulse(self, n: int) -> Tensor:
        return F.pad(self._like.new_ones(1, 1), (0, check_count(n, "n") - 1))

    def forward(self, x: Tensor) -> Tensor:
        check_signal(x)
        return x


class Tone(CircularFilter):
    """One bin of the running DFT, the nearest to `freq`; 0 is DC, 1/2 is Nyquist (at odd n, the highest bin)."""

    def __init__(self, freq: float = 1 / 64) -> None:
        super().__init__()
        if not 0 <= freq <= 0.5:
            raise ValueError(f"a tone of {freq} cycles per token lies outside [0, 1/2]: 1/2 is Nyquist")
        self.freq = float(freq)

    def response(self, f: Tensor) -> Tensor:
        f = f.abs()
        return (f == f[(f - self.freq).abs().argmin()]).to(f.dtype)[None]


class Gaussian(CircularFilter):
    """A smooth band, exp(-(f - freq)^2 / 2 width^2), one centre a head: the paper's selector (S3).

    freq, width: cycles per token; with learn=True every head tunes its own centre.
    """

    def __init__(
        self, freq: float | Sequence[float] = 4 / 256, width: float = 2 / 256, heads: int = 1, learn: bool = False
    ) -> None:
        super().__init__()
        self.centre = _Centre(per_head(freq, heads), learn)
        self.width = check_width(width)

    def response(self, f: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((f.abs() - self.centre()) / self.width) ** 2)


class MexicanHat(CircularFilter):
    """The Ricker wavelet: (f / freq)^2 exp(1 - (f / freq)^2), which peaks with 1 at `freq` and stops DC.

    In time it is (1 - t^2/a^2) exp(-t^2 / 2a^2) with a = 1 / (sqrt(2) pi freq).
    """

    def __init__(self, freq: float | Sequence[float] = 4 / 256, heads: int = 1, learn: bool = False) -> None:
        super().__init__()
        self.centre = _Centre(per_head(freq, heads), learn)

    def response(self, f: Tensor) -> Tensor:
        u = (f / self.centre()) ** 2
        return u * torch.exp(1 - u)


class RandomBands(CircularFilter):
    """Gaussian bands drawn once, never learned (S2, Random-QK): does any spectral mixing help?

    Per head a centre c uniform in [1/128, 0.26] cycles per token and a width of 0.15 c + 1/128.
    """

    def __init__(self, heads: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed
        u = torch.rand(check_count(heads, "heads"), 1, generator=torch.Generator().manual_seed(seed))
        centre = 1 / 128 + u * (0.26 - 1 / 128)
        self.register_buffer("centre", centre)
        self.register_buffer("width", 0.15 * centre + 1 / 128)

    def response(self, f: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((f.abs() - self.centre) / self.width) ** 2)

    def extra_repr(self) -> str:
        return f"seed={self.seed}"


class Morlet(CausalFilter):
    """The causal half of a Morlet wavelet (S7): exp(-t^2 / 2a^2) exp(i omega0 t / a) for t = 0 .. taps - 1.

    scale: a, in tokens, one or one a head; the centre frequency is omega0 / (2 pi a) cycles per token. Half a
    wavelet is not admissible: it passes DC. With learn=True every head tunes its scale.
    """

    def __init__(
        self, scale: float | Sequence[float] = 8.0, omega0: float = 6.0, taps: int = 128, learn: bool = False
    ) -> None:
        super().__init__()
        scale = per_head(scale, 1)
        if not (scale > omega0 / math.pi).all() or not omega0 > 0:
            raise ValueError(
                f"scale {scale.flatten().tolist()} with omega0 = {omega0} puts the centre, omega0 / (2 pi scale), "
                "outside (0, 1/2) cycles per token: take omega0 > 0 and a scale above omega0 / pi"
            )
        self.omega0, self.taps = float(omega0), check_count(taps, "taps")
        self.centre = _Centre(omega0 / (2 * math.pi * scale), learn)

    def kernel(self) -> Tensor:
        t = torch.arange(self.taps, device=self._like.device, dtype=precision(self._like.dtype))
        phase = 2 * math.pi * self.centre() * t  # (heads, taps), radians: omega0 t / a
        return torch.polar(torch.exp(-0.5 * (phase / self.omega0) ** 2), phase)


class Causal(CausalFilter):
    """Lags 0 .. taps - 1 of another filter's impulse response.

    It is *not* the same band with the future cut off: peak and skirt move, and DC passes. Its own `response` shows
    what really runs; compare it inside `Unit`.
    """

    def __init__(self, inner: Filter, taps: int = 128) -> None:
        super().__init__()
        self.inner, self.taps = inner, check_count(taps, "taps", most=GRID)

    def kernel(self) -> Tensor:
        return self.inner.impulse(GRID)[..., : self.taps]


class SlidingDFT(CausalFilter):
    """At each token: the DFT of the trailing window, weighted by a filter, read at the window's last token.

    This is the causal reading of the paper's frequency collapse (S9): one weighted value a position. It equals a
    causal convolution with the circular kernel of `window` samples, wrapped lags included.
    """

    def __init__(self, inner: Filter, window: int = 128) -> None:
        super().__init__()
        self.inner, self.window = inner, check_count(window, "window")

    def kernel(self) -> Tensor:
        return self.inner.impulse(self.window)


class Unit(Filter):
    """Another filter scaled, head by head, to an impulse response of L2 norm `gain`.

    With gain 1 it leaves the variance of white noise as it was. The norm is taken over a fixed grid, so the gain
    never depends on the length of the text. Raises ValueError where the response is zero.
    """

    def __init__(self, inner: Filter, gain: float = 1.0) -> None:
        super().__init__()
        if not 0 < gain < math.inf:
            raise ValueError(f"gain {gain} must be a finite number above 0")
        self.inner, self.gain = inner, float(gain)
        if not (self._energy() > 0).all():
            raise ValueError(f"{inner} answers nothing on a grid of {GRID} tokens: a zero response has no gain")

    def _energy(self) -> Tensor:
        h = self.inner.impulse(GRID)
        return h.abs().square().sum(-1).reshape(-1, h.shape[-2]).sum(0)  # over time and, in a bank, over its filters

    def _scale(self) -> Tensor:
        return self.gain * self._energy().clamp_min(1e-30).rsqrt()  # (heads | 1,); training may silence a filter

    def response(self, f: Tensor) -> Tensor:
        return self._scale()[:, None] * self.inner.response(f)

    def impulse(self, n: int) -> Tensor:
        return self._scale()[:, None] * self.inner.impulse(n)

    def forward(self, x: Tensor) -> Tensor:
        return (self._scale()[:, None, None] * self.inner(precise(x))).to(x.dtype)


class Bank(Filter):
    """Filters side by side: features are concatenated, so that scores add; divided by K in score (S4).

    The features carry 1 / sqrt(K), which makes the score the mean of the K scores, without cross terms.
    """

    def __init__(self, *filters: Filter) -> None:
        super().__init__()
        if not filters:
            raise ValueError("a bank needs at least one filter")
        heads = [h.impulse(1).shape[-2] for h in filters]
        if len(set(heads) - {1}) > 1:
            raise ValueError(f"the filters of a bank have {heads} heads: give all the same number, or 1")
        self.filters = nn.ModuleList(filters)

    def _stack(self, parts: list[Tensor]) -> Tensor:
        heads = max(p.shape[-2] for p in parts)
        flat = [p.reshape(-1, *p.shape[-2:]).expand(-1, heads, -1) for p in parts]
        return torch.cat(flat) / math.sqrt(len(self.filters))

    def response(self, f: Tensor) -> Tensor:
        return self._stack([h.response(f) for h in self.filters])

    def impulse(self, n: int) -> Tensor:
        return self._stack([h.impulse(n) for h in self.filters])

    def forward(self, x: Tensor) -> Tensor:
        if all(isinstance(h, CircularFilter) for h in self.filters):
            return CircularFilter.forward(self, x)  # one forward transform serves the whole bank
        z = precise(x)
        return (torch.cat([h(z) for h in self.filters], -1) / math.sqrt(len(self.filters))).to(x.dtype)


class Analytic(Filter):
    """Another filter's output and its Hilbert transform side by side: the band as a (cos, sin) pair.

    Positive frequencies double and negative ones vanish, as in scipy.signal.hilbert. Two-sided whatever `inner` is.
    """

    def __init__(self, inner: Filter) -> None:
        super().__init__()
        self.inner = inner

    def response(self, f: Tensor) -> Tensor:
        one_sided = 1 + torch.sign(f) * (f.abs() < 0.5)  # DC and Nyquist are their own mirror images
        return one_sided * self.inner.response(f)

    def impulse(self, n: int) -> Tensor:
        f = torch.fft.fftfreq(check_count(n, "n"), dtype=precision(self._like.dtype), device=self._like.device)
        return torch.fft.ifft(self.response(f))

    def forward(self, x: Tensor) -> Tensor:
        z, n = precise(x), x.shape[-2]
        h = self.response(torch.fft.fftfreq(n, dtype=z.dtype, device=z.device))
        check_heads(h, x)
        h = h.reshape(-1, 1, *h.shape[-2:], 1)
        y = torch.fft.ifft(torch.fft.fft(z, dim=-2) * h, dim=-2)
        return torch.cat([part for band in y.unbind(0) for part in (band.real, band.imag)], -1).to(x.dtype)


class Residual(Filter):
    """The identity path plus another filter, x + inner(x): the exact token is kept beside what is filtered.

    inner must be real and single; with a complex filter or a bank use ``Bank(AllPass(), inner)``.
    """

    def __init__(self, inner: Filter) -> None:
        super().__init__()
        h = inner.impulse(2)
        if h.is_complex() or h.dim() > 2:
            raise ValueError("Residual adds, so its filter must be real and keep d: use Bank(AllPass(), inner) instead")
        self.inner = inner

    def response(self, f: Tensor) -> Tensor:
        return 1 + self.inner.response(f)

    def impulse(self, n: int) -> Tensor:
        h = self.inner.impulse(n)
        return h + F.pad(h.new_ones(1, 1), (0, n - 1))

    def forward(self, x: Tensor) -> Tensor:
        z = precise(x)
        return (z + self.inner(z)).to(x.dtype)


def shelf() -> dict[str, Filter]:
    """One ready example of every filter: what the contract tests check and the galleries draw."""

    def band() -> Filter:
        return Gaussian(4 / 128, 2 / 128)

    examples = [
        AllPass(), Tone(), band(), MexicanHat(), RandomBands(), Morlet(), Causal(band()), SlidingDFT(band()),
        Unit(band()), Bank(band(), MexicanHat()), Analytic(band()), Residual(band()),
    ]  # fmt: skip
    return {type(f).__name__: f for f in examples}
