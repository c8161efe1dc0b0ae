"""Checks of what a caller gives, each with one error text: a whole number, a name out of a list."""
import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral

__all__ = ["check_count", "check_keywords", "nearest", "unknown_name"]


def check_count(value: object, name: str, least: int = 1, most: float | None = None) -> int:
    """`value` as an int. ValueError unless it is a whole number (2, not 2.0), at least `least` and at most `most`."""
    if not isinstance(value, Integral) or int(value) < least or (most is not None and int(value) > most):
        limit = "" if most is None else f" and at most {most}"
        raise ValueError(f"{name} = {value!r} must be a whole number, at least {least}{limit}")
    return int(value)


def unknown_name(kind: str, name: object, known: Iterable[str]) -> str:
    """What to say of a name that is not `known`: the nearest ones or, where none is near, all of them."""
    known = list(known)
    return f"unknown {kind} {name!r}: {nearest(name, known) or 'there are ' + (', '.join(known) or 'none')}"


def check_keywords(made: Callable[..., object], given: Mapping[str, object]) -> None:
    """TypeError for a keyword that a class, or a function, does not take; it suggests the nearest one."""
    parameters = inspect.signature(made).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for name in given:
            if name not in parameters:
                raise TypeError(unknown_name(f"setting of {made.__name__}", name, parameters))


def nearest(name: object, known: Iterable[str]) -> str:
    """The question whether one of the names nearest to this was meant; "" where none is near."""
    near = difflib.get_close_matches(str(name), known, n=2)
    return f"did you mean {' or '.join(near)}?" if near else ""
