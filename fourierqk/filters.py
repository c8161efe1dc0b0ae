"""Filters along time: what a query or a key may hear. Filters made of other filters are in combinators.py.

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
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.checks import check_count, check_keywords
from fourierqk.parts import (
    bins,
    check_frequency,
    check_heads,
    check_rows,
    check_signal,
    check_width,
    circular,
    compute_dtype,
    convolve,
    grid,
    per_head,
    period,
    precise,
    shown,
)  # fmt: skip
from fourierqk.streaming import Stream, Streaming, convolution

__all__ = [
    "AllPass", "CausalFilter", "CausalGaussian", "CausalMexicanHat", "CircularFilter", "FeatureMap", "Filter",
    "Gaussian", "MexicanHat", "Morlet", "MorletCorrelation", "RandomBands", "Tone", "bins", "period",
]  # fmt: skip

GRID = 1024  # samples on which Causal cuts and Unit weighs an impulse response: one grid, so no gain depends on T


class _Begun(type):
    """The type of feature maps: it says in our words what torch and Python leave unsaid when one is made."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        check_keywords(cls, kwargs)
        begin = f"{cls.__name__}.__init__ must begin with super().__init__()"
        try:
            made = super().__call__(*args, **kwargs)
        except AttributeError as e:
            if "Module.__init__()" not in str(e):  # torch's complaint about a parameter, buffer or module before it
                raise
            raise ValueError(begin) from e
        if "_modules" not in vars(made) or isinstance(made, Filter) and "_like" not in made._buffers:
            raise ValueError(begin)
        return made

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of `__init__`, for whoever asks: the one above would hide it."""
        _, *parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature(parameters)


class FeatureMap(Streaming, metaclass=_Begun):
    """What queries and keys pass through before they are compared (abstract)."""

    def forward(self, x: Tensor) -> Tensor:
        """(batch, heads, time, d) -> (batch, heads, time, d')."""
        raise _lacks(self, "forward(x)")

    def together(self, *signals: Tensor) -> tuple[Tensor, ...]:
        """The features of signals of one layer, queries and keys say: what is drawn at random is drawn once for all."""
        return self(torch.cat(signals)).split([len(x) for x in signals])

    def streams(self, n: int) -> Callable[..., tuple[Tensor, ...]]:
        """`together` for n signals that arrive piece by piece."""
        own = self.stream()
        return lambda *signals: own(torch.cat(signals)).chunk(n)

    def settings(self) -> dict[str, object]:
        """What it was made with, for its `repr`: numbers, one or one a head, and flags; without the maps it holds."""
        return {}

    def __repr__(self) -> str:
        """One line: `Unit(Gaussian(freq=0.0625, width=0.0156, learned), gain=1)`."""
        return _line(type(self), _listed(self._held()), self.settings())

    def _held(self) -> list["FeatureMap"]:
        """The maps that it is made of."""
        children = [n for m in self.children() for n in (m if isinstance(m, nn.ModuleList) else [m])]
        return [m for m in children if isinstance(m, FeatureMap)]


class Filter(FeatureMap):
    """A linear, time-invariant feature map along time (abstract).

    fades: whether all that is learned moves the response in proportion to it, as a bell's centre does. Frequencies that
    hardly pass then need not be computed, since nothing is learned there.
    """

    fades = False
    _like: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("_like", torch.empty(0), persistent=False)  # where the filter lives, and its precision

    def response(self, f: Tensor) -> Tensor:
        """The factor at each frequency.

        f: (F,) in cycles per token, of either sign -> (heads | 1, F), real or complex; a `Bank` of K filters puts
        its K axis in front.
        """
        raise _lacks(self, "response(f)")

    def impulse(self, n: int) -> Tensor:
        """The reply to a single 1 at time 0, over `n` tokens, lag 0 first -> (heads | 1, n), K in front for a bank."""
        raise _lacks(self, "impulse(n)")

    def amplified(self, x: Tensor, gain: Tensor | float) -> Tensor:
        """The filtered signal times a gain, a number or (heads | 1, 1); in the response or the taps it costs less."""
        return (self(precise(x)) * (gain if isinstance(gain, float) else gain[..., None])).to(x.dtype)

    def span(self, n: int) -> int:
        """Over how many tokens `Unit` weighs the impulse response, in a text of n: a fixed grid, whatever n is."""
        return GRID


class CircularFilter(Filter):
    """A real filter that multiplies the DFT of the whole window by `response` (abstract).

    Its kernel is two-sided and wraps round: at any position it hears the whole window, the future included.
    """

    def impulse(self, n: int) -> Tensor:
        return torch.fft.irfft(self.response(grid(check_count(n, "n"), self._like)), n=n)

    def amplified(self, x: Tensor, gain: Tensor | float) -> Tensor:
        z = precise(x)
        return circular(z, gain * self.response(grid(x.shape[-2], z)), self.fades).to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.amplified(x, 1.0)


class CausalFilter(Filter):
    """A convolution with a one-sided kernel (abstract): position t hears t, t - 1, ..., t - taps + 1."""

    def kernel(self) -> Tensor:
        """The taps, lag 0 first -> (heads | 1, taps), real or complex; K in front for a bank."""
        raise _lacks(self, "kernel()")

    def response(self, f: Tensor) -> Tensor:
        k = self.kernel()
        lag = torch.arange(k.shape[-1], device=f.device, dtype=torch.promote_types(k.real.dtype, f.dtype))
        wave = torch.exp(-2j * math.pi * lag[:, None] * f)  # (taps, F)
        return k.to(wave.dtype) @ wave

    def impulse(self, n: int) -> Tensor:
        k = self.kernel()[..., : check_count(n, "n")]
        return F.pad(k, (0, n - k.shape[-1]))

    def amplified(self, x: Tensor, gain: Tensor | float) -> Tensor:
        z, k = precise(x), self._kernels()
        check_heads(k, x)
        k = gain * k.to(z.dtype)
        with torch.autocast(x.device.type, enabled=False):  # as precise as an FFT, which autocast leaves alone
            return convolve(z, k).to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.amplified(x, 1.0)

    def stream(self) -> Stream:
        return convolution(self._kernels())

    def _kernels(self) -> Tensor:
        """The real kernels that it consists of -> (K, heads | 1, taps); a complex one is two."""
        k = self.kernel()
        check_rows(k)
        k = torch.stack([k.real, k.imag], -3) if k.is_complex() else k
        return k.reshape(-1, *k.shape[-2:])


def _lacks(own: FeatureMap, method: str) -> NotImplementedError:
    """The complaint about a class that leaves a method to its abstract parent."""
    names = [name for name in vars(type(own)) if not name.startswith("_")]
    defines = f"it defines {', '.join(names)}: is one of them misspelt?" if names else "it defines nothing of its own"
    return NotImplementedError(f"{type(own).__name__} needs a method {method}; {defines}")


class Centre(nn.Module):
    """One centre frequency a head, in cycles per token; learned as a logit, so that it never leaves (0, 1/2)."""

    def __init__(self, freq: Tensor, learn: bool) -> None:
        super().__init__()
        self.start = tuple(freq.flatten().tolist())  # tells two runs apart, long after training has moved the logit
        self.logit = nn.Parameter(torch.logit(2 * check_frequency(freq)), requires_grad=learn)

    def forward(self) -> Tensor:
        logit = self.logit.to(compute_dtype(self.logit.dtype))
        return torch.sigmoid(logit.clamp(-15, 15)) / 2  # (heads, 1); a larger logit would round to 0 or 1/2

    @property
    def learned(self) -> bool:
        return self.logit.requires_grad


def learned_centres(module: nn.Module) -> dict[str, Centre]:
    """The centre frequencies that a filter or a whole model learns, by their names in it."""
    return {name: m for name, m in module.named_modules() if isinstance(m, Centre) and m.learned}


class AllPass(Filter):
    """The filter that changes nothing: plain dot-product attention (S1)."""

    def response(self, f: Tensor) -> Tensor:
        return torch.ones_like(f)[None]

    def impulse(self, n: int) -> Tensor:
        return F.pad(self._like.new_ones(1, 1), (0, check_count(n, "n") - 1))

    def forward(self, x: Tensor) -> Tensor:
        check_signal(x)
        return x

    def together(self, *signals: Tensor) -> tuple[Tensor, ...]:
        return tuple(self(x) for x in signals)  # each as it is, not a copy

    def stream(self) -> Stream:
        return self

    def streams(self, n: int) -> Callable[..., tuple[Tensor, ...]]:
        return self.together


class Tone(CircularFilter):
    """One bin of the running DFT, the nearest to `freq`; 0 is DC, 1/2 is Nyquist (at odd n, the highest bin)."""

    fades = True

    def __init__(self, freq: float = 1 / 64) -> None:
        super().__init__()
        if not 0 <= freq <= 0.5:
            raise ValueError(f"a tone of {freq} cycles per token lies outside [0, 1/2]: 1/2 is Nyquist")
        self.freq = float(freq)

    def response(self, f: Tensor) -> Tensor:
        f = f.abs()
        nearest = f[(f - self.freq).abs().argmin()]
        return (f == nearest).to(f.dtype)[None]

    def settings(self) -> dict[str, object]:
        return {"freq": self.freq}

    def span(self, n: int) -> int:
        return n  # one bin holds 1 / n of the energy of white noise, two mirror images 2 / n


class Gaussian(CircularFilter):
    """A smooth band, exp(-(f - freq)^2 / 2 width^2), one centre a head: the paper's selector (S3).

    freq, width: cycles per token; with learn=True every head tunes its own centre.
    """

    fades = True

    def __init__(
        self, freq: float | Sequence[float] = 4 / 256, width: float = 2 / 256, heads: int = 1, learn: bool = False
    ) -> None:
        super().__init__()
        self.centre = Centre(per_head(freq, heads), learn)
        self.width = check_width(width)

    def response(self, f: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((f.abs() - self.centre()) / self.width) ** 2)

    def settings(self) -> dict[str, object]:
        return {"freq": self.centre(), "width": self.width, "learned": self.centre.learned}


class MexicanHat(CircularFilter):
    """The Ricker wavelet: (f / freq)^2 exp(1 - (f / freq)^2), which peaks with 1 at `freq` and stops DC.

    In time it is (1 - t^2/a^2) exp(-t^2 / 2a^2) with a = 1 / (sqrt(2) pi freq).
    """

    fades = True

    def __init__(self, freq: float | Sequence[float] = 4 / 256, heads: int = 1, learn: bool = False) -> None:
        super().__init__()
        self.centre = Centre(per_head(freq, heads), learn)

    def response(self, f: Tensor) -> Tensor:
        u = (f / self.centre()) ** 2
        return u * torch.exp(1 - u)

    def settings(self) -> dict[str, object]:
        return {"freq": self.centre(), "learned": self.centre.learned}


class RandomBands(CircularFilter):
    """Gaussian bands drawn once, never learned (S2, Random-QK): does any spectral mixing help?

    Per head a centre c uniform in [1/128, 0.26] cycles per token and a width of 0.15 c + 1/128.
    """

    fades = True
    centre: Tensor  # (heads, 1)
    width: Tensor

    def __init__(self, heads: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed
        draw = torch.Generator().manual_seed(seed)
        u = torch.rand(check_count(heads, "heads"), 1, generator=draw, dtype=torch.float32)
        centre = 1 / 128 + u.to(torch.get_default_dtype()) * (0.26 - 1 / 128)
        self.register_buffer("centre", centre)
        self.register_buffer("width", 0.15 * centre + 1 / 128)

    def response(self, f: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((f.abs() - self.centre) / self.width) ** 2)

    def settings(self) -> dict[str, object]:
        return {"freq": self.centre, "width": self.width, "seed": self.seed}


class _Half(CausalFilter):
    """The causal half, t = 0 .. taps - 1, of a shape centred on lag 0 and stretched by a scale (abstract)."""

    _a: Tensor

    def __init__(self, scale: float | Sequence[float] = 8.0, taps: int = 128) -> None:
        super().__init__()
        a = per_head(scale, 1)
        if not ((a > 0) & (a < math.inf)).all():
            raise ValueError(f"scale {a.flatten().tolist()} must be a number of tokens above 0")
        self.scale, self.taps = tuple(a.flatten().tolist()), check_count(taps, "taps")
        self.register_buffer("_a", a)

    def kernel(self) -> Tensor:
        t = torch.arange(self.taps, device=self._like.device, dtype=compute_dtype(self._like.dtype))
        return self._shape(t / self._a)

    def _shape(self, u: Tensor) -> Tensor:
        raise NotImplementedError

    def settings(self) -> dict[str, object]:
        return {"scale": self.scale, "taps": self.taps}


class CausalGaussian(_Half):
    """One half of a bell (S5): exp(-t^2 / 2a^2) for t = 0 .. taps - 1, a fading memory.

    scale: a, in tokens, one or one a head. A low pass: DC passes best.
    """

    def _shape(self, u: Tensor) -> Tensor:
        return torch.exp(-0.5 * u**2)


class CausalMexicanHat(_Half):
    """One half of a Ricker wavelet (S6): (1 - t^2 / a^2) exp(-t^2 / 2a^2) for t = 0 .. taps - 1.

    scale: a, in tokens, one or one a head. The whole hat stops DC; its half passes it, so it is not admissible.
    """

    def _shape(self, u: Tensor) -> Tensor:
        return (1 - u**2) * torch.exp(-0.5 * u**2)


class Morlet(CausalFilter):
    """The causal half of a Morlet wavelet (S7): exp(-t^2 / 2a^2) exp(i omega0 t / a) for t = 0 .. taps - 1.

    scale: a, in tokens, one or one a head; the centre frequency is omega0 / (2 pi a) cycles per token. Half a
    wavelet is not admissible: it passes DC. With learn=True every head tunes its scale.
    """

    def __init__(
        self, scale: float | Sequence[float] = 8.0, omega0: float = 6.0, taps: int = 128, learn: bool = False
    ) -> None:
        super().__init__()
        self.omega0, self.taps = float(omega0), check_count(taps, "taps")
        self.centre = Centre(_centre_frequency(scale, omega0), learn)

    def kernel(self) -> Tensor:
        t = torch.arange(self.taps, device=self._like.device, dtype=compute_dtype(self._like.dtype))
        phase = 2 * math.pi * self.centre() * t  # (heads, taps), radians: omega0 t / a
        bell = torch.exp(-0.5 * (phase / self.omega0) ** 2)
        return torch.complex(bell * phase.cos(), bell * phase.sin())  # polar's gradient is NaN where a bell underflows

    def settings(self) -> dict[str, object]:
        return {**_wavelet(self.centre, self.omega0), "taps": self.taps, "learned": self.centre.learned}


class MorletCorrelation(CircularFilter):
    """Correlation with a whole Morlet wavelet, by real FFT (S8): the response is exp(-(2 pi a f - omega0)^2 / 2).

    That is a Gaussian band at omega0 / (2 pi a) cycles per token, of width 1 / (2 pi a). The response is real, so the
    kernel, exp(-t^2 / 2a^2) cos(omega0 t / a) up to a factor, is the same at lag -t as at lag t: it hears as much of
    the future as of the past. scale, learn: as for `Morlet`.
    """

    fades = True

    def __init__(self, scale: float | Sequence[float] = 8.0, omega0: float = 6.0, learn: bool = False) -> None:
        super().__init__()
        self.omega0 = float(omega0)
        self.centre = Centre(_centre_frequency(scale, omega0), learn)

    def response(self, f: Tensor) -> Tensor:
        return torch.exp(-0.5 * (self.omega0 * (f.abs() / self.centre() - 1)) ** 2)

    def settings(self) -> dict[str, object]:
        return {**_wavelet(self.centre, self.omega0), "learned": self.centre.learned}


def _centre_frequency(scale: float | Sequence[float], omega0: float) -> Tensor:
    """The centre frequency of a Morlet wavelet, omega0 / (2 pi scale) cycles per token, one a head."""
    a = per_head(scale, 1)
    if not (a > omega0 / math.pi).all() or not omega0 > 0:
        raise ValueError(
            f"scale {a.flatten().tolist()} with omega0 = {omega0} puts the centre, omega0 / (2 pi scale), "
            "outside (0, 1/2) cycles per token: take omega0 > 0 and a scale above omega0 / pi"
        )
    return omega0 / (2 * math.pi * a)


def _wavelet(centre: Centre, omega0: float) -> dict[str, object]:
    """A Morlet wavelet as it is now: its centre frequency may have been learned, and its scale with it."""
    freq = centre()
    return {"freq": freq, "scale": omega0 / (2 * math.pi * freq), "omega0": omega0}


def _line(kind: type, held: list[str], settings: Mapping[str, object]) -> str:
    """A feature map in one line; a flag that is not set goes unsaid."""
    said = [key if value is True else f"{key}={shown(value)}" for key, value in settings.items() if value is not False]
    return f"{kind.__name__}({', '.join(held + said)})"


def _listed(maps: Sequence[FeatureMap]) -> list[str]:
    """Several feature maps, a line each; simple ones of one kind in one line, `4 x MexicanHat(freq=0.02..0.2)`."""
    kinds = {(type(m), *(key for key, value in m.settings().items() if value is True)) for m in maps}
    if len(maps) < 2 or len(kinds) > 1 or any(m._held() for m in maps):
        return [repr(m) for m in maps]
    settings = [m.settings() for m in maps]
    joined = {
        key: value if isinstance(value, bool) else torch.cat([torch.as_tensor(s[key]).flatten() for s in settings])
        for key, value in settings[0].items()
    }
    return [f"{len(maps)} x {_line(type(maps[0]), [], joined)}"]
