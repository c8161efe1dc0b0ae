"""One look for every figure, on white and on dark, and the few strokes that figures are drawn with."""
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
import torch

from fourierqk.filters import Filter

PAST, FUTURE, BASELINE = "#2b6cb0", "#c53030", "#7a7a7a"  # red, blue and grey mean this, and nothing else
# At least 3:1 on white and on #121212, and apart for colour-blind eyes too.
CATEGORIES = ("#c87805", "#2ca15b", "#bc49ad", "#984d18", "#8c4ad9")
COLOURS = {  # the same system has the same colour in every figure of the book
    "base-dot": BASELINE, "fourier-qk": CATEGORIES[0], "sliding-fourier-qk": CATEGORIES[1],
    "multifourier-qk": CATEGORIES[2], "random-qk": CATEGORIES[3], "causal-morlet": CATEGORIES[4],
}  # fmt: skip
TEXT, CLEAR, FAINT, MIDDLE = "#767676", "rgba(0,0,0,0)", "rgba(128,128,128,0.25)", "rgba(128,128,128,0.5)"
# A notebook may be white or dark, so its figures hold what suits both. A page knows which it is, and puts these in
# their place: words and the strokes that are no data get its ink, and on dark all colours are lighter.
SHADES = {
    "light": {TEXT: "#323232"},
    "dark": {
        TEXT: "#ced6dd", PAST: "#6cb2f5", FUTURE: "#fc8181", BASELINE: "#a8a8a8",
        **dict(zip(CATEGORIES, ("#f59a2c", "#4fe39a", "#da82e4", "#ab7a3a", "#a470fa"), strict=True)),
    },
}  # fmt: skip
POINTS, CELLS = 2000, 128  # the most points a line, and cells a side of a map, that a figure holds

_axis = dict(gridcolor=FAINT, linecolor=FAINT, zerolinecolor=MIDDLE, automargin=True, title=dict(standoff=10))
_below = dict(ticks="outside", ticklen=6, tickcolor=CLEAR)  # the first tick of x stays clear of the lowest of y
pio.templates["fourierqk"] = go.layout.Template(
    layout=dict(
        font=dict(color=TEXT, size=13), paper_bgcolor=CLEAR, plot_bgcolor=CLEAR, colorway=CATEGORIES,
        xaxis=_axis | _below, yaxis=_axis, meta=SHADES,
    )
)  # fmt: skip


def figure(xlabel: str, ylabel: str, height: int = 320, *, room: int = 40) -> go.Figure:
    """An empty figure with titled axes. room: how many letters of xlabel fit into a line, on a phone too."""
    return geometry(go.Figure(), height).update_layout(xaxis_title=wrapped(xlabel, room), yaxis_title=ylabel)


def wrapped(words: str, width: int) -> str:
    """Words in lines of at most so many letters."""
    return "<br>".join(textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False))


def geometry(fig: go.Figure, height: int) -> go.Figure:
    """Height, margins and legend. They live in the figure, colours in the template: a page may bring its own."""
    legend, margin = dict(orientation="h", x=0, y=1.02, yanchor="bottom"), dict(l=10, r=24, t=30, b=10)
    return fig.update_layout(template="fourierqk", height=height, margin=margin, legend=legend)


def alt(fig: go.Figure, what: str, seen: Sequence[str]) -> go.Figure:
    """The figure with its text for those who do not see it."""
    return fig.update_layout(meta={"alt": f"{what}. {'; '.join(seen)}."})


def named(x: object, kind: type = object) -> dict:
    """One thing, or a mapping of names to things, as a mapping; a filter alone goes by its class."""
    things = dict(x) if isinstance(x, Mapping) else {type(x).__name__ if isinstance(x, Filter) else "signal": x}
    if not things or not all(isinstance(v, kind) for v in things.values()):
        raise ValueError(f"expected one {kind.__name__.lower()} or a dict of at least one, got {x!r:.80}")
    return things


def colours(names: Iterable[str]) -> dict[str, str]:
    """One colour a name: its own if it has one, else the next that no name of the figure owns."""
    free = [c for c in CATEGORIES if c not in {COLOURS.get(name) for name in names}] or CATEGORIES
    others = [name for name in names if name not in COLOURS]
    return {name: COLOURS.get(name) or free[others.index(name) % len(free)] for name in names}


