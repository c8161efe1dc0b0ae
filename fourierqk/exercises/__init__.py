"""Checkers for the book's exercises: one module a chapter, one function an exercise.

A checker prints what is wrong with an answer, or that it is right. It never raises: the reader is learning, and a
traceback from inside a checker teaches nothing.
"""
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

__all__ = ["arrays", "checker", "listed", "missing", "numeric"]

Numbers = float | tuple[float, ...]  # a number, or several that will do alike


def checker(judge: Callable[[Any], str | None]) -> Callable[[object], None]:
    """Turn a judge (answer -> what is wrong, or None) into a checker that prints its verdict."""

    @functools.wraps(judge)
    def check(answer: object) -> None:
        if missing(answer) or _is_stub(answer):
            print("No answer yet: replace the dots, then run the cell again.")
            return
        try:
            wrong = judge(answer)
        except Exception as e:  # whatever the reader's code does wrong, say it in words
            wrong = f"your answer raised {type(e).__name__}: {e}"
        print(f"Not yet: {wrong}" if wrong else "Correct.")

    return check


def missing(answer: object) -> bool:
    """Whether nothing was answered: None, or still the dots."""
    return answer is None or answer is ...


def _is_stub(answer: object) -> bool:
    """Whether an answer is a function whose body is still the dots."""

    def stub(): ...

    code, dots = getattr(answer, "__code__", None), stub.__code__
    named = getattr(answer, "__name__", "") != "<lambda>"
    return named and code is not None and (code.co_code, code.co_consts) == (dots.co_code, dots.co_consts)


def listed(answer: object) -> bool:
    """Whether an answer is a set, list or tuple with something in it."""
    return isinstance(answer, set | frozenset | list | tuple) and len(answer) > 0


def numeric(
    answer: Any, right: Numbers, wrong: Mapping[Any, str], otherwise: str, rel_tol: float = 1e-3
) -> str | None:
    """Judge a number: None if it is right, else what is said of the value in `wrong` that it is, or `otherwise`."""

    def is_one_of(values: Numbers) -> bool:
        values = values if isinstance(values, tuple) else (values,)
        return any(math.isclose(got, value, rel_tol=rel_tol, abs_tol=1e-9) for value in values)

    try:
        got = float(answer)
    except (TypeError, ValueError):
        return f"answer with a number, not {answer!r:.40}."
    if is_one_of(right):
        return None
    return next((says for value, says in wrong.items() if is_one_of(value)), otherwise)


def arrays(got: object, right: object, wrong: Mapping[str, object], otherwise: str, atol: float = 1e-5) -> str | None:
    """Judge an array or a tensor: None if it is right, else the key in `wrong` whose value it is, or `otherwise`."""

    def is_like(value: object) -> bool:
        value = _array(value)
        return value.shape == found.shape and np.allclose(found, value, atol=atol)

    found = _array(got)
    if is_like(right):
        return None
    return next((says for says, value in wrong.items() if is_like(value)), otherwise)


def _array(x: object) -> np.ndarray:
    return x.detach().resolve_conj().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
