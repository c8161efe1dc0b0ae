"""Checkers for the book's exercises: one module a chapter, one function an exercise.

A checker prints what is wrong with an answer, or that it is right. It never raises: the reader is learning, and a
traceback from inside a checker teaches nothing.

A judge compares values, and the form of an answer is no mistake: `number`, `vector`, `members`, `word` and `reply`
take what NumPy, torch or plain Python call the same thing to one form, and refuse in a sentence what it is not. Where
an answer is a number or a word, the judge is a rule, plain data: the book's pages judge by the same rules themselves.
"""
import functools
import itertools
import math
import numbers
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

__all__ = [
    "Numbers", "Numeric", "Refused", "Rule", "Span", "Whole", "Word", "arrays", "checker", "fits", "function",
    "members", "number", "reply", "ruled", "vector", "word",
]  # fmt: skip

NO_NUMBER = "a number is asked for, and {} is none."
NOT_WHOLE = "the answer is a whole number, not {}:"
ABS_TOL = 1e-9  # of a number near zero
NEAR = 1e-3  # of a number that is no whole one, to a known mistake
MARKS = string.whitespace + string.punctuation  # around a word: a full stop is no part of an answer
MOST = 10_000  # members of an answer that are looked at: an iterator need not end


class Refused(ValueError):
    """An answer of a kind that cannot be judged. Its text is the sentence that the reader is told."""


def checker(judge: Callable[[Any], str | None]) -> Callable[[object], None]:
    """Turn a judge (answer -> what is wrong, or None) into a checker that prints its verdict."""

    @functools.wraps(judge)
    def check(answer: object) -> None:
        if _missing(answer) or _is_stub(answer):
            print("No answer yet: replace the dots, then run the cell again.")
            return
        try:
            wrong = judge(answer)
        except Refused as e:
            wrong = str(e)
        except Exception as e:  # whatever the reader's code does wrong, say it in words
            wrong = f"your answer raised {type(e).__name__}: {e}"
        print(f"Not yet: {wrong}" if wrong else "Correct.")

    return check


def _missing(answer: object) -> bool:
    """Whether nothing was answered: None, or still the dots."""
    return answer is None or answer is ...


def _is_stub(answer: object) -> bool:
    """Whether an answer is a function whose body is still the dots."""

    def stub(): ...

    code, dots = getattr(answer, "__code__", None), stub.__code__
    named = getattr(answer, "__name__", "") != "<lambda>"
    return named and code is not None and (code.co_code, code.co_consts) == (dots.co_code, dots.co_consts)


# --- the forms of an answer


def number(answer: Any) -> float:
    """The finite number that an answer is, alone or as the one entry of an array or a list; else Refused."""
    value = _only(answer)
    refused = Refused(NO_NUMBER.format(_shown(value)))
    if isinstance(value, bool | str | bytes):
        raise refused
    try:
        z = complex(value)
    except (TypeError, ValueError, OverflowError):
        raise refused from None
    if z.imag or not math.isfinite(z.real):
        raise Refused(f"a real, finite number is asked for, and {_shown(value)} is none.")
    return z.real


def vector(answer: Any, length: int, of: str) -> np.ndarray:
    """The real numbers of a list, an array or a tensor -> (length,); `of` names them: "taps". Else Refused."""
    wanted = f"answer with a list of {length} {of}"
    if isinstance(answer, set | frozenset | Mapping):
        raise Refused(f"{wanted}: a {type(answer).__name__} has no order.")
    found = _array(answer)
    if found is None:
        raise Refused(f"{wanted}, not {_shown(answer)}.")
    if found.size != length or max(found.shape, default=1) != length:
        raise Refused(f"{wanted}, not {found.size} in the shape {found.shape}.")
    if np.iscomplexobj(found) and np.any(found.imag) or not np.isfinite(found).all():
        raise Refused(f"{wanted}, real and finite ones, not {_shown(answer)}.")
    return found.real.astype(float).reshape(length)


def members(answer: Any, such_as: str) -> set:
    """What a set, list, range, array or tensor holds, as plain numbers and texts; else Refused.

    such_as: what the exercise wants, "a set of bins, such as {0, 1}".
    """
    several = _bare(answer)
    if isinstance(several, np.ndarray):
        several = several.ravel() if several.ndim else None
    if isinstance(several, str | bytes | Mapping) or not isinstance(several, Iterable):
        raise Refused(f"answer with {such_as}, not with {_shown(answer)}.")
    found = {_member(x, such_as) for x in itertools.islice(several, MOST)}
    if not found:
        raise Refused(f"answer with {such_as}: yours is empty.")
    return found


