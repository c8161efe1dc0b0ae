"""Checkers of the chapter on text as a signal."""
import math

import numpy as np

from fourierqk.exercises import Numeric, Whole, arrays, checker, fits, reply, ruled

__all__ = ["flat_level", "line_bin", "one_hot_power", "per_character"]


@checker
def one_hot_power(answer) -> str | None:
    """A function ids (n,) -> the power of the text in each bin, (n // 2 + 1,), without its mean."""
    ids = np.array([3, 0, 3, 1, 0, 2, 3, 3, 1, 0, 7])
    hot = (ids[:, None] == np.unique(ids)).astype(float)
    centred = hot - hot.mean(0)
    each = abs(np.fft.rfft(centred, axis=0)) ** 2 / len(ids)
    got = reply(answer, ids)
    if got.shape == each.shape:
        return "these are the powers of each token's indicator. Add them up: one number a bin."
    if got.shape == (len(ids),):
        return "one number for each of the n bins: the upper half repeats the lower. Use rfft."
    fits(got, (len(each),), "one for each bin from 0 to n // 2, and here n = 11.")
    wrong = {
        "these are the powers of the codes. 7 is no larger than 3: they are names. Transform indicators.":
            abs(np.fft.rfft(ids - ids.mean())) ** 2 / len(ids),
        "these are the powers of the codes, mean and all. Codes are names: transform indicators.":
            abs(np.fft.rfft(ids)) ** 2 / len(ids),
        "all bins but DC are right: take each indicator's mean away first.":
            (abs(np.fft.rfft(hot, axis=0)) ** 2).sum(1) / len(ids),
        "divide by n: the power is |X|^2 / n.": each.sum(1) * len(ids),
        "you added the transforms before squaring. The indicators are separate signals: add their powers.":
            abs(np.fft.rfft(centred, axis=0).sum(1)) ** 2 / len(ids),
        "power is the square of the magnitude.": abs(np.fft.rfft(centred, axis=0)).sum(1) / len(ids),
        "that is the mean over the indicators. Powers of a text add up.": each.mean(1),
    }  # fmt: skip
    steps = "One indicator a token, mean away, rfft, square, add, over n."
    return arrays(got, each.sum(1), wrong, f"for a text of 11 tokens the powers differ. {steps}")


@ruled
def flat_level() -> Numeric:
    """The power at every frequency of independent tokens with p = 1/2, 1/4, 1/4."""
    wrong = {
        0.375: "that is the chance that two tokens agree, the sum of p². The variance is what is left of 1.",
        1: "that is the energy with the means left in. Each indicator varies by p (1 - p).",
        0.5: "two equal tokens in a row are one pair, not two: the variances are 1/4, 3/16 and 3/16.",
        1.5 * math.log(2): "that is the entropy in nats. Power is a variance: p (1 - p) for each token.",
    }
    otherwise = "an indicator that is 1 with probability p has the variance p (1 - p). Add the three."
    return Numeric(0.625, wrong, otherwise)


@ruled
def line_bin() -> Whole:
    """The bin of 256 nearest to one cycle in 21 tokens."""
    wrong = {
        256 / 21: "that is where it lies. Bins are whole numbers: which is nearest?",
        13: "13 cycles in 256 tokens have a period of 19.7. 256 / 21 lies nearer to another whole number.",
        21: "21 is the period, in tokens. Bin k makes k cycles in the window.",
        1 / 21: "that is the frequency, in cycles per token. How many cycles are that in 256 tokens?",
        256 - 12: "the mirror image: bins above 128 repeat those below. Which is its partner?",
    }
    return Whole(12, wrong, "a period of 21 tokens makes 256 / 21 cycles in the window: round that.")


@ruled
def per_character() -> Numeric:
    """2.7 nats a token, at 1.8 characters a token, in nats per character."""
    wrong = {
        2.7 * 1.8: "you multiplied. The nats of one token pay for 1.8 characters: each costs less.",
        1.8 / 2.7: "those are characters per nat. Turn it over.",
        2.7: "that is the loss of a token, and a token spells more than one character.",
        2.7 - 1.8: "nats and characters cannot be subtracted: how many nats fall to one character?",
    }
    return Numeric(1.5, wrong, "one token costs 2.7 nats and spells 1.8 characters, on average. Divide.")
