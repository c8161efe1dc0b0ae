"""Live figures for the book, JupyterLab and Colab, and `Widget`, what every one of them is built on."""
import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anywidget
import traitlets as t

from fourierqk.checks import check_keywords, unknown_name
from fourierqk.records import folder
from fourierqk.storage import read_json

MIME = "application/vnd.fourierqk.widget.v1+json"  # what the book's pages are made from; other front ends ignore it
BUILDING = "FOURIERQK_BOOK"  # set to 1 by fourierqk.site.pages for the kernels of a book build

WIDGETS = {  # class -> the name of its module and of its script
    "AttentionLens": "attention_lens", "DFTExplorer": "dft_explorer", "FilterDesigner": "filter_designer",
    "FutureEditor": "future_editor", "GapBench": "gap_bench", "HalfKernel": "half_kernel",
    "InfluenceMap": "influence_map", "PhaseScrambler": "phase_scrambler", "RhythmFinder": "rhythm_finder",
    "ScaleMixer": "scale_mixer", "SeedBench": "seed_bench", "TokenRing": "token_ring",
}  # fmt: skip
CARRIES = {  # script -> the systems of book/records/future that it runs, by readers.js
    "attention_lens": ("base-dot", "fourier-qk"), "future_editor": ("base-dot", "fourier-qk", "prefix-fourier-qk"),
}  # fmt: skip
TOLD = ("vocab", "model", "filter", "weights", "losses", "floor")  # of such a record, to the page

# What a line of text is made a signal of: 1 where a character is of that kind, 0 elsewhere.
MARKS = {"spaces": str.isspace, "vowels": lambda c: c in "aeiouAEIOU", "capitals": str.isupper}

__all__ = [*WIDGETS, "Widget"]


def source(name: str) -> str:
    """The text of a file beside this one."""
    return (Path(__file__).parent / name).read_text("utf8")


def module(name: str) -> str:
    """The ES module of a widget: what all share, the models if it runs any, its own part; one text without imports."""
    data = {r["system"]: {key: r[key] for key in TOLD} for r in carried(name)}
    models = [f"const RECORDS = {json.dumps(data, separators=(',', ':'))};", source("readers.js")] if data else []
    return "\n".join([source("common.js"), source("sound.js"), *models, source(f"{name}.js")])


def carried(name: str) -> list[dict[str, Any]]:
    """The records of the models that a script runs; none of most."""
    return [read_json(folder("future") / f"{system}.json") for system in CARRIES.get(name, ())]


def uniform(seed: int) -> Iterator[float]:
    """Numbers in [0, 1), the same in the browser (common.js): a linear congruential generator of 32 bits."""
    state = seed
    for _ in range(4):  # neighbouring seeds begin alike
        state = (1664525 * state + 1013904223) % 2**32
    while True:
        state = (1664525 * state + 1013904223) % 2**32
        yield state / 2**32


class _Within(t.TraitType):
    """A synced trait from `low` to `high`, both included."""

    def __init__(self, default: float, low: float, high: float, unit: str = "") -> None:
        super().__init__(default)
        self.low, self.high, self.unit = low, high, unit
        self.tag(sync=True)

    def validate(self, obj: t.HasTraits, value: Any) -> Any:
        value = super().validate(obj, value)  # type: ignore[misc]  # of Float or Int
        if not self.low <= value <= self.high:
            limits = f"between {self.low} and {self.high} {self.unit}".rstrip()
            raise t.TraitError(f"{self.name} = {value} must lie {limits}")
        return value


class Number(_Within, t.Float):
    """A number in a range; NaN lies in none."""


class Whole(_Within, t.Int):
    """A whole number in a range."""


class Text(t.Unicode):
    """A synced text of `shortest` to `longest` characters."""

    def __init__(self, default: str, shortest: int, longest: int) -> None:
        super().__init__(default)
        self.shortest, self.longest = shortest, longest
        self.tag(sync=True)

    def validate(self, obj: t.HasTraits, value: Any) -> Any:
        value = super().validate(obj, value)
        if not self.shortest <= len(value) <= self.longest:
            limits = f"{self.shortest} to {self.longest}" if self.shortest < self.longest else self.shortest
            raise t.TraitError(f"{self.name} has {len(value)} characters, and must have {limits}")
        return value


class Widget(anywidget.AnyWidget):
    """A figure that computes and draws by itself in the browser (abstract). Python carries its settings, no more.

    A subclass in x.py names its script (`script = "x"`, `_esm = module("x")`) and declares synced traits. In a live
    notebook it is an ipywidget: observe, link, jslink, VBox. In a book build it has no kernel to talk to, and its
    output is its settings under a MIME type of our own, which fourierqk.site.pages turns into the same figure.
    """

    script = ""
    _css = source("widgets.css")
    _ipython_display_ = None  # ipywidgets 7 would prefer it to _repr_mimebundle_

    def __new__(cls, *args: Any, **kwargs: Any) -> "Widget":
        """TypeError for a setting that the widget does not have; Python's own would not say which there are."""
        check_keywords(cls, kwargs)
        return super().__new__(cls, *args, **kwargs)

    def picture(self) -> str:
        """What it shows, as SVG (fourierqk.widgets.still): the book's page has it for readers without JavaScript."""
        return ""

    def settings(self) -> dict[str, object]:
        """The synced traits of its own: all that the browser needs."""
        inherited = anywidget.AnyWidget.class_trait_names()
        own = (name for name in self.trait_names(sync=True) if name not in inherited and name[0] != "_")
        return {name: getattr(self, name) for name in sorted(own)}

    def __setattr__(self, name: str, value: object) -> None:
        """AttributeError for a setting that the widget does not have: Python alone would take any name in silence."""
        if not (name.startswith("_") or hasattr(type(self), name)):
            raise AttributeError(unknown_name(f"setting of {type(self).__name__}", name, self.settings()))
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """AttributeError for what the widget does not have; of a setting with the nearest ones."""
        if name.startswith("_") or hasattr(type(self), name):
            return object.__getattribute__(self, name)  # which says so, or what went wrong inside a property
        raise AttributeError(unknown_name(f"setting of {type(self).__name__}", name, self.settings()))

    def open(self) -> None:
        """Open the channel to the browser, except in a book build, where it would leave dead state in every page."""
        if not _building():
            super().open()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.settings().items())})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        ours = {"text/plain": repr(self), MIME: {"widget": self.script, "settings": self.settings()}}
        if _building():
            return ours, {}
        live = super()._repr_mimebundle_(**kwargs)
        data, metadata = live if isinstance(live, tuple) else (live or {}, {})  # Colab needs the metadata
        return {**data, **ours}, metadata


def _building() -> bool:
    return os.environ.get(BUILDING) == "1"


def __getattr__(name: str) -> type:
    """Import a widget when it is asked for, since a widget's module imports this one."""
    if name not in WIDGETS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{WIDGETS[name]}"), name)