def array(x: object) -> np.ndarray:
    """A tensor from any device, an array or a list, as an array."""
    return x.detach().cpu().resolve_conj().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def signal(name: str, x: object) -> np.ndarray:
    """A signal (T,) as an array."""
    x = array(x)
    if x.ndim != 1 or not len(x):
        raise ValueError(f"{name!r} must be one signal of shape (T,) with T >= 1, got {x.shape}")
    return x


def numbers(a: np.ndarray) -> list:
    """Plain numbers, rounded to a ten-thousandth of the largest; None where there is none.

    Lists, because plotly 6 and later send arrays in a form that an older plotly.js cannot read.
    """
    if a.dtype.kind in "biu":
        return a.astype(int).tolist()
    a = a.astype(float)
    top = np.abs(a[np.isfinite(a)]).max(initial=0)
    a = np.round(a, 4 - math.floor(math.log10(top))) + 0.0 if top else a  # + 0: no minus zero
    return np.where(np.isfinite(a), a.astype(object), np.array(None)).tolist()


def envelope(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most POINTS points: of longer lines the extremes of each block, so that no peak is lost."""
    if len(y) <= POINTS:
        return x, y
    blocks = np.array_split(np.arange(len(y)), POINTS // 2)
    keep = np.unique([b[i] for b in blocks for i in (y[b].argmin(), y[b].argmax())])
    return x[keep], y[keep]


def line(
    fig: go.Figure, x: np.ndarray, y: np.ndarray, name: str, colour: str, *, dash: str = "solid", legend: bool = True
) -> None:
    """A line over x. Lines of one colour come and go together."""
    style, (x, y) = dict(color=colour, dash=dash, width=2), envelope(x, y)
    fig.add_scatter(
        x=numbers(x), y=numbers(y), mode="lines", name=name, legendgroup=colour, line=style, showlegend=legend
    )


def stems(
    fig: go.Figure, x: np.ndarray, y: np.ndarray, name: str, colour: str, *, legend: bool, dots: bool
) -> None:
    """A stem a value, from 0 up or down to it: between two bins there is nothing to join."""
    stem = dict(type="data", symmetric=False, width=0, thickness=2, color=colour)
    stem |= dict(array=numbers(np.maximum(-y, 0)), arrayminus=numbers(np.maximum(y, 0)))
    fig.add_scatter(
        x=numbers(x), y=numbers(y), mode="markers", error_y=stem, marker=dict(color=colour, size=7 if dots else 2),
        name=name, legendgroup=colour, showlegend=legend, cliponaxis=False,
    )  # fmt: skip


def lift_legend(fig: go.Figure) -> None:
    """Put it above what stands at the head of a plot."""
    fig.update_layout(legend_y=1 + 26 / (fig.layout.height - 110), margin_t=50)


def head(fig: go.Figure, panel: int, words: Sequence[tuple[str, str, float, str]], along: str = "domain") -> None:
    """Words above a panel, wherever on the page it goes: text, colour, place and what of it stands there.

    along: "domain", and a place goes from 0 (left) to 1 (right), or "x", and it is a value of x.
    """
    own = f"{panel}" if panel > 1 else ""
    place = dict(xref=f"x{own} domain" if along == "domain" else f"x{own}", yref=f"y{own} domain", y=1, yshift=2)
    for text, colour, x, anchor in words:
        font = dict(color=colour, size=12)
        fig.add_annotation(text=text, showarrow=False, font=font, x=x, xanchor=anchor, yanchor="bottom", **place)


def matrix(fig: go.Figure, m: np.ndarray, *, top: float, above: str, below: str | None, colorbar: dict) -> None:
    """A map with square cells, row 0 on top: transparent at 0, `above` at top and, unless None, `below` at -top.

    A large map shows the strongest value of each block.
    """
    step = math.ceil(max(m.shape) / CELLS)
    rows, columns = (math.ceil(side / step) for side in m.shape)
    spare = (0, rows * step - m.shape[0]), (0, columns * step - m.shape[1])
    padded = np.pad(m.astype(float), spare, constant_values=np.nan).reshape(rows, step, columns, step)
    blocks = padded.swapaxes(1, 2).reshape(rows, columns, -1)
    strongest = np.nan_to_num(np.abs(blocks), nan=-1).argmax(-1)
    z = numbers(np.take_along_axis(blocks, strongest[..., None], -1)[..., 0])
    scale = [[0, _faded(above)], [1, above]]
    if below:
        scale = [[0, below], [0.5, _faded(below)], [0.5, _faded(above)], [1, above]]
    colour = dict(zmin=-top if below else 0, zmax=top, colorscale=scale, colorbar=_BELOW | colorbar)
    fig.add_heatmap(z=z, x0=(step - 1) / 2, dx=step, y0=(step - 1) / 2, dy=step, **colour)
    shared = dict(constrain="domain", showgrid=False, zeroline=False)
    fig.update_xaxes(range=[-0.5, m.shape[1] - 0.5], **places(m.shape[1]), **shared)
    fig.update_yaxes(range=[m.shape[0] - 0.5, -0.5], **places(m.shape[0]), scaleanchor="x", **shared)


_BELOW = dict(
    orientation="h", x=0.5, xanchor="center", y=0, yref="container", yanchor="bottom", thickness=12, len=200,
    lenmode="pixels", tickangle=0,
)  # fmt: skip  # under the map, where a phone has room for it


def _faded(colour: str) -> str:
    """The same hue, transparent: a fade to another transparent colour would turn grey on its way."""
    return f"{colour}00"


def floor(fig: go.Figure, seen: list[str], level: object | None) -> list[tuple[str, float, str]]:
    """A dashed line at the entropy floor, one number or one a position, as wide as what is drawn -> how it ends."""
    if level is None:
        return []
    x = np.unique(np.concatenate([np.array(t.x) for t in fig.data]))
    level = array(level)
    y = np.full(len(x), float(level)) if level.ndim == 0 else signal("floor", level)[x]
    line(fig, x, y, "entropy floor", TEXT, dash="dash")
    seen.append(f"entropy floor: {say(y.mean())}")
    return [("entropy floor", y[-1], TEXT)]


def marks(fig: go.Figure, seen: list[str], periods: Sequence[float]) -> None:
    """Dotted lines at periods in tokens, whatever the scale of the axis, and above them which they are."""
    for p in periods:
        fig.add_vline(1 / p, line=dict(color=TEXT, width=1, dash="dot"))
        x = -np.log10(p) if fig.layout.xaxis.type == "log" else 1 / p  # plotly places texts by exponent, lines by value
        unit = " tokens" if p == min(periods) else ""  # once, where no other stands to the right
        head(fig, 1, [(f"{p:g}{unit}", TEXT, x, "left" if unit else "center")], along="x")
    if periods:
        lift_legend(fig)
        seen.append(f"marked: periods of {', '.join(f'{p:g}' for p in periods)} tokens")


def glyphs(text: Sequence[str], start: int = 0) -> dict:
    """Axis ticks that spell a text, one token a tick."""
    shown = [{" ": "␣", "\n": "⏎"}.get(c, c) for c in text]
    ticks = dict(tickvals=list(range(start, start + len(shown))), ticktext=shown, tickangle=0)
    return ticks | dict(tickfont=dict(size=11 if len(shown) < 30 else 9), showgrid=False)


def places(n: int, start: int = 0) -> dict:
    """Axis ticks at n positions from `start` on: the quarters, and the last, of which texts speak."""
    step = max(1, round(n / 4))
    return dict(tickvals=[start + i for i in range(0, n, step) if n - 1 - i > step / 2] + [start + n - 1], tickangle=0)


def frequency_ticks(most: float, least: float = 0.0) -> dict:
    """Ticks at one over a period: frequency and period at a glance. From 0, or from `least` on a log scale."""
    if least:  # a phone has room for one in two octaves; the last is the shortest period that there is
        periods, zero = [p for p in (2, *(4**i for i in range(1, 6))) if least <= 1 / p <= most], []
    else:
        periods, zero = [p for p in (2**i for i in range(1, 12)) if most / 10 < 1 / p <= most], [0]
    texts = [*map(str, zero), *(f"1/{p}" for p in periods)]
    return dict(tickvals=zero + [1 / p for p in periods], ticktext=texts, tickangle=0)


def say(x: float) -> str:
    """A number for an alt text."""
    return f"{float(x):.3g}"


def at(f: float) -> str:
    """A frequency for an alt text."""
    return f"{say(f)} cycles per token" + (f" (a period of {say(1 / f)} tokens)" if f > 0 else " (the mean)")
