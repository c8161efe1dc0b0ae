"""Figures of trained models: how they learned, what they reached, what they read."""
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fourierqk.figures import draw
from fourierqk.figures.draw import BASELINE, FUTURE, PAST, TEXT, say

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
    fig, seen = draw.figure("training (steps)", LOSS), []
    for name, colour in draw.colours(runs).items():
        run = runs[name]
        for kind, dash, loss in (("ordered", "solid", run.ordered), ("honest", "dot", run.honest)):
            loss = draw.signal(kind, loss)
            steps, label = draw.array(run.steps), f"{name}, {kind}"
            draw.line(fig, steps, loss, label, colour, dash=dash, legend=kind == "ordered")
            seen.append(f"{name}, {kind}: from {say(loss[0])} to {say(loss[-1])}")
    draw.floor(fig, seen, floor)
    fig.add_scatter(x=[None], y=[None], mode="lines", line=dict(color=TEXT, dash="dot"), name="dotted: honest")
    return draw.alt(fig, "Loss over training steps", seen)


def loss_by_position(losses: Mapping[str, object] | object, floor: object | None = None) -> go.Figure:
    """Mean losses (length,) at each position of full windows, one or several by name.

    floor: a dashed line, in nats per token: one number, or one a position.
    """
    losses, seen = draw.named(losses), []
    fig = draw.figure("position in the window (tokens)", LOSS)
    for name, colour in draw.colours(losses).items():
        loss = draw.signal(name, losses[name])
        draw.line(fig, np.arange(len(loss)), loss, name, colour, legend=len(losses) > 1 or floor is not None)
        seen.append(_described(name, loss))
    draw.floor(fig, seen, floor)
    return draw.alt(fig, "Loss by position", seen)


def audit(result: Any) -> go.Figure:
    """The influence map of an `Audit`, on a log scale: how far each token moves each prediction.

    Row t, column s: the change at output t when token s changes; NaN where s was not tried. Left of the diagonal lies
    the past (blue), right of it the future (red): one red cell is a leak.
    """
    m = np.abs(draw.array(result.influence).astype(float))
    decades, top = 6, np.nanmax(m, initial=0) or 1.0  # what lies further below the strongest stays transparent
    strength = np.clip(1 + np.log10(np.maximum(m / top, 1e-300)) / decades, 0, 1)
    future = np.triu(np.ones(m.shape, dtype=bool), 1)
    ticks = [f"{say(top)}, future", f"≤ {say(top * 10.0**-decades)}", f"{say(top)}, past"]
    bar = dict(title=dict(text="influence"), tickvals=[-1, 0, 1], ticktext=ticks)
    fig = draw.figure("input changed (token)", "output moved (token)", height=420)
    draw.matrix(fig, np.where(future, -strength, strength), top=1, above=PAST, below=FUTURE, colorbar=bar)
    ends = [-0.5, len(m) - 0.5]
    fig.add_scatter(x=ends, y=ends, mode="lines", line=dict(color=TEXT, width=1), hoverinfo="skip", showlegend=False)
    ahead, most = (np.nanmax(part, initial=0) for part in (m * future, m))
    seen = f"the strongest influence of a future token is {say(ahead)}" if ahead else "no future token moves an output"
    return draw.alt(fig, f"Influence map, verdict {result.verdict}", [seen, f"that of any token is {say(most)}"])


def bars(
    values: Mapping[str, Any], xlabel: str = LOSS, ylabel: str = "system", floor: float | None = None
) -> go.Figure:
    """Values by name with their standard errors, (value, se) or a `Loss`, as horizontal bars.

    Whiskers span ± 2 errors. xlabel, ylabel: titles of the axes. floor: a dashed line, in nats per token.
    """
    pairs = {name: v if isinstance(v, tuple) else (v.mean, v.se) for name, v in values.items()}
    x, se = np.array([[float(v), float(s)] for v, s in pairs.values()]).reshape(-1, 2).T
    fig = draw.figure(f"{xlabel} ± 2 s.e.", ylabel, height=130 + 34 * len(pairs))
    whiskers = dict(type="data", array=draw.numbers(2 * se), color=TEXT)
    marker = dict(color=list(draw.colours(pairs).values()), opacity=0.7)
    fig.add_bar(y=list(pairs), x=draw.numbers(x), orientation="h", error_x=whiskers, marker=marker)
    fig.update_layout(showlegend=False).update_yaxes(autorange="reversed", ticksuffix=" ")
    seen = [f"{name}: {say(v)} ± {say(2 * s)}" for name, v, s in zip(pairs, x, se, strict=True)]
    if floor is not None:
        label = dict(annotation_text="entropy floor", annotation_position="top")
        fig.add_vline(floor, line=dict(color=TEXT, dash="dash"), **label)
        seen.append(f"entropy floor: {say(floor)}")
    return draw.alt(fig, "Comparison", seen)