def _member(x: Any, such_as: str) -> float | str:
    value = _only(x)
    if isinstance(value, str):
        return value.strip(MARKS) or value.strip()
    if isinstance(value, bool | np.bool_):
        raise Refused(f"answer with {such_as}. True and False say where, not which: np.flatnonzero turns them into it.")
    try:
        found = float(value) if isinstance(value, numbers.Real) else math.nan
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise Refused(f"answer with {such_as}. Yours holds {_shown(x)}.")
    return found


def word(answer: Any, words: Iterable[str]) -> str:
    """The one of `words` that an answer is, whatever its case and the marks around it; else Refused."""
    words, [found] = list(words), answer if isinstance(answer, list | tuple | set) and len(answer) == 1 else [answer]
    if isinstance(found, str) and (found := found.strip(MARKS).lower()) in words:
        return found
    choices = ", ".join(f'"{w}"' for w in words)
    raise Refused(f"answer with one of {choices}, in quotation marks, not {_shown(answer)}.")


def function(answer: Any) -> Callable[..., Any]:
    """An answer that can be called; else Refused."""
    if not callable(answer):
        raise Refused(f"answer with a function, not {_shown(answer)}.")
    return answer


def reply(answer: Any, *given: Any) -> np.ndarray:
    """What the reader's function returns for copies of `given`, as an array; else Refused.

    A function written for the other library gets what is given in the form of the other: an exercise is about
    signals, and not about who stores them.
    """
    function(answer)
    try:
        got = answer(*map(_copied, given))
    except Exception as first:
        try:
            got = answer(*map(_in_the_other_form, given))
        except Exception:
            raise first from None
    if _missing(got):
        raise Refused("your function returns nothing: its last line must return the result.")
    found = _array([*itertools.islice(got, MOST)] if isinstance(got, Iterator) else got)
    if found is None:
        raise Refused(f"your function returns {_shown(got)}: it must return numbers.")
    return found


def fits(got: np.ndarray, shape: tuple[int, ...], hint: str) -> np.ndarray:
    """What a function returned in the wanted shape, or Refused with a hint. One number may come in an array of one."""
    if got.shape != shape and not got.size == math.prod(shape) == 1:
        raise Refused(f"your function returns {_counted(got.shape)} instead of {_counted(shape)}: {hint}")
    return got.reshape(shape)


def _counted(shape: tuple[int, ...]) -> str:
    return "one number" if shape == () else f"{shape[0]} numbers" if len(shape) == 1 else f"an array of shape {shape}"


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x.clone() if isinstance(x, torch.Tensor) else x


def _in_the_other_form(x: Any) -> Any:
    return torch.tensor(x) if isinstance(x, np.ndarray) else x.numpy().copy() if isinstance(x, torch.Tensor) else x


def _bare(x: Any) -> Any:
    """Tensors, also those in a list, as the arrays that they hold; all else as it is."""
    if isinstance(x, torch.Tensor):
        return x.detach().cpu().resolve_conj().resolve_neg().numpy()
    return [*map(_bare, x)] if isinstance(x, list | tuple) else x


def _only(x: Any) -> Any:
    """The one entry of a container that has one; all else as it is."""
    x = _bare(x)
    if isinstance(x, np.ndarray | np.generic):
        return x.item() if x.size == 1 else x
    return _only(next(iter(x))) if isinstance(x, list | tuple | set | frozenset) and len(x) == 1 else x


def _array(x: Any) -> np.ndarray | None:
    """Numbers in any nesting as an array; None for what is no array of numbers."""
    try:
        found = np.asarray(_bare(x))
        if found.dtype == object and all(isinstance(v, numbers.Number) for v in found.flat):
            found = found.astype(float)  # fractions
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    return found if found.dtype.kind in "biufc" else None


def _shown(answer: Any) -> str:
    """An answer in a few words."""
    if callable(answer):
        kind = "class" if isinstance(answer, type) else "function"
        return f"the {kind} {getattr(answer, '__name__', type(answer).__name__)}"
    text = " ".join(repr(answer).split())
    return text if len(text) <= 40 else f"{text[:37]}..."


# --- right, a known mistake, or neither


class Span(NamedTuple):
    """All numbers from `low` to `high`."""

    low: float
    high: float


Numbers = float | Span | tuple[float, ...]  # a number, a range of them, or several that will do alike


