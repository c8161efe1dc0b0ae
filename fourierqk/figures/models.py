"""Figures of trained models: how they learned, what they reached, what they read."""
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fourierqk.figures import draw
from fourierqk.figures.draw import BASELINE, FUTURE, PAST, TEXT, say
from fourierqk.figures.labels import Curve, name_ends, name_points

LOSS = "loss (nats per token)"
# what an audit found -> colour, and a symbol for eyes that see no colours
STYLES = {"causal": (PAST, "circle"), "leaks": (FUTURE, "x")}


def _style(verdict: str) -> tuple[str, str]:
    return STYLES.get(verdict, (BASELINE, "diamond"))


def _described(name: str, loss: np.ndarray) -> str:
    """Of a loss by position, what an alt text says."""
    return f"{name}: {say(np.median(loss))} at the median position, {say(loss[-1])} at the last"


def history(runs: Mapping[str, Any], floor: float | None = None) -> go.Figure:
    """Training runs by name (`train.History`): ordered loss solid, honest loss dotted, over steps.

    floor: a dashed line, in nats per token.
    """
    fig, seen, ends = draw.figure("training (steps)", LOSS, height=360), [], []
    for name, colour in draw.colours(runs).items():
        run = runs[name]
        for kind, dash, loss in (("ordered", "solid", run.ordered), ("honest", "dot", run.honest)):
            loss = draw.signal(kind, loss)
            steps, label = draw.array(run.steps), f"{name}, {kind}"
            draw.line(fig, steps, loss, label, colour, dash=dash, legend=kind == "ordered")
            seen.append(f"{name}, {kind}: from {say(loss[0])} to {say(loss[-1])}")
            ends.append((label if kind == "honest" else name, loss[-1], colour))
    ends += draw.floor(fig, seen, floor)
    fig.add_scatter(x=[None], y=[None], mode="lines", line=dict(color=TEXT, dash="dot"), name="dotted: honest")
    name_ends(fig, ends)
    return draw.alt(fig, "Loss over training steps", seen)


def loss_by_position(losses: Mapping[str, object] | object, floor: object | None = None) -> go.Figure:
    """Mean losses (length,) at each position of full windows, one or several by name.

    floor: a dashed line, in nats per token: one number, or one a position.
    """
    losses, seen, ends = draw.named(losses), [], []
    fig, last = draw.figure("position in the window (tokens)", LOSS, height=360), 0
    for name, colour in draw.colours(losses).items():
        loss = draw.signal(name, losses[name])
        draw.line(fig, np.arange(len(loss)), loss, name, colour, legend=len(losses) > 1 or floor is not None)
        seen.append(_described(name, loss))
        ends.append((name, loss[-1], colour))
        last = max(last, len(loss) - 1)
    ends += draw.floor(fig, seen, floor)
    fig.update_xaxes(**draw.places(last + 1))
    if len(ends) > 1:
        name_ends(fig, ends)
    return draw.alt(fig, "Loss by position", seen)


def audit(result: Any) -> go.Figure:
    """The influence map of an `Audit`, on a log scale: how far each token moves each prediction.

    Row t, column s: the change at output t when token s changes; NaN where s was not tried. Left of the diagonal lies
    the past (blue), right of it the future (red): one red cell is a leak.
    """
    m = np.abs(draw.array(result.influence).astype(float))
    decades, top = 6, np.nanmax(m, initial=0) or 1.0  # what lies a million times below the strongest is transparent
    strength = np.clip(1 + np.log10(np.maximum(m / top, 1e-300)) / decades, 0, 1)
    future = np.triu(np.ones(m.shape, dtype=bool), 1)
    ticks = [f"past, {say(top)}", "a millionth<br>of it or less", f"future, {say(top)}"]
    bar = dict(title=dict(text="influence", side="bottom"), tickvals=[-1, 0, 1], ticktext=ticks)
    fig = draw.figure("input changed (token)", "output moved (token)", height=480)
    draw.matrix(fig, np.where(future, strength, -strength), top=1, above=FUTURE, below=PAST, colorbar=bar)
    ends = [-0.5, len(m) - 0.5]
    fig.add_scatter(x=ends, y=ends, mode="lines", line=dict(color=TEXT, width=1), hoverinfo="skip", showlegend=False)
    ahead, most = (np.nanmax(part, initial=0) for part in (m * future, m))
    seen = f"the strongest influence of a future token is {say(ahead)}" if ahead else "no future token moves an output"
    return draw.alt(fig, f"Influence map, verdict {result.verdict}", [seen, f"that of any token is {say(most)}"])


