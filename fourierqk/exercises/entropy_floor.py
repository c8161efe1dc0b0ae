"""Checkers of the chapter on the entropy floor."""
import math

import numpy as np

from fourierqk.exercises import Numeric, Word, checker, fits, reply, ruled

__all__ = ["below_floor", "coin_rate", "which_test"]


@ruled
def coin_rate() -> Numeric:
    """The entropy rate, in nats per character, of a text of fair coins that write `ab` or `cd`."""
    wrong = {
        math.log(2): "that is the entropy of one coin. How many characters does a coin write?",
        0.5: "that is in bits per character. A nat uses the natural logarithm.",
        1: "that is the entropy of one coin in bits. Asked are nats per character.",
        math.log(4): "that is for four independent letters. Here `b` follows `a` without a choice.",
    }
    otherwise = "divide the nats of one choice by the characters that it writes."
    return Numeric(math.log(2) / 2, wrong, otherwise, rel_tol=1.5e-2)


@checker
def below_floor(answer) -> str | None:
    """A function (model (N,), oracle (N,)) -> whether the mean difference lies more than 4 standard errors below 0."""
    for case, right, says in _trials():
        if bool(fits(reply(answer, *case), (), "one answer for all windows, True or False.")) != right:
            return says


def _trials():
    """((model, oracle), what is right, what is wrong with a function that says otherwise)"""
    rng, n = np.random.default_rng(0), 400
    hard = 0.5 + 0.3 * rng.standard_normal(n)  # some windows are hard, for the model and for the oracle
    d = rng.standard_normal(n)
    d = (d - d.mean()) / d.std(ddof=1)  # mean 0, standard deviation 1: the standard error of n is 1 / 20
    yield (hard + 1, hard), False, "it accuses a model that lies far *above* the oracle, as honest models do."
    alike = np.full(n, 0.5)
    yield (alike - 0.01 + 0.02 * d, alike), True, (
        "it misses a model that lies 10 standard errors below. A standard error is the spread over the root of N.")
    yield (hard - 0.01 + 0.02 * d, hard), True, (
        "it misses a model that lies 10 standard errors below. Windows differ in difficulty, for both alike: subtract "
        "window by window, then take the standard error of the *differences*.")
    yield (hard - 0.01 + 0.1 * d, hard), False, (
        "it accuses a model that lies only 2 standard errors below. Chance does that: the rule asks for more than 4.")
    yield (hard - 0.01 + 0.06 * d, hard), False, "it accuses a model that lies 3.3 standard errors below, and not 4."
    yield (hard - 0.01 + 0.04 * d, hard), True, "it misses a model that lies 5 standard errors below, and 4 are enough."


@ruled
def which_test() -> Word:
    """Which of floor, gap and audit can prove a leak on a text of unknown entropy."""
    wrong = {
        "floor": "the floor needs a text whose entropy rate is known. Nobody knows Shakespeare's.",
        "gap": "a leak can make the gap large or small. Look again at the section on the gap.",
    }
    return Word("audit", wrong)
