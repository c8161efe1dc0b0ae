"""Checkers of the chapter that weighs the claims."""
from fourierqk.exercises import checker, word
from fourierqk.reckoning import VERDICTS

__all__ = ["gain_over_what", "no_gain", "verdict_word"]


@checker
def verdict_word(answer: str) -> str | None:
    """The verdict on a system that gains in ordered loss and loses in honest loss: "with the future only"."""
    found = word(answer, VERDICTS)
    if found == "holds":
        return "the ordered loss is lower, but some of it may be the future's. What does the honest loss say?"
    if found == "does not hold here":
        return "the honest loss does not show it. But the ordered loss does, and there is a verdict for that."
    if found != "with the future only":
        return "both losses are known, and the intervals are narrow. What does each of them show?"


@checker
def no_gain(answer: str) -> str | None:
    """The verdict on "brings no gain" of an interval from -0.045 to +0.005: "holds", since -0.05 lies outside."""
    found = word(answer, VERDICTS)
    if found == "undecided":
        return "the interval contains zero, so a gain is not shown. Does it leave room for one that counts?"
    if found == "does not hold here":
        return "the mean lies below zero, but so small a gain does not count, and the interval contains zero."
    if found != "holds":
        return "the loss of a causal system is safe, and one system is judged: a gain counts, is excluded, or neither."


@checker
def gain_over_what(answer: str) -> str | None:
    """The verdict where a table of three-character counts beats the baseline: "undecided"."""
    found = word(answer, VERDICTS)
    if found == "does not hold here":
        return "by its interval the gain counts. But what is it worth to beat a baseline that a table of counts beats?"
    if found == "holds":
        return "the filter ends well below the baseline. Now look at the baseline."
    if found != "undecided":
        return "there are runs, the loss is safe, and one system is judged. What do the three doubts of the page say?"