def bars(values: Mapping[str, Any], xlabel: str = LOSS, floor: float | None = None) -> go.Figure:
    """Values by name with their standard errors, (value, se) or a `Loss`, as horizontal bars.

    Whiskers span ± 2 errors. What comes after a comma in a name tells bars of one model apart. xlabel: title of the
    axis. floor: a dashed line, in nats per token.
    """
    pairs = {name: v if isinstance(v, tuple) else (v.mean, v.se) for name, v in values.items()}
    x, se = np.array([[float(v), float(s)] for v, s in pairs.values()]).reshape(-1, 2).T
    fig, rows = _rows(f"{xlabel} ± 2 s.e.", pairs, 34)
    whiskers = dict(type="data", array=draw.numbers(2 * se), color=TEXT)
    owners = [name.split(", ")[0] for name in pairs]  # the bars of one model, "fnet, honest" say, have its colour
    marker = dict(color=[draw.colours(dict.fromkeys(owners))[owner] for owner in owners])
    fig.add_bar(y=rows, x=draw.numbers(x), width=24, orientation="h", error_x=whiskers, marker=marker)
    seen = [f"{name}: {say(v)} ± {say(2 * s)}" for name, v, s in zip(pairs, x, se, strict=True)]
    if floor is not None:
        fig.add_vline(floor, line=dict(color=TEXT, width=2, dash="dash"))
        draw.head(fig, 1, [("entropy floor", TEXT, floor, "center")], along="x")
        seen.append(f"entropy floor: {say(floor)}")
    return draw.alt(fig, "Comparison", seen)


def _rows(xlabel: str, names: Iterable[str], least: int) -> tuple[go.Figure, list[float]]:
    """An empty figure with a row a name, from the top down, and the middles of the rows, in pixels.

    The names stand to the left, in lines short enough for a phone, and a row is as high as they ask, or `least`.
    """
    shown = ["<br>".join(draw.wrapped(part, 22) for part in name.split("<br>")) for name in names]
    heights = [max(least, 12 + 15 * len(name.split("<br>"))) for name in shown]
    middles = [sum(heights[:i]) + h / 2 for i, h in enumerate(heights)]
    fig = draw.figure(xlabel, "", height=130 + sum(heights), room=26).update_layout(showlegend=False)
    ticks = dict(tickvals=middles, ticktext=shown, ticksuffix=" ", tickfont=dict(size=12))
    return fig.update_yaxes(range=[sum(heights), 0], zeroline=False, **ticks), middles


def gains(
    differences: Mapping[str, Mapping], verdicts: Mapping[str, str],
    xlabel: str = "honest loss minus the baseline's (nats per token)",
) -> go.Figure:  # fmt: skip
    """Differences of systems to the baseline, as `records.compare` gives them: a dot a seed, mean and 95 % interval.

    verdicts: of their audits, by the same names. Left of the line at 0 is better than the baseline.
    """
    (fig, rows), seen = _rows(xlabel, differences, 28), []
    for row, (name, d) in zip(rows, differences.items(), strict=True):
        colour, symbol = _style(verdicts[name])
        x = draw.numbers(np.array(d["values"]))
        fig.add_scatter(
            x=x, y=[row] * len(x), mode="markers", marker=dict(color=colour, symbol="line-ns-open", size=9),
            name=name, showlegend=False,
        )  # fmt: skip
        interval = d["low"] is not None
        whiskers = dict(type="data", array=[d["high"] - d["mean"]], color=colour, width=5) if interval else None
        marker = dict(color=colour, symbol=symbol, size=9)
        fig.add_scatter(
            x=[round(d["mean"], 4)], y=[row], error_x=whiskers, mode="markers", marker=marker, name=name,
            showlegend=False,
        )  # fmt: skip
        spread = f" ({say(d['low'])} to {say(d['high'])})" if interval else ""
        seen.append(f"{name}, {verdicts[name]}: {say(d['mean'])}{spread}")
    fig.add_vline(0, line=dict(color=BASELINE, width=2))
    known = any(d["low"] is not None for d in differences.values())
    what = "Differences to the baseline" + (", each with the seeds and their 95 % interval" if known else "")
    return draw.alt(fig, what, seen)


