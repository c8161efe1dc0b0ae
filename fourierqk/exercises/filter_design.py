"""Checkers of the chapter on filter design."""
import math

import numpy as np
import torch

from fourierqk.exercises import checker, missing, numeric
from fourierqk.filters import Filter

__all__ = ["future_share", "heard_as", "three_taps", "word_band"]


@checker
def word_band(answer) -> str | None:
    """A Gaussian band at one cycle in 5 tokens, 2 bins of 256 wide."""
    if not isinstance(answer, Filter):
        return "build a filter: Gaussian(freq=..., width=...)."
    f = torch.linspace(0, 0.5, 5001)  # steps of 1/10000: 1/5 lies on the grid
    with torch.no_grad():
        h = answer.response(f).abs()
    if h.shape != (1, len(f)):
        return "one head and one band will do: give a single frequency."
    h = h[0] / h.max()
    peak = f[h.argmax()].item()
    if math.isclose(peak, 5 / 256, abs_tol=2e-4):
        return "bins(5, 256) is five cycles in the window. Five tokens a cycle is period(5)."
    if not math.isclose(peak, 1 / 5, abs_tol=2e-4):
        return f"the band is centred on {peak:.3f} cycles per token. One cycle in five tokens is 1/5."
    if not torch.allclose(h, torch.exp(-0.5 * ((f - 1 / 5) / (2 / 256)) ** 2), atol=1e-3):
        return "the centre is right, the width is not that of a Gaussian 2 bins of 256 wide: bins(2, 256)."


@checker
def three_taps(answer) -> str | None:
    """Three real taps that stop DC and Nyquist and pass 1/4 cycle per token with magnitude 1."""
    taps = np.asarray(answer, dtype=float)
    if taps.shape != (3,):
        return f"give three taps, a list of three numbers, not an array of shape {taps.shape}."
    dc, quarter, nyquist = (abs(np.sum(taps * np.exp(-2j * np.pi * f * np.arange(3)))) for f in (0, 1 / 4, 1 / 2))
    if not math.isclose(dc, 0, abs_tol=1e-6):
        return f"DC passes with {dc:.3g}: the taps must sum to zero."
    if not math.isclose(nyquist, 0, abs_tol=1e-6):
        return f"Nyquist passes with {nyquist:.3g}: the taps with alternating signs must sum to zero as well."
    if not math.isclose(quarter, 1, abs_tol=1e-6):
        return f"DC and Nyquist are stopped, but 1/4 cycle per token passes with {quarter:.3g}, not 1: scale the taps."


@checker
def heard_as(answer) -> str | None:
    """The frequency at which a wave with a period of 1.25 tokens is heard."""
    wrong = {
        0.8: "that is its own frequency, above Nyquist. Which slower wave has the same values at whole tokens?",
        0.3: "folding is not subtracting 1/2: a wave of f has the same values as one of 1 - f.",
        -0.2: "nearly: a real wave of -0.2 is one of 0.2, and the range asked for starts at 0.",
        5: "that is the period of the answer, in tokens. Give its frequency.",
    }
    whole = "Take away whole cycles, to within [-1/2, 1/2]."
    return numeric(answer, 0.2, wrong, f"a period of 1.25 tokens is 1 / 1.25 cycles per token. {whole}", rel_tol=1e-5)


@checker
def future_share(answer) -> str | None:
    """A function h (n,), n odd, lag 0 first -> the share of its energy at negative lags."""
    h = np.random.default_rng(0).standard_normal(9)
    got, energy = answer(h.copy()), h**2
    if missing(got):
        return "your function returns nothing: return a share between 0 and 1."
    if np.shape(got) != ():
        return f"return one number, not an array of shape {np.shape(got)}."
    share = energy / energy.sum()
    wrong = {
        share[:5].sum(): "that is the share of the past, lag 0 included: negative lags sit at the end of the array.",
        share[1:5].sum(): "that is the past: negative lags sit at the end of the array, -1 last.",
        share[4:].sum(): "one lag too many: of 2 m + 1 lags the first m + 1 are 0 .. m.",
        energy[5:].sum(): "that is the energy itself. Divide by the energy of all lags.",
        h[5:].sum() / h.sum(): "energy is a sum of squares: you added the weights themselves.",
        abs(h[5:]).sum() / abs(h).sum(): "energy is a sum of squares: you added magnitudes.",
    }
    otherwise = "for n = 9 the negative lags are the entries 5, 6, 7, 8: square, add, divide by the sum of all squares."
    return numeric(got, share[5:].sum(), wrong, otherwise, rel_tol=1e-6)
