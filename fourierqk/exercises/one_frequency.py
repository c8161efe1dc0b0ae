"""Checkers of the chapter on one learned frequency."""
import math

import numpy as np
import torch

from fourierqk.exercises import Numeric, arrays, checker, fits, reply, ruled, vector
from fourierqk.filters import Gaussian

__all__ = ["band_pass", "dc_attention", "largest_move", "same_rhythm"]


@ruled
def same_rhythm() -> Numeric:
    """The bin of 1024 tokens that has the rhythm of bin 4 of 256: 16."""
    wrong = {
        4: "bin 4 of 1024 is four cycles in a window four times as long: another, slower rhythm.",
        1: "a longer window makes *more* cycles of the same rhythm, not fewer.",
        64: "that is the period, in tokens. How many such cycles are there in 1024 tokens?",
        1 / 64: "that is the frequency, in cycles per token. Which bin of 1024 is that?",
    }
    return Numeric(16, wrong, "bin 4 of 256 is a cycle in 64 tokens. How many are that in 1024?", rel_tol=1e-9)


@checker
def band_pass(answer) -> str | None:
    """A function (x (n, d), freq, width) -> x through a Gaussian band, by hand."""
    for n in (16, 15):
        x = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
        y = fits(reply(answer, x, 0.1, 0.05), (n, 3), "filter along time, and tell irfft the length with n=.")
        if np.iscomplexobj(y):
            return "return real numbers: use rfft and irfft."
        right, wide, narrow = (Gaussian(0.1, w)(x[None, None])[0, 0] for w in (0.05, 0.05 * 2**0.5, 0.05 / 2**0.5))
        wrong = {
            "the band is too narrow: the exponent is -(f - freq)^2 / (2 width^2), and yours lacks the 2.": narrow,
            "the band is too wide: the exponent is -(f - freq)^2 / (2 width^2).": wide,
            "you filtered along the channels. Time is the first axis: dim=0.": _across(x),
            "that is the signal itself: multiply its DFT by the band.": x,
        }
        otherwise = "right length, wrong values: multiply by exp(-(f - freq)^2 / (2 width^2)), with f from rfftfreq."
        if says := arrays(y, right, wrong, otherwise):
            return says


def _across(x: torch.Tensor) -> torch.Tensor:
    return Gaussian(0.1, 0.05)(x.T[None, None])[0, 0].T


@checker
def dc_attention(answer) -> str | None:
    """The attention weights of the last of 4 tokens when queries and keys pass DC only."""
    w = vector(answer, 4, "weights, one a token")
    if abs(w.sum() - 1) > 1e-3:
        return f"attention weights sum to 1, and yours to {w.sum():.3g}."
    wrong = {
        "DC is the mean of *all* tokens: the last is not heard more than others.": np.eye(4)[3],
        "DC is the mean of *all* tokens: the first is not heard more than others.": np.eye(4)[0],
    }
    otherwise = "DC is the mean over time: every key becomes the same vector. What does a softmax make of equal scores?"
    return arrays(w, np.full(4, 0.25), wrong, otherwise, atol=1e-3)


@ruled
def largest_move() -> Numeric:
    """The factor by which a log frequency can grow in 1000 Adam steps of learning rate 3e-4, at most about."""
    wrong = {
        0.3: "that is how far the *logarithm* moves. By which factor does the frequency grow?",
        1.3: "nearly: a factor of e^0.3 is a little more than 1 + 0.3.",
        math.exp(3e-4): "that is the factor of one step. The factors of 1000 steps multiply.",
        10**0.3: "ln is the natural logarithm: raise e, not 10.",
    }
    otherwise = "Adam moves a parameter by about its learning rate a step: add the steps up, then undo the logarithm."
    return Numeric(math.exp(0.3), wrong, otherwise, rel_tol=1e-2)
