"""Checkers of the chapter that weighs the claims."""
from fourierqk.exercises import Word, ruled
from fourierqk.reckoning import VERDICTS

__all__ = ["gain_over_what", "no_gain", "verdict_word"]


@ruled
def verdict_word() -> Word:
    """The verdict on a system that gains in ordered loss and loses in honest loss: "with the future only"."""
    unseen = "both losses are known, and the intervals are narrow. What does each of them show?"
    ordered = "the ordered loss is lower, but some of it may be the future's. What does the honest loss say?"
    honest = "the honest loss does not show it. But the ordered loss does, and there is a verdict for that."
    says = dict.fromkeys(VERDICTS, unseen) | {"holds": ordered, "does not hold here": honest}
    return Word("with the future only", says)


@ruled
def no_gain() -> Word:
    """The verdict on "brings no gain" of an interval from -0.045 to +0.005: "holds", since -0.05 lies outside."""
    one = "the loss of a causal system is safe, and one system is judged: a gain counts, is excluded, or neither."
    wide = "the interval contains zero, so a gain is not shown. Does it leave room for one that counts?"
    small = "the mean lies below zero, but so small a gain does not count, and the interval contains zero."
    return Word("holds", dict.fromkeys(VERDICTS, one) | {"undecided": wide, "does not hold here": small})


@ruled
def gain_over_what() -> Word:
    """The verdict where a table of three-character counts beats the baseline: "undecided"."""
    safe = "there are runs, the loss is safe, and one system is judged. What do the three doubts of the page say?"
    counts = "by its interval the gain counts. But what is it worth to beat a baseline that a table of counts beats?"
    baseline = "the filter ends well below the baseline. Now look at the baseline."
    return Word("undecided", dict.fromkeys(VERDICTS, safe) | {"does not hold here": counts, "holds": baseline})