# loss, and whether the future can touch it -> colour, symbol, and what a legend says
MARKS = {
    ("ordered", False): (FUTURE, "x", "ordered loss, reads the future"),
    ("ordered", True): (PAST, "circle-open", "ordered loss, causal"),
    ("honest", True): (PAST, "circle", "honest loss"),
}


def forest(rows: Mapping[str, Sequence[Any]], xlabel: str = "nats per token") -> go.Figure:
    """Differences of losses with their 95 % intervals, several a row: a forest plot.

    rows: differences (`reckoning.Shown`) by label, a claim and a system with <br> between. Red crosses are losses that
    the future can touch, blue marks those that it cannot. Left of the line at 0 the loss is lower.
    """
    (fig, middles), seen = _rows(xlabel, _headed(rows), 34), []
    fig.update_layout(showlegend=True)
    for (kind, safe), mark in MARKS.items():
        of_kind = [(y, d) for y, of in zip(middles, rows.values(), strict=True) for d in of]
        found = [(y, d) for y, d in of_kind if (d.kind, d.safe) == (kind, safe)]
        gains, shift = [d.gain for _, d in found], -6 if kind == "ordered" else 6  # neither hides the other
        half = draw.numbers(np.array([g.high - g.mean for g in gains]))
        whiskers = dict(type="data", array=half, color=mark[0], width=4)
        x, y = [g.mean for g in gains], [y + shift for y, _ in found]
        _row_marks(fig, mark, x, y, [*map(str, gains)], error_x=whiskers)
    for label, of in rows.items():
        seen.append(f"{label.replace('<br>', ', ')}: {' and '.join(f'{d.kind} {d.gain}' for d in of)}")
    fig.add_vline(0, line=dict(color=TEXT, width=2))
    return draw.alt(fig, "Differences of losses, each with its 95 % interval", seen)


def _headed(labels: Iterable[str]) -> list[str]:
    """Labels of rows, each claim once, above the first of its systems."""
    claims = [None, *(label.split("<br>")[0] for label in labels)]
    return [label.removeprefix(f"{claim}<br>") if claim == before else f"<b>{claim}</b>{label.removeprefix(str(claim))}"
            for label, before, claim in zip(labels, claims, claims[1:], strict=False)]  # fmt: skip


def two_losses(losses: Mapping[str, tuple[float, float]], verdicts: Mapping[str, str], floor: float) -> go.Figure:
    """The ordered and the honest loss of systems by name, a row a system, joined across the entropy floor.

    verdicts: of their audits, by the same names; marks as in `forest`. floor: in nats per token. No predictor without
    the future can expect to stay left of it.
    """
    fig, rows = _rows(LOSS, losses, 30)
    draw.lift_legend(fig.update_layout(showlegend=True))
    for y, pair in zip(rows, losses.values(), strict=True):
        line = dict(color=draw.MIDDLE, width=3)
        fig.add_scatter(x=draw.numbers(np.array(pair)), y=[y, y], mode="lines", line=line, showlegend=False)
    for (kind, safe), mark in MARKS.items():
        fits = [kind == "honest" or (verdicts[name] == "causal") == safe for name in losses]
        each = zip(rows, losses.items(), fits, strict=True)
        found = [(y, name, pair[kind == "honest"]) for y, (name, pair), fit in each if fit]
        tips = [f"{name}: {say(value)}" for _, name, value in found]
        _row_marks(fig, mark, [value for *_, value in found], [y for y, *_ in found], tips)
    fig.add_vline(floor, line=dict(color=TEXT, width=2, dash="dash"))
    draw.head(fig, 1, [("entropy floor", TEXT, floor, "center")], along="x")
    seen = [f"{name}, {verdicts[name]}: ordered {say(o)}, honest {say(h)}" for name, (o, h) in losses.items()]
    return draw.alt(fig, "Ordered and honest loss of each system", [*seen, f"entropy floor: {say(floor)}"])


def _row_marks(
    fig: go.Figure, mark: tuple[str, str, str], x: Sequence[float], y: Sequence[float], tips: Sequence[str],
    **more: object,
) -> None:  # fmt: skip
    """Losses of one kind in their rows, as MARKS draws them; a tip is what a pointed one says."""
    colour, symbol, says = mark
    if len(x):
        fig.add_scatter(
            x=draw.numbers(np.array(x)), y=y, mode="markers", marker=dict(color=colour, symbol=symbol, size=9),
            name=says, customdata=tips, hovertemplate="%{customdata}<extra></extra>", **more,
        )  # fmt: skip


