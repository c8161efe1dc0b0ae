"""Pictures for readers without JavaScript: well-formed, inside their frame, of the very numbers, on every page."""
import re
import xml.etree.ElementTree as ET

import pytest

from fourierqk import widgets
from fourierqk.widgets.still import FUTURE, PAST, Bars, Curve, Spans, chart

FRAMED = re.compile(r'viewBox="0 0 (\d+) (\d+)"')
UNDRAWN = {"AttentionLens"}  # its numbers are those of a model that runs in the page alone


def read(svg: str) -> ET.Element:
    return ET.fromstring(f"<div>{svg}</div>")


@pytest.mark.parametrize("name", [name for name in widgets.WIDGETS if name not in UNDRAWN])
def test_every_widget_is_drawn_inside_its_frame(name):
    svg = getattr(widgets, name)().picture()
    width, height = map(int, FRAMED.search(svg).groups())
    tree = read(svg)
    boxes = [{k: float(r.get(k)) for k in ("x", "y", "width", "height")} for r in tree.iter("rect")]
    points = [tuple(map(float, p.split(","))) for line in tree.iter("polyline") for p in line.get("points").split()]
    points += [(b["x"] + s * b["width"], b["y"] + s * b["height"]) for b in boxes for s in (0, 1)]
    assert len(points) > 4 and all(0 <= x <= width and 0 <= y <= height for x, y in points)
    assert all(panel.get("role") == "img" and panel.get("aria-label") for panel in tree.iter("svg"))
    assert len(svg) < 20_000, "a page carries it"


def test_a_mark_stands_where_its_numbers_say():
    """The middle of the axes is the middle of the frame that is drawn."""
    tree = read(chart("t", "x", "y", Curve([0, 1, 2], [0, 5, 10]), Bars([1], [10], PAST, 2)))
    frame, bar = ({k: float(r.get(k)) for k in ("x", "y", "width", "height")} for r in tree.iter("rect"))
    assert bar == pytest.approx(frame, abs=0.11)
    middle = tuple(map(float, tree.find(".//polyline").get("points").split()[1].split(",")))
    assert middle == pytest.approx((frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2), abs=0.11)


def test_words_are_escaped_and_ticks_are_the_given_ones():
    tree = read(chart("a < b & c", "x", "y", Spans([(0, 1, 0, 1, 0.5)], FUTURE), xticks={0.5: "<"}))
    words = [text.text for text in tree.iter("text")]
    assert words[0] == "a < b & c" and "<" in words and "0.5" in words


def test_the_ring_is_red_before_its_impulse():
    widget = widgets.TokenRing("two-sided", 8)
    fills = [rect.get("fill") for rect in read(widget.picture()).iter("rect")][1:]
    assert fills == [FUTURE] * 3 + [PAST] * 4