def gains(
    differences: Mapping[str, Mapping], verdicts: Mapping[str, str],
    xlabel: str = "honest loss minus the baseline's (nats per token)",
) -> go.Figure:  # fmt: skip
    """Differences of systems to the baseline, as `records.compare` gives them: a dot a seed, mean and 95 % interval.

    verdicts: of their audits, by the same names. Left of the line at 0 is better than the baseline.
    """
    fig, seen = draw.figure(xlabel, "", height=130 + 40 * len(differences)), []
    for name, d in differences.items():
        colour, symbol = _style(verdicts[name])
        x = draw.numbers(np.array(d["values"]))
        fig.add_scatter(
            x=x, y=[name] * len(x), mode="markers", marker=dict(color=colour, symbol="line-ns-open", size=9),
            name=name, showlegend=False,
        )  # fmt: skip
        interval = d["low"] is not None
        whiskers = dict(type="data", array=[d["high"] - d["mean"]], color=colour, width=5) if interval else None
        marker = dict(color=colour, symbol=symbol, size=9)
        fig.add_scatter(
            x=[round(d["mean"], 4)], y=[name], error_x=whiskers, mode="markers", marker=marker, name=name,
            showlegend=False,
        )  # fmt: skip
        spread = f" ({say(d['low'])} to {say(d['high'])})" if interval else ""
        seen.append(f"{name}, {verdicts[name]}: {say(d['mean'])}{spread}")
    fig.add_vline(0, line=dict(color=BASELINE, width=2))
    fig.update_yaxes(autorange="reversed", ticksuffix=" ")
    known = any(d["low"] is not None for d in differences.values())
    what = "Differences to the baseline" + (", each with the seeds and their 95 % interval" if known else "")
    return draw.alt(fig, what, seen)


# loss, and whether the future can touch it -> colour, symbol, and what a legend says
MARKS = {
    ("ordered", False): (FUTURE, "x", "ordered loss of a system that reads the future"),
    ("ordered", True): (PAST, "circle-open", "ordered loss of a causal system"),
    ("honest", True): (PAST, "circle", "honest loss"),
}


def forest(rows: Mapping[str, Sequence[Any]], xlabel: str = "nats per token") -> go.Figure:
    """Differences of losses with their 95 % intervals, several a row: a forest plot.

    rows: differences by label (`reckoning.Shown`). Red crosses are losses that the future can touch, blue marks those
    that it cannot. Left of the line at 0 the loss is lower.
    """
    fig, seen = draw.figure(xlabel, "", height=150 + 44 * len(rows)), []
    for (kind, safe), (colour, symbol, says) in MARKS.items():
        found = [(i, d) for i, of in enumerate(rows.values()) for d in of if (d.kind, d.safe) == (kind, safe)]
        if not found:
            continue
        gains, shift = [d.gain for _, d in found], -0.16 if kind == "ordered" else 0.16  # neither hides the other
        x = draw.numbers(np.array([g.mean for g in gains]))
        half = draw.numbers(np.array([g.high - g.mean for g in gains]))
        fig.add_scatter(
            x=x, y=[i + shift for i, _ in found], error_x=dict(type="data", array=half, color=colour, width=4),
            mode="markers", marker=dict(color=colour, symbol=symbol, size=8), name=says, customdata=[*map(str, gains)],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    for label, of in rows.items():
        seen.append(f"{label.replace('<br>', ', ')}: {' and '.join(f'{d.kind} {d.gain}' for d in of)}")
    fig.add_vline(0, line=dict(color=BASELINE, width=2))
    ticks = dict(tickvals=[*range(len(rows))], ticktext=[*rows], ticksuffix=" ")
    fig.update_yaxes(range=[len(rows) - 0.5, -0.5], zeroline=False, **ticks)  # the first row is no zero
    return draw.alt(fig, "Differences of losses, each with its 95 % interval", seen)


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
        written = [name if name in labels else "" for name in names]
        fig.add_scatter(
            x=x, y=y, text=written, textposition="top center", customdata=names, mode="markers+text", marker=marker,
            cliponaxis=False, name=f"audit: {verdict}", showlegend=True,
        )  # fmt: skip
        seen += [f"{name}, {verdict}: {say(points[name][0])}, {say(points[name][1])}" for name in names]
    for mark in marks:
        fig.add_vline(mark, line=dict(color=TEXT, width=1, dash="dot"))
    fig.update_traces(hovertemplate="%{customdata}<br>%{x}, %{y}<extra></extra>")
    return draw.alt(fig, f"A point a system: {xlabel}, {ylabel}", seen)


def panels(losses: Mapping[str, object], verdicts: Mapping[str, str], base: str, columns: int = 3) -> go.Figure:
    """Loss at each position of a full window, a panel a system: blue if causal, red if it leaks, the baseline's grey.

    losses: (length,) by name, that of `base` among them. verdicts: of their audits, by the same names.
    """
    names, seen = [name for name in losses if name != base], []
    if not names or base not in losses:
        raise ValueError(f"panels need {base!r} and one system more, got {', '.join(losses) or 'none'}")
    rows = math.ceil(len(names) / columns)
    fig = make_subplots(
        rows, columns, shared_xaxes=True, shared_yaxes="all", subplot_titles=names, horizontal_spacing=0.03,
        vertical_spacing=0.2 / rows,
    )  # fmt: skip
    draw.geometry(fig, 90 + 130 * rows)
    reference = draw.signal(base, losses[base])
    for i, name in enumerate(names):
        place = dict(row=1 + i // columns, col=1 + i % columns)
        loss, (colour, _) = draw.signal(name, losses[name]), _style(verdicts[name])
        for label, y, c, width in ((base, reference, BASELINE, 1), (name, loss, colour, 2)):
            line = dict(color=c, width=width)
            fig.add_scatter(y=draw.numbers(y), mode="lines", name=label, line=line, showlegend=False, **place)
        seen.append(_described(name, loss))
    seen.append(_described(base, reference))
    fig.update_annotations(font_size=12)
    fig.update_xaxes(title="position (tokens)", row=rows).update_yaxes(title="loss (nats)", col=1)
    return draw.alt(fig, f"Loss by position, a panel a system, each beside {base}", seen)