def scatter(
    points: Mapping[str, tuple[float, float]], verdicts: Mapping[str, str], xlabel: str, ylabel: str,
    marks: Sequence[float] = (), labels: Collection[str] = (),
) -> go.Figure:  # fmt: skip
    """Systems as points (x, y) by name: blue circles for causal ones, red crosses for those that leak.

    verdicts: of their audits, by the same names. xlabel, ylabel: titles of the axes, with units. marks: dotted lines at
    values of x. labels: the names to write beside their points; the others show when pointed at.
    """
    fig, seen = draw.figure(xlabel, ylabel, height=420), []
    for verdict in dict.fromkeys(verdicts[name] for name in points):
        names, (colour, symbol) = [name for name in points if verdicts[name] == verdict], _style(verdict)
        x, y = (draw.numbers(np.array(column)) for column in zip(*(points[name] for name in names), strict=True))
        marker = dict(color=colour, symbol=symbol, size=10)
        fig.add_scatter(
            x=x, y=y, customdata=names, mode="markers", marker=marker, cliponaxis=False, name=f"audit: {verdict}",
            showlegend=True,
        )  # fmt: skip
        seen += [f"{name}, {verdict}: {say(points[name][0])}, {say(points[name][1])}" for name in names]
    for mark in marks:
        fig.add_vline(mark, line=dict(color=TEXT, width=1, dash="dot"))
    wide, high = (_range([p[i] for p in points.values()]) for i in (0, 1))
    fig.update_layout(xaxis_range=wide, yaxis_range=high)
    curves = {n if n in labels else f"_{n}": Curve([np.array([p])], _style(verdicts[n])[0]) for n, p in points.items()}
    name_points(fig, curves, wide, high)
    fig.update_traces(hovertemplate="%{customdata}<br>%{x}, %{y}<extra></extra>")
    return draw.alt(fig, f"A point a system: {xlabel}, {ylabel}", seen)


def _range(values: Sequence[float]) -> list[float]:
    """Of an axis: as far as the values go, and a little further."""
    low, high = min(values), max(values)
    room = (high - low or 1.0) / 15
    return [low - room, high + room]


def panels(losses: Mapping[str, object], verdicts: Mapping[str, str], base: str, columns: int = 3) -> go.Figure:
    """Loss at each position of a full window, a panel a system: blue if causal, red if it leaks, the baseline's grey.

    losses: (length,) by name, that of `base` among them. verdicts: of their audits, by the same names.
    """
    names, seen = [name for name in losses if name != base], []
    if not names or base not in losses:
        raise ValueError(f"panels need {base!r} and one system more, got {', '.join(losses) or 'none'}")
    rows = math.ceil(len(names) / columns)
    fig = make_subplots(
        rows, columns, shared_xaxes="all", shared_yaxes="all", horizontal_spacing=0.06, vertical_spacing=0.2 / rows,
    )  # fmt: skip
    draw.geometry(fig, 90 + 130 * rows)
    reference = draw.signal(base, losses[base])
    for i, name in enumerate(names):
        place = dict(row=1 + i // columns, col=1 + i % columns)
        loss, (colour, _) = draw.signal(name, losses[name]), _style(verdicts[name])
        for label, y, c, width in ((base, reference, BASELINE, 1), (name, loss, colour, 2)):
            line = dict(color=c, width=width)
            fig.add_scatter(y=draw.numbers(y), mode="lines", name=label, line=line, showlegend=False, **place)
        draw.head(fig, i + 1, [(name, TEXT, 0.5, "center")])
        seen.append(_described(name, loss))
    seen.append(_described(base, reference))
    fig.update_xaxes(tickvals=[0, len(reference) - 1], showticklabels=False).update_yaxes(title="loss (nats)", col=1)
    for i in range(max(0, len(names) - columns), len(names)):  # the lowest of each column
        fig.update_xaxes(title="position (tokens)", showticklabels=True, row=1 + i // columns, col=1 + i % columns)
    return draw.alt(fig, f"Loss by position, a panel a system, each beside {base}", seen)
