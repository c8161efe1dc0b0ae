"""Checkers of the chapter on four frequencies."""
import math

import torch

from fourierqk.combinators import Bank
from fourierqk.exercises import Numeric, Whole, arrays, checker, fits, reply, ruled
from fourierqk.filters import Gaussian

__all__ = ["bank_scores", "cross_terms", "needed_rate", "same_start"]


@ruled
def cross_terms() -> Whole:
    """The number of cross terms in the score of eight summed bands: 56."""
    wrong = {
        64: "that is all products. Eight of them pair a band with itself.",
        28: "band 1 of q with band 2 of k is not band 2 of q with band 1 of k: count both.",
        8: "those are the terms of a bank, each band with itself. Count the others.",
    }
    otherwise = "write the score as (sum of 8) . (sum of 8), multiply out, and leave out the products of equal bands."
    return Whole(56, wrong, otherwise)


@checker
def bank_scores(answer) -> str | None:
    """A function (q, k (1, 1, T, d), filters) -> the mean of the filters' scores (T, T), no division by sqrt(d)."""
    filters = [Gaussian(f, 0.05) for f in (0.1, 0.2, 0.3)]
    for n in (12, 9):
        q, k = torch.randn(2, 1, 1, n, 4, generator=torch.Generator().manual_seed(n))
        got = fits(reply(answer, q, k, filters), (n, n), "scores are (T, T): take one text and one head.")
        bank, half = Bank(*filters), sum(h(q) @ k.mT for h in filters)[0, 0] / 3
        want = (bank(q) @ bank(k).mT)[0, 0]
        summed = (sum(h(q) for h in filters) @ sum(h(k) for h in filters).mT)[0, 0]
        wrong = {
            "that is the sum of the scores: divide by the number of filters.": 3 * want,
            "you averaged the filtered signals, then compared: that has cross terms. Compare first.": summed / 9,
            "you added the filtered signals, then compared: that is the summed reading, with cross terms.": summed,
            "these scores are divided by the root of d: leave that out here.": want / 2,
            "these scores are not filtered: pass q and k through each filter.": (q @ k.mT)[0, 0],
            "only the queries are filtered. The keys pass the same filter.": half,
            "rows and columns are swapped: row i belongs to query i.": want.T,
        }
        otherwise = "right shape, wrong values: filter q and k with the same filter, take q @ k.T, and average."
        if says := arrays(got, want, wrong, otherwise):
            return says


@ruled
def needed_rate() -> Numeric:
    """The peak learning rate whose sum is ln(50 / 7), where 3e-4 sums to 0.75."""
    ratio = 50 / 7
    wrong = {
        3e-4 * math.log(ratio): "a rate of 3e-4 moves the logarithm by 0.75, not by 1: divide.",
        (3e-4 * ratio, 3e-4 * ratio / 0.75): "what moves is the logarithm: it has to go from ln 50 to ln 7.",
        3e-4 * math.log10(ratio) / 0.75: "ln is the natural logarithm, not that to base 10.",
        math.log(ratio): "that is how far the logarithm must move. Which peak rate sums to it?",
    }
    otherwise = "the logarithm must move by ln(50 / 7), and the sum of rates is proportional to the peak."
    return Numeric(3e-4 * math.log(ratio) / 0.75, wrong, otherwise, rel_tol=1e-2)


@ruled
def same_start() -> Whole:
    """The number of different periods in a head whose four bands started alike: 1."""
    wrong = {
        0: "they do move, away from 16 tokens, but do they move apart?",
        4: "what would tell the bands apart? Compare the gradients of two equal bands.",
    }
    otherwise = "swap two bands: the score stays the same. So what are the gradients of two equal bands?"
    return Whole(1, wrong, otherwise)
