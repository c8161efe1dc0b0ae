"""Charts of a widget's first state, for readers without JavaScript: SVG in the colours of the text around it."""
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["BAND", "FUTURE", "INK", "PAST", "Bars", "Curve", "Spans", "chart"]

PAST, FUTURE, BAND, INK = "#2b6cb0", "#c53030", "#6b46c1", "currentColor"  # as common.js has them by day
WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT = 640, 240, 74, 14, 30, 46


@dataclass(frozen=True)
class Curve:
    """A curve through points."""

    x: Sequence[float]
    y: Sequence[float]
    colour: str = BAND
    dashed: bool = False

    def drawn(self, at: "_Place") -> str:
        points = " ".join(f"{at.x(x):.1f},{at.y(y):.1f}" for x, y in zip(self.x, self.y, strict=True))
        dash = ' stroke-dasharray="5 4"' if self.dashed else ""
        return f'<polyline points="{points}" fill="none" stroke="{self.colour}" stroke-width="1.8"{dash}/>'


@dataclass(frozen=True)
class Bars:
    """Bars from zero around `at`, `width` wide in units of the axis."""

    at: Sequence[float]
    size: Sequence[float]
    colour: str = BAND
    width: float = 0.8

    @property
    def x(self) -> list[float]:
        return [v + side * self.width / 2 for v in self.at for side in (-1, 1)]

    @property
    def y(self) -> list[float]:
        return [0, *self.size]

    def drawn(self, at: "_Place") -> str:
        sides = zip(self.x[::2], self.x[1::2], self.size, strict=True)
        return "".join(at.box(left, right, 0, size, self.colour) for left, right, size in sides if size)


@dataclass(frozen=True)
class Spans:
    """Boxes of one colour, each (left, right, low, high, opacity)."""

    boxes: Sequence[tuple[float, float, float, float, float]]
    colour: str = BAND

    @property
    def x(self) -> list[float]:
        return [v for box in self.boxes for v in box[:2]]

    @property
    def y(self) -> list[float]:
        return [v for box in self.boxes for v in box[2:4]]

    def drawn(self, at: "_Place") -> str:
        return "".join(at.box(*box[:4], self.colour, box[4]) for box in self.boxes)


@dataclass(frozen=True)
class _Place:
    """From the axes' units to pixels."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, v: float) -> float:
        low, high = self.x_range
        return LEFT + (v - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, v: float) -> float:
        low, high = self.y_range
        return TOP + (high - v) / (high - low) * (HEIGHT - TOP - FOOT)

    def box(self, left: float, right: float, low: float, high: float, colour: str, opacity: float = 0.8) -> str:
        top, size = min(self.y(low), self.y(high)), abs(self.y(low) - self.y(high))
        where = f'x="{self.x(left):.1f}" y="{top:.1f}" width="{self.x(right) - self.x(left):.1f}" height="{size:.1f}"'
        return f'<rect {where} fill="{colour}" fill-opacity="{opacity:.2f}"/>'


Ticks = Mapping[Any, str]  # places on an axis -> what stands there


def chart(
    title: str, xlabel: str, ylabel: str, *marks: Curve | Bars | Spans, xticks: Ticks | None = None,
    yticks: Ticks | None = None,
) -> str:  # fmt: skip
    """An SVG of one panel. Ticks are {value: text}; without them an axis names its ends and its middle, or zero."""
    at = _Place(_ends(v for mark in marks for v in mark.x), _ends(v for mark in marks for v in mark.y))
    xticks, yticks = (given or _ticks(*ends) for given, ends in ((xticks, at.x_range), (yticks, at.y_range)))
    bottom, right = HEIGHT - FOOT, WIDTH - RIGHT
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" stroke="{INK}" '
        'stroke-opacity="0.4"/>',
        *(mark.drawn(at) for mark in marks),
        _text(title, LEFT, 18, "start", "bold"),
        _text(xlabel, (LEFT + right) / 2, HEIGHT - 6),
        f'<g transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)">{_text(ylabel, 0, 0)}</g>',
        *(_text(text, at.x(v), bottom + 17) for v, text in xticks.items()),
        *(_text(text, LEFT - 6, at.y(v) + 4, "end") for v, text in yticks.items()),
    ]
    name = html.escape(f"{title}: {ylabel} over {xlabel}")
    frame = f'class="fqk-still" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}"'
    return f"<svg {frame}>{''.join(parts)}</svg>"


def _ends(values: Iterable[float]) -> tuple[float, float]:
    several = [*values]
    low, high = min(several), max(several)
    return (low, high) if high > low else (low - 1, high + 1)


def _ticks(low: float, high: float) -> Ticks:
    """Both ends, and zero if it lies well between them, else their middle."""
    room = 0.15 * (high - low)
    between = 0 if low + room < 0 < high - room else (low + high) / 2
    return {v: f"{v:.3g}" if abs(v) > 1e-9 * room else "0" for v in (low, between, high)}


def _text(text: str, x: float, y: float, anchor: str = "middle", weight: str = "normal") -> str:
    look = f'font-size="13" font-weight="{weight}" text-anchor="{anchor}" fill="{INK}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{html.escape(text)}</text>'
