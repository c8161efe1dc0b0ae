"""Names beside what they name, so that nobody has to look them up in a legend.

Two ways: at the right ends of lines, apart from each other, or at a spot near a line or a point that is free on a phone
as on a page. Where a line has no such spot, a legend says it.
"""
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

# In pixels, a little more than fonts need: what a letter and a line of text take, and what frames a plot up and down.
LETTER, LINE, FRAME = 7.2, 16, 100
WIDTHS = (270, 640)  # of the plot on a phone and on a page
GAP = 6  # between a name and what it names


class Curve(NamedTuple):
    """Lines of one name, or points: in the units of the axes, of a log axis the exponents."""

    lines: Sequence[np.ndarray]  # (points, 2) each
    colour: str


def name_ends(fig: go.Figure, found: Sequence[tuple[str, float, str]]) -> None:
    """Write names at the right edge, each at its level or as near to it as the others allow: (name, level, colour).

    The legend remains for a page too narrow for them: it drops what is called "end".
    """
    levels = np.concatenate([np.array(t.y, dtype=float) for t in fig.data])
    low, high = np.nanmin(levels), np.nanmax(levels)
    room = (high - low or 1.0) / 20
    low, high = low - room, high + room
    pixels = (fig.layout.height - FRAME) / (high - low)
    order = sorted(range(len(found)), key=lambda i: found[i][1])
    spots = spread([found[i][1] for i in order], LINE / pixels, low, high)
    for i, y in zip(order, spots, strict=True):
        name, _, colour = found[i]
        _write(fig, _keyed(name, colour), (1, y), (1, 0), xref="paper", name="end")
    width = max(LETTER * (len(name) + 4) for name, *_ in found)  # the stroke is as wide as two letters
    fig.update_layout(showlegend=False, margin_r=round(width)).update_yaxes(range=[low, high])


def spread(levels: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending levels, moved apart to at least `gap`, and into low ... high where they all fit."""
    spots = list(levels)
    for i, here in enumerate(spots):
        spots[i] = max(here, low, spots[i - 1] + gap if i else low)
    for i in reversed(range(len(spots))):
        spots[i] = min(spots[i], spots[i + 1] - gap if i + 1 < len(spots) else high)
    return spots


def name_lines(fig: go.Figure, curves: Mapping[str, Curve], x: Sequence[float], least: float = np.inf) -> None:
    """Fix the axis of y, and write the names of several curves beside them; a legend remains if one finds no room.

    x: the range of the axis of x. least: what the axis of y begins with, if no value is smaller.
    """
    levels = np.concatenate([line[:, 1] for name, curve in curves.items() if name[0] != "_" for line in curve.lines])
    low, high = min(least, np.nanmin(levels)), np.nanmax(levels)
    room = (high - low or 1.0) / 12  # for a name above the highest
    y = [low if low == least else low - room, high + room]
    fig.update_yaxes(range=y)
    spots = _free(fig.layout.height - FRAME, curves, x, y)
    if 1 < len(spots) == sum(name[0] != "_" for name in curves):
        for name, (at, side) in spots.items():
            _write(fig, _keyed(name, curves[name].colour), at, side)
        fig.update_layout(showlegend=False)


def name_points(fig: go.Figure, points: Mapping[str, Curve], x: Sequence[float], y: Sequence[float]) -> None:
    """Write the names of points beside them, of those that have room. x, y: the ranges of the axes."""
    for name, (at, side) in _free(fig.layout.height - FRAME, points, x, y).items():
        _write(fig, name, at, side)


Spot = tuple[np.ndarray, tuple[int, int]]  # a point, in the units of the axes, and the side of it


def _free(height: float, curves: Mapping[str, Curve], x: Sequence[float], y: Sequence[float]) -> dict[str, Spot]:
    """For each name a spot that hides nothing, whatever the width, if there is one.

    What has no name of its own, and must not be hidden, goes by names that begin with "_".
    """
    origin, span = np.array([x[0], y[0]]), np.array([x[1] - x[0], y[1] - y[0]])
    unit = {name: [(line - origin) / span for line in curve.lines] for name, curve in curves.items()}
    seen = np.concatenate([_dense(line) for lines in unit.values() for line in lines])
    sizes, spots = [np.array([w, height]) for w in WIDTHS], {}
    taken: list[list[np.ndarray]] = [[] for _ in WIDTHS]
    for name in (name for name in curves if name[0] != "_"):
        for at, side in itertools.product(_anchors(unit[name]), _SIDES):
            boxes = [_box(at * size, side, name) for size in sizes]
            if all(_clear(*each) for each in zip(boxes, sizes, [seen * size for size in sizes], taken, strict=True)):
                spots[name] = (at * span + origin, side)
                for box, others in zip(boxes, taken, strict=True):
                    others.append(box)
                break
    return spots


def _clear(box: np.ndarray, size: np.ndarray, points: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    """Whether a box lies in the plot, holds no point of a curve, and meets no other box."""
    inside = (box[:2] >= 0).all() and (box[2:] <= size).all()
    hides = ((points > box[:2] - 2) & (points < box[2:] + 2)).all(1).any()
    return bool(inside and not hides and not any((box[:2] < o[2:]).all() and (o[:2] < box[2:]).all() for o in others))


_SIDES = ((0, 1), (1, 0), (-1, 0), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))  # above, right, left, below, corners


def _anchors(lines: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Where on its lines a name may stand: the highest points first."""
    points = np.concatenate([line[np.isfinite(line).all(1)] for line in lines])
    few = np.concatenate([points[[points[:, 1].argmax()]], points[:: max(1, len(points) // 48)]])
    return [few[0], *few[1:][np.argsort(-few[1:, 1], kind="stable")]]


def _dense(line: np.ndarray) -> np.ndarray:
    """Points all along a line, so close that no letter fits between two."""
    steps = np.linspace(0, len(line) - 1, 6 * 128)
    along = np.stack([np.interp(steps, np.arange(len(line)), column) for column in line.T], 1)
    return along[np.isfinite(along).all(1)]


def _box(at: np.ndarray, side: tuple[int, int], name: str) -> np.ndarray:
    """Left, low, right and high edge of a name beside a point, in pixels."""
    wide, (dx, dy) = LETTER * (len(name) + 2), side
    left = at[0] + dx * GAP - wide * (1 - dx) / 2
    low = at[1] + dy * GAP - LINE * (1 - dy) / 2
    return np.array([left, low, left + wide, low + LINE])


def _keyed(words: str, colour: str) -> str:
    """Words in the page's ink, readable on any ground, with a stroke of their colour before them."""
    return f'<span style="color:{colour}">━</span> {words}'


def _write(fig: go.Figure, words: str, at: Sequence[float] | np.ndarray, side: tuple[int, int], **how: object) -> None:
    (dx, dy), across, along = side, ("right", "center", "left"), ("top", "middle", "bottom")
    fig.add_annotation(
        text=words, showarrow=False, x=float(at[0]), y=float(at[1]), xshift=dx * GAP, yshift=dy * GAP,
        xanchor=across[dx + 1], yanchor=along[dy + 1], borderpad=0, **how,
    )  # fmt: skip
