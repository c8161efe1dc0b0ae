"""Checkers of the chapter that weighs the claims."""
from fourierqk.exercises import checker, word
from fourierqk.reckoning import VERDICTS

__all__ = ["verdict_word"]


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