@dataclass(frozen=True)
class Numeric:
    """What is said of a number: nothing if it is `right`, the text of the one in `wrong` that it is, or `otherwise`."""

    right: Numbers
    wrong: Mapping[Any, str]  # Numbers -> text
    otherwise: str
    rel_tol: float = 1e-3

    def judge(self, answer: Any) -> str | None:
        got = number(answer)
        if _is_one(got, self.right, self.rel_tol):
            return None
        return _known(got, self.wrong, self.rel_tol) or self.otherwise

    def spoken(self) -> dict[str, Any]:
        """The rule in plain data: what a page needs to judge as `judge` does."""
        wrong = [[_plain(values), says] for values, says in self.wrong.items()]
        return {
            "kind": "number", "right": _plain(self.right), "wrong": wrong, "otherwise": self.otherwise,
            "rel_tol": self.rel_tol, "abs_tol": ABS_TOL, "no_number": NO_NUMBER,
        }  # fmt: skip


@dataclass(frozen=True)
class Whole:
    """What is said of a count: as `Numeric`, but it must be a whole number, and nothing near the right one will do."""

    right: int | Span
    wrong: Mapping[Any, str]
    otherwise: str

    def judge(self, answer: Any) -> str | None:
        got = number(answer)
        if got.is_integer() and _is_one(got, self.right, 0):
            return None
        if says := _known(got, self.wrong, 0 if got.is_integer() else NEAR):
            return says
        return self.otherwise if got.is_integer() else f"{NOT_WHOLE.format(f'{got:g}')} {self.otherwise}"

    def spoken(self) -> dict[str, Any]:
        as_number = Numeric(self.right, self.wrong, self.otherwise, NEAR).spoken()
        return as_number | {"kind": "whole", "not_whole": NOT_WHOLE}


@dataclass(frozen=True)
class Word:
    """What is said of one word among those that `says` has: nothing if it is `right`."""

    right: str
    says: Mapping[str, str]  # every other word -> what is wrong with it

    @property
    def words(self) -> list[str]:
        return sorted({self.right, *self.says})

    def judge(self, answer: Any) -> str | None:
        found = word(answer, self.words)
        return None if found == self.right else self.says[found]

    def spoken(self) -> dict[str, Any]:
        return {"kind": "word", "right": self.right, "says": dict(self.says), "words": self.words}


Rule = Numeric | Whole | Word


def ruled(make: Callable[[], Rule]) -> Callable[[object], None]:
    """Turn a function that returns a rule into a checker. `checker.rule()` is the rule, for a page without Python."""

    @functools.wraps(make)
    def judge(answer: Any) -> str | None:
        return make().judge(answer)

    check = checker(judge)
    check.rule = make  # type: ignore[attr-defined]
    return check


def _plain(values: Numbers) -> Any:
    """Numbers as JSON has them: a list of those that will do, or {low, high}, either of which may be null."""
    if isinstance(values, Span):
        return {key: v if math.isfinite(v) else None for key, v in values._asdict().items()}
    return [*values] if isinstance(values, tuple) else [values]


def _alike(found: np.ndarray, atol: float, value: object) -> bool:
    other = _array(value)
    return other is not None and other.shape == found.shape and np.allclose(found, other, atol=atol)


def _known(got: float, wrong: Mapping[Any, str], rel_tol: float) -> str | None:
    return next((says for values, says in wrong.items() if _is_one(got, values, rel_tol)), None)


def _is_one(got: float, values: Numbers, rel_tol: float) -> bool:
    if isinstance(values, Span):
        return values.low <= got <= values.high
    several = values if isinstance(values, tuple) else (values,)
    return any(math.isclose(got, value, rel_tol=rel_tol, abs_tol=ABS_TOL) for value in several)


def arrays(got: object, right: object, wrong: Mapping[str, object], otherwise: str, atol: float = 1e-5) -> str | None:
    """Judge an array or a tensor: None if it is right, else the key in `wrong` whose value it is, or `otherwise`."""

    found = _array(got)
    if found is None:
        return f"answer with numbers, not {_shown(got)}."
    is_like = functools.partial(_alike, found, atol)
    if is_like(right):
        return None
    if says := next((says for says, value in wrong.items() if is_like(value)), None):
        return says
    if not np.isfinite(found).all():
        return f"some of your numbers are infinite or NaN (0 / 0, 0 times infinity, the logarithm of 0): {otherwise}"
    return otherwise
