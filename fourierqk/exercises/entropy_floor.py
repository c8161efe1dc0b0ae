"""Checkers of the chapter on the entropy floor."""
import math

from fourierqk.exercises import checker

__all__ = ["coin_rate", "gap_difference", "which_test"]


@checker
def coin_rate(answer: float) -> str | None:
    """The entropy rate, in nats per character, of a text of fair coins that write `ab` or `cd`."""
    if math.isclose(answer, math.log(2), rel_tol=1e-3):
        return "that is the entropy of one coin. How many characters does a coin write?"
    if math.isclose(answer, 0.5):
        return "that is in bits per character. A nat uses the natural logarithm."
    if not math.isclose(answer, math.log(2) / 2, rel_tol=1.5e-2):
        return "divide the nats of one choice by the characters that it writes."


@checker
def gap_difference(answer: float) -> str | None:
    """The second model's shuffled gap minus the first's: (3.5 - 0.1) - (3.5 - 0.5)."""
    if math.isclose(answer, -0.4, abs_tol=1e-6):
        return "the gap is shuffled minus ordered, and you were asked for second minus first: mind the sign."
    if not math.isclose(answer, 0.4, abs_tol=1e-6):
        return "compute shuffled minus ordered for each model, then subtract the first from the second."


@checker
def which_test(answer: str) -> str | None:
    """Which of floor, gap and audit can prove a leak on a text of unknown entropy."""
    if answer == "floor":
        return "the floor needs a text whose entropy rate is known. Nobody knows Shakespeare's."
    if answer == "gap":
        return "a leak can make the gap large or small. Look again at the section on the gap."
    if answer != "audit":
        return 'choose one of "floor", "gap" and "audit".'
