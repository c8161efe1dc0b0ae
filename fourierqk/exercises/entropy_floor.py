"""Checkers of the chapter on the entropy floor."""
import math

from fourierqk.exercises import checker, numeric

__all__ = ["coin_rate", "gap_difference", "which_test"]


@checker
def coin_rate(answer: float) -> str | None:
    """The entropy rate, in nats per character, of a text of fair coins that write `ab` or `cd`."""
    wrong = {
        math.log(2): "that is the entropy of one coin. How many characters does a coin write?",
        0.5: "that is in bits per character. A nat uses the natural logarithm.",
    }
    otherwise = "divide the nats of one choice by the characters that it writes."
    return numeric(answer, math.log(2) / 2, wrong, otherwise, rel_tol=1.5e-2)


@checker
def gap_difference(answer: float) -> str | None:
    """The second model's shuffled gap minus the first's: (3.5 - 0.1) - (3.5 - 0.5)."""
    wrong = {-0.4: "the gap is shuffled minus ordered, and you were asked for second minus first: mind the sign."}
    otherwise = "compute shuffled minus ordered for each model, then subtract the first from the second."
    return numeric(answer, 0.4, wrong, otherwise)


@checker
def which_test(answer: str) -> str | None:
    """Which of floor, gap and audit can prove a leak on a text of unknown entropy."""
    wrong = {
        "floor": "the floor needs a text whose entropy rate is known. Nobody knows Shakespeare's.",
        "gap": "a leak can make the gap large or small. Look again at the section on the gap.",
    }
    if answer != "audit":
        return wrong.get(answer, 'choose one of "floor", "gap" and "audit".')
