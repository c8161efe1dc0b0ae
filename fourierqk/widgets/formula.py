"""A reader's own formula of a few names and functions, computed without `eval`; filter_designer.js has the same."""
import math
import re
from collections.abc import Callable
from typing import NoReturn

import torch
from torch import Tensor

from fourierqk.filters import CircularFilter

VARIABLES = ("f", "c", "w")  # frequency, centre, bandwidth
FUNCTIONS: dict[str, tuple[int, Callable[..., Tensor]]] = {  # how many values each takes
    "abs": (1, torch.abs), "cos": (1, torch.cos), "exp": (1, torch.exp), "log": (1, torch.log),
    "max": (2, torch.maximum), "min": (2, torch.minimum), "sin": (1, torch.sin), "sqrt": (1, torch.sqrt),
}  # fmt: skip
OPERATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "<": lambda a, b: (a < b).to(a.dtype), ">": lambda a, b: (a > b).to(a.dtype),
    "+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.div, "^": torch.pow,
}  # fmt: skip
LEVELS = ("<>", "+-", "*/")  # what binds least first
KNOWN = ", ".join([*VARIABLES, "pi", *FUNCTIONS])
_NUMBER = r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
_TOKEN = re.compile(rf"\s*(?:{_NUMBER}|(?P<name>[A-Za-z_]\w*)|(?P<sign>[-+*/^(),<>]))")

Values = dict[str, Tensor]
Compiled = Callable[[Values], Tensor]


class _Parser:
    """Reads a formula from left to right, a method a level."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, at = text.rstrip(), [], 0
        while at < len(self.text):
            if m := _TOKEN.match(self.text, at):
                kind = str(m.lastgroup)
                self.tokens.append((kind, m[kind], m.start(kind)))
                at = m.end()
            else:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                self.fail(at, f'"{self.text[at]}" has no meaning here')
        self.tokens.append(("end", "", len(self.text)))

    def fail(self, at: int, what: str) -> NoReturn:
        raise ValueError(f"at character {at + 1}: {what}")

    def take(self, signs: str) -> str:
        """The next token, if it is one of these signs."""
        kind, token, _ = self.tokens[0]
        return self.tokens.pop(0)[1] if kind == "sign" and token in signs else ""

    def need(self, sign: str) -> None:
        if not self.take(sign):
            self.fail(self.tokens[0][2], f'"{sign}" is missing')

    def whole(self) -> Compiled:
        found = self.level(0)
        _, token, at = self.tokens[0]
        if token:
            self.fail(at, f'an operator is missing before "{token}"')
        return found

    def level(self, depth: int) -> Compiled:
        if depth == len(LEVELS):
            return self.signed()
        left = self.level(depth + 1)
        while sign := self.take(LEVELS[depth]):
            left = _joined(sign, left, self.level(depth + 1))
        return left

    def signed(self) -> Compiled:
        if self.take("-"):
            inner = self.signed()
            return lambda v: -inner(v)
        base = self.atom()
        return _joined("^", base, self.signed()) if self.take("^") else base

    def atom(self) -> Compiled:
        kind, token, at = self.tokens[0]
        if self.take("("):
            inner = self.level(0)
            self.need(")")
            return inner
        if kind not in ("number", "name"):
            self.fail(at, "a number, a name or a bracket is missing" + (f' before "{token}"' if token else ""))
        self.tokens.pop(0)
        if kind == "number" or token == "pi":
            value = math.pi if token == "pi" else float(token)
            return lambda v: torch.full_like(v["f"], value)
        if token in VARIABLES:
            return lambda v: v[token]
        if token not in FUNCTIONS:
            self.fail(at, f'"{token}" is not known, but {KNOWN} are')
        return self.call(token, at)

    def call(self, name: str, at: int) -> Compiled:
        self.need("(")
        given = [self.level(0)]
        while self.take(","):
            given.append(self.level(0))
        self.need(")")
        count, function = FUNCTIONS[name]
        if len(given) != count:
            self.fail(at, f"{name} takes {count} value{'s' if count > 1 else ''}, not {len(given)}")
        return lambda v: function(*(each(v) for each in given))


def _joined(sign: str, left: Compiled, right: Compiled) -> Compiled:
    return lambda v: OPERATORS[sign](left(v), right(v))


def compiled(text: str) -> Compiled:
    """A function of {f, c, w}. Raises ValueError that says what is wrong with the formula, and at which character."""
    return _Parser(text).whole()


class Formula(CircularFilter):
    """A two-sided filter whose response is a formula of f, the frequency's size, of a centre c and a bandwidth w.

    It may hold numbers, f, c, w, pi, + - * / ^, < and > (1 if so, else 0), brackets, and abs, cos, exp, log, max, min,
    sin, sqrt. Raises ValueError where it is wrong or not finite.
    """

    def __init__(self, text: str, centre: float, width: float) -> None:
        super().__init__()
        self.text, self.centre, self.width = text, centre, width
        self._value = compiled(text)
        f = torch.arange(513, dtype=torch.float64) / 1024
        wrong = ~torch.isfinite(self.response(f)[0])
        if wrong.any():
            raise ValueError(f"{text} is not finite at f = {f[wrong][0]:.3g}")

    def response(self, f: Tensor) -> Tensor:
        given = {"f": f.abs(), "c": torch.full_like(f, self.centre), "w": torch.full_like(f, self.width)}
        return self._value(given)[None]

    def settings(self) -> dict[str, object]:
        return {"text": self.text, "centre": self.centre, "width": self.width}
