"""Checkers of the chapter on the price of causality."""
import math

import numpy as np

from fourierqk.exercises import Numeric, arrays, checker, fits, reply, vector

__all__ = ["future_share", "three_taps", "wait"]


@checker
def three_taps(answer) -> str | None:
    """Three real taps that stop DC and Nyquist and pass 1/4 cycle per token with magnitude 1."""
    taps = vector(answer, 3, "taps")
    if not taps.any():
        return "three zeros stop every frequency, one cycle in four tokens included."
    dc, quarter, nyquist = (abs(np.sum(taps * np.exp(-2j * np.pi * f * np.arange(3)))) for f in (0, 1 / 4, 1 / 2))
    if not math.isclose(dc, 0, abs_tol=1e-3):
        return f"DC passes with {dc:.3g}: the taps must sum to zero."
    if not math.isclose(nyquist, 0, abs_tol=1e-3):
        return f"Nyquist passes with {nyquist:.3g}: the taps with alternating signs must sum to zero as well."
    if not math.isclose(quarter, 1, abs_tol=1e-3):
        return f"DC and Nyquist are stopped, but 1/4 cycle per token passes with {quarter:.3g}, not 1: scale the taps."


@checker
def future_share(answer) -> str | None:
    """A function h (n,), n odd, lag 0 first -> the share of its energy at negative lags."""
    h = np.random.default_rng(0).standard_normal(9)
    got, energy = fits(reply(answer, h), (), "the share of the future."), h**2
    share = energy / energy.sum()
    wrong = {
        share[:5].sum(): "that is the share of the past, lag 0 included: negative lags sit at the end of the array.",
        share[1:5].sum(): "that is the past: negative lags sit at the end of the array, -1 last.",
        share[4:].sum(): "one lag too many: of 2 m + 1 lags the first m + 1 are 0 .. m.",
        share[6:].sum(): "one lag too few: of 2 m + 1 lags the last m are -m .. -1.",
        energy[5:].sum(): "that is the energy itself. Divide by the energy of all lags.",
        h[5:].sum() / h.sum(): "energy is a sum of squares: you added the weights themselves.",
        abs(h[5:]).sum() / abs(h).sum(): "energy is a sum of squares: you added magnitudes.",
        100 * share[5:].sum(): "that is in per cent. A share lies between 0 and 1.",
    }
    otherwise = "for n = 9 the negative lags are the entries 5, 6, 7, 8: square, add, divide by the sum of all squares."
    return Numeric(share[5:].sum(), wrong, otherwise).judge(got)


@checker
def wait(answer) -> str | None:
    """A function (h (n,), D) -> the taps (2 D + 1,) of h delayed by D, lag 0 of the new filter first."""
    for n, delay in ((16, 3), (15, 5)):
        h = np.random.default_rng(n).standard_normal(n)
        around = np.concatenate([h[-delay:], h[: delay + 1]])  # the lags -D .. D
        got = reply(answer, h, delay)
        wrong = {
            "you cut: the future is gone, and what is left is not delayed. Roll by D first.": h[: 2 * delay + 1],
            "you rolled the wrong way: a delay moves every weight to a *later* place.":
                np.roll(h, -delay)[: 2 * delay + 1],
            "you kept the past alone, delayed. Keep the lags 0 to 2 D of the delayed kernel.": h[: delay + 1],
            "you kept the future alone. Lags -D to D go to 0 to 2 D.": h[-delay:],
            "the delayed kernel is right. Keep its first 2 D + 1 weights as taps.": np.roll(h, delay),
            "one tap is missing: lag 2 D counts, so there are 2 D + 1.": around[:-1],
            "backwards: lag -D of the old kernel becomes lag 0 of the new one.": around[::-1],
        }  # fmt: skip
        if not any(got.shape == v.shape for v in wrong.values()):
            fits(got, around.shape, f"for D = {delay} the taps are the old lags -{delay} to {delay}.")
        otherwise = f"for D = {delay} the taps are the old weights of lag -{delay}, ..., {delay}, in this order."
        if says := arrays(got, around, wrong, otherwise):
            return says
