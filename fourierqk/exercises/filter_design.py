"""Checkers of the chapter on filters: band, gain, kernel."""
import math

import torch

from fourierqk.exercises import checker, numeric
from fourierqk.filters import Filter

__all__ = ["bell", "heard_as", "word_band"]


@checker
def word_band(answer) -> str | None:
    """A Gaussian band at one cycle in 5 tokens, 2 bins of 256 wide."""
    if not isinstance(answer, Filter):
        return "build a filter: Gaussian(freq=..., width=...)."
    f = torch.linspace(0, 0.5, 5001, dtype=torch.float64)  # steps of 1/10000: 1/5 lies on the grid
    with torch.no_grad():
        h = answer.response(f).abs()
    if h.ndim != 2 or not torch.allclose(h, h[:1]):
        return "one band will do: give a single frequency."
    if not h[0].max() > 0:
        return "your filter passes nothing: its band lies between the frequencies, or it is far too narrow."
    return _centre(f, h[0] / h.max()) or _shape(f, h[0] / h.max())


def _centre(f: torch.Tensor, h: torch.Tensor) -> str | None:
    if h.min() > 0.9:  # a curve as flat as this has a maximum, but no centre
        wide = "widths are in cycles per token, and all frequencies lie between 0 and 1/2."
        return f"the band passes everything: {wide} Two bins of 256 are bins(2, 256)."
    peak = f[h.argmax()].item()
    wrong = {
        5 / 256: "bins(5, 256) is five cycles in the window. Five tokens a cycle is period(5).",
        2 / 256: "its centre is bins(2, 256): have you exchanged centre and width?",
        1 / 4: "a word of four letters takes five tokens with its space.",
    }
    otherwise = f"the band is centred on {peak:.3f} cycles per token. One cycle in five tokens is 1/5."
    return numeric(peak, 1 / 5, wrong, otherwise, rel_tol=1e-2)


def _shape(f: torch.Tensor, h: torch.Tensor) -> str | None:
    if torch.allclose(h, torch.exp(-0.5 * ((f - 1 / 5) / (2 / 256)) ** 2), atol=1e-3):
        return None
    above = f[(f > 1 / 5) & (h < math.exp(-0.5))]
    width = above[0].item() - 1 / 5 if len(above) else 0.5
    if torch.allclose(h, torch.exp(-0.5 * ((f - 1 / 5) / width) ** 2), atol=0.05):
        return f"the centre is right, the width is not: yours is {256 * width:.1f} bins of 256. Two are bins(2, 256)."
    return "the centre is right, but the curve is not that of a Gaussian."


@checker
def bell(answer) -> str | None:
    """The bandwidth of a Gaussian whose kernel is a wave under a bell of standard deviation 10: 1 / (2 pi 10)."""
    wrong = {
        1 / 10: "narrow in frequency is wide in time, but the factor 2 pi is missing: a cycle is a whole turn.",
        1 / (4 * math.pi * 10): "that is the bound, for widths weighted by energy. Here the bell itself is 10 wide.",
        2 * math.pi * 10: "turn it over: a bandwidth is in cycles per token.",
        2 * math.pi / 10: "the 2 pi divides: sigma = 1 / (2 pi times the width of the bell).",
        10: "that is the width in time, in tokens. Which bandwidth makes it?",
        256 / (2 * math.pi * 10): "that is in bins of 256. Answer in cycles per token.",
        math.sqrt(2) / (4 * math.pi * 10): "you took 10 for the width of |h|^2. It is that of the bell, of h itself.",
    }
    otherwise = "the bell of a band of bandwidth sigma has the standard deviation 1 / (2 pi sigma). Solve for sigma."
    return numeric(answer, 1 / (2 * math.pi * 10), wrong, otherwise, rel_tol=2e-2)


@checker
def heard_as(answer) -> str | None:
    """The frequency at which a wave with a period of 1.25 tokens is heard."""
    wrong = {
        0.8: "that is its own frequency, above Nyquist. Which slower wave has the same values at whole tokens?",
        0.3: "folding is not subtracting 1/2: a wave of f has the same values as one of 1 - f.",
        -0.2: "nearly: a real wave of -0.2 is one of 0.2, and the range asked for starts at 0.",
        5: "that is the period of the answer, in tokens. Give its frequency.",
        1.25: "that is the period of the wave, in tokens. How many cycles does it make in a token?",
        0.25: "a period of 1.25 is not a frequency of 1.25: turn it over first, then fold.",
        0.5: "that is Nyquist, where it is folded: as far below it as the wave lies above.",
    }
    whole = "Take away whole cycles, to within [-1/2, 1/2]."
    return numeric(answer, 0.2, wrong, f"a period of 1.25 tokens is 1 / 1.25 cycles per token. {whole}")
