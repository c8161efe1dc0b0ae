"""Checkers for the book's exercises: one module a chapter, one function an exercise.

A checker prints what is wrong with an answer, or that it is right. It never raises: the reader is learning, and a
traceback from inside a checker teaches nothing.
"""
import functools
from collections.abc import Callable

__all__ = ["checker"]


def _is_stub(answer: object) -> bool:
    """Whether an answer is a function whose body is still the dots."""

    def stub(): ...

    code, dots = getattr(answer, "__code__", None), stub.__code__
    named = getattr(answer, "__name__", "") != "<lambda>"
    return named and code is not None and (code.co_code, code.co_consts) == (dots.co_code, dots.co_consts)


def checker(judge: Callable[[object], str | None]) -> Callable[[object], None]:
    """Turn a judge (answer -> what is wrong, or None) into a checker that prints its verdict."""

    @functools.wraps(judge)
    def check(answer: object) -> None:
        if answer is None or answer is ... or _is_stub(answer):
            print("No answer yet: replace the dots, then run the cell again.")
            return
        try:
            wrong = judge(answer)
        except Exception as e:  # whatever the reader's code does wrong, say it in words
            wrong = f"your answer raised {type(e).__name__}: {e}"
        print(f"Not yet: {wrong}" if wrong else "Correct.")

    return check
