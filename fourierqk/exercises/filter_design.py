"""Checkers of the chapter on filters: band, gain, kernel."""
import math

import torch

from fourierqk.combinators import Unit
from fourierqk.exercises import Numeric, checker, ruled
from fourierqk.filters import Filter, Gaussian

__all__ = ["bell", "heard_as", "word_band"]


@checker
def word_band(answer) -> str | None:
    """A Gaussian band at one cycle in 5 tokens, 2 bins of 256 wide."""
    if not isinstance(answer, Filter):
        return "build a filter: Gaussian(freq=..., width=...)."
    f = torch.linspace(0, 0.5, 5001)
    h = answer.response(f).detach().abs()
    if torch.allclose(h / h.max(), torch.exp(-0.5 * ((f - 1 / 5) / (2 / 256)) ** 2), atol=1e-3):
        return None
    band = answer.inner if isinstance(answer, Unit) else answer
    if not isinstance(band, Gaussian):
        return "that is a filter, but not one Gaussian band: Gaussian(freq=..., width=...)."
    centres = band.centre().detach().flatten()
    if len(centres.unique()) > 1:
        return f"one band will do: give a single frequency, not {len(centres)}."
    return _centre(centres[0].item()) or _width(band.width)


def _centre(found: float) -> str | None:
    wrong = {
        5 / 256: "bins(5, 256) is five cycles in the window. Five tokens a cycle is period(5).",
        2 / 256: "its centre is bins(2, 256): have you exchanged centre and width?",
        1 / 4: "a word of four letters takes five tokens with its space.",
    }
    otherwise = f"the band is centred on {found:.3f} cycles per token. One cycle in five tokens is 1/5."
    return Numeric(1 / 5, wrong, otherwise).judge(found)


def _width(found: float) -> str | None:
    wrong = {2: "the centre is right. The width is in cycles per token, too: two bins of 256 are bins(2, 256)."}
    yours = f"yours is {256 * found:.4g} bins of 256."
    otherwise = f"the centre is right, the width is not: {yours} Two are bins(2, 256)."
    return Numeric(2 / 256, wrong, otherwise).judge(found)


@ruled
def bell() -> Numeric:
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
    return Numeric(1 / (2 * math.pi * 10), wrong, otherwise, rel_tol=2e-2)


@ruled
def heard_as() -> Numeric:
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
    return Numeric(0.2, wrong, f"a period of 1.25 tokens is 1 / 1.25 cycles per token. {whole}")
