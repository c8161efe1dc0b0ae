"""Checkers of the chapter on causal filters."""
import math

import numpy as np
import torch

from fourierqk.exercises import Numbers, Span, Whole, checker, fits, reply, ruled, vector

__all__ = ["both_late", "in_a_row", "slow_taps", "stop_dc"]


@ruled
def in_a_row() -> Whole:
    """The taps of one filter that does what filters of 16 and 64 taps do one after the other: 79."""
    wrong = {
        80: "nearly: lag 0 after lag 0 is lag 0 again. What are the smallest and the largest lag?",
        16 * 64: "lags add, they do not multiply: a token is delayed by the first filter, then by the second.",
        78: "that is the largest lag. The lags run from 0 to it.",
    }
    return Whole(79, wrong, "the lags are 0 to 15 and 0 to 63. Which sums of one of each exist?")


@checker
def stop_dc(answer) -> str | None:
    """A function taps (K,) -> taps (K,) that sum to zero, with lag 0 alone changed."""
    t = torch.arange(40.0)
    hat = (1 - (t / 5) ** 2) * torch.exp(-0.5 * (t / 5) ** 2)
    for taps in (hat, torch.polar(torch.exp(-0.5 * (t / 5) ** 2), 6 * t / 5)):
        got = fits(reply(answer, taps), (len(taps),), "return all the taps, lag 0 first.")
        if taps.is_complex() and not np.iscomplexobj(got):
            return "the taps of a Morlet are complex: keep their imaginary part."
        if not np.allclose(got[1:], taps[1:], atol=1e-6):
            return "the lags from 1 on have changed: touch lag 0 alone."
        if np.isclose(got[0], -taps.sum(), atol=1e-4):
            return "the sum that you took away has lag 0 in it, and you put it in its place: take it *off* lag 0."
        if abs(got.sum()) > 1e-3:
            return f"DC still passes: the taps sum to {abs(got.sum()):.3g}, not to 0."


@ruled
def slow_taps() -> Whole:
    """The fewest taps of a half Morlet at one cycle in 64 tokens that hold 99 % of its energy: 112, give or take 2."""
    a = 6 * 64 / (2 * math.pi)
    energy = torch.exp(-((torch.arange(2000, dtype=torch.float64) / a) ** 2))
    held = energy.cumsum(0) / energy.sum()
    least, of_weights = (int((share < 0.99).sum()) + 1 for share in (held, held.sqrt()))
    scale = "The scale is a = 6 * 64 / (2 pi), about 61 tokens."
    weights = "energy is the square of the weight: exp(-t^2 / a^2), not exp(-t^2 / 2 a^2)."
    wrong: dict[Numbers, str] = {
        Span(-math.inf, 0): "taps are counted from 1.",
        (64, 128): "neither one cycle nor two: add up the energy, exp(-t^2 / a^2), until 99 % of it is there.",
        Span(of_weights - 2, of_weights + 2): weights,
        Span(2.5758 * a - 3, 2.5758 * a + 3): weights,
        Span(1, least - 3): f"so few taps hold less than 99 % of the energy. {scale}",
    }
    return Whole(Span(least - 2, least + 2), wrong, f"fewer taps hold 99 % of the energy as well. {scale}")


@checker
def both_late(answer) -> str | None:
    """Query at 40 and key at 25, both 6 tokens late: they tell of 34 and 19, and the value is that of 25."""
    got = tuple(vector(answer, 3, "tokens: the query's, the key's, the value's").tolist())
    wrong = {
        (40, 25, 25): "a filter that is late describes an earlier token than the one where it stands.",
        (34, 19, 19): "values are not filtered, so they are not late. Attention hands over what stands at the key.",
        (34, 25, 25): "the key is filtered like the query, and as late.",
        (40, 19, 25): "the query is filtered like the key, and as late.",
        (46, 31, 25): "late means that the output at a token tells of one *before* it: take the delay off.",
        (34, 19, 40): "the value comes from the token that is listened to, not from the listener.",
    }
    otherwise = "the query at 40 tells of token 40 - 6, the key at 25 of token 25 - 6. Does a filter act on values?"
    return None if got == (34, 19, 25) else wrong.get(got, otherwise)
