"""Figures of filters, signals and texts."""
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
import torch
import torch.nn.functional as F
from plotly.subplots import make_subplots

from fourierqk.analysis import future_share
from fourierqk.data import Spectrum
from fourierqk.figures import draw, labels
from fourierqk.figures.draw import CATEGORIES, FUTURE, PAST, TEXT, say
from fourierqk.figures.labels import Curve
from fourierqk.filters import Filter
from fourierqk.parts import grid

FREQUENCY = "frequency (cycles per token)"
DOTS = 64  # as many tokens or bins can be told apart


def response(filters: Filter | Mapping[str, Filter], n: int = 512, max_freq: float = 0.5) -> go.Figure:
    """Magnitude of a filter, or of several by name, at the frequencies of `n` tokens up to `max_freq` cycles per token.

    Every head, and every filter of a bank, is a line of its own in its filter's colour.
    """
    filters, seen, drawn = draw.named(filters, Filter), [], {}
    fig = draw.figure(FREQUENCY, "magnitude (factor)")
    for name, colour in draw.colours(filters).items():
        with torch.no_grad():
            freqs = grid(n, filters[name]._like)
            magnitude = draw.array(filters[name].response(freqs).abs()).reshape(-1, len(freqs))
        f = draw.array(freqs)
        f, magnitude = f[f <= max_freq], magnitude[:, f <= max_freq]
        drawn[name] = Curve([np.stack([f, m], 1) for m in magnitude], colour)
        for i, m in enumerate(magnitude):
            draw.line(fig, f, m, name, colour, legend=i == 0 and len(filters) > 1)
        peak = draw.at(f[magnitude.argmax() % len(f)])
        lines = f" ({len(magnitude)} lines)" if len(magnitude) > 1 else ""
        low, high = say(magnitude.min().round(6)), say(magnitude.max())
        seen.append(f"{name}{lines} runs from {low} to {high}, highest at {peak}")
    fig.update_xaxes(range=[0, max_freq], **draw.frequency_ticks(max_freq))
    labels.name_lines(fig, drawn, (0, max_freq), 0)
    return draw.alt(fig, "Frequency response", seen)


def impulse(filters: Filter | Mapping[str, Filter], n: int = 64, head: int = 0) -> go.Figure:
    """The reply of one head to a single 1, over lags -n .. n - 1, measured in the middle of a window of 2 n tokens.

    Lags from 0 on hear the past (blue), negative lags the future (red). Of a complex filter the imaginary part is
    dotted; the filters of a bank differ by their dashes.
    """
    filters, seen = draw.named(filters, Filter), []
    fig = make_subplots(len(filters), 1, shared_xaxes=True, vertical_spacing=0.3 / len(filters))
    lag = np.arange(-n, n)
    for row, (name, filter) in enumerate(filters.items(), 1):
        h = _impulse(filter, n, head)  # (d', 2 n)
        for i, h_i in enumerate(h):
            for side, colour, part in (("past", PAST, lag >= 0), ("future", FUTURE, lag < 0)):
                style = dict(type="bar", marker=dict(color=colour, line=dict(width=0)))
                if len(h) > 1:
                    style = dict(type="scatter", mode="lines", line=dict(color=colour, dash=_DASHES[i % len(_DASHES)]))
                data = dict(x=lag[part].tolist(), y=draw.numbers(h_i[part]), name=side)
                fig.add_trace(data | style, row=row, col=1)
        sides = [("← future", FUTURE, 0, "left"), ("past →", PAST, 1, "right")]
        draw.head(fig, row, [*sides, (name, TEXT, 0.5, "center")] if len(filters) > 1 else sides)
        share = future_share(filter, 2 * n)
        strongest = lag[(h.astype(float) ** 2).sum(0).argmax()]
        seen.append(f"{name}: strongest at lag {strongest}, {share[head % len(share)]:.0%} of its energy in the future")
    draw.geometry(fig, 150 + 150 * len(filters)).update_layout(bargap=0.1, barmode="overlay", showlegend=False)
    fig.update_xaxes(tickvals=[-n, -(n // 2), 0, n // 2, n - 1], tickangle=0)
    fig.update_xaxes(title="lag (tokens; below 0: the future)", row=len(filters)).update_yaxes(title="weight (factor)")
    return draw.alt(fig, f"Impulse response over lags {-n} to {n - 1} tokens", seen)


_DASHES = ("solid", "dot", "dash", "dashdot")


def _impulse(filter: Filter, n: int, head: int) -> np.ndarray:
    """(d', 2 n): what one head of a filter makes of a single 1 at time n."""
    with torch.no_grad():
        heads = filter.response(grid(2 * n, filter._like)).shape[-2]
        x = F.pad(filter._like.new_ones(1, heads, 1, 1), (0, 0, n, n - 1))
        return draw.array(filter(x)[0, head % heads].T)


def signals(
    x: Mapping[str, object] | object, text: Sequence[str] | None = None, unit: str = "value (no unit)", start: int = 0
) -> go.Figure:
    """Signals x (T,), one or several by name, from position `start` on; the imaginary part of a complex one is dotted.

    text: the tokens themselves, written along the axis. unit: the title of the y axis.
    """
    x, seen, drawn = draw.named(x), [], {}
    fig = draw.figure("position (tokens)", unit)
    for name, colour in draw.colours(x).items():
        y = draw.signal(name, x[name])
        parts = {name: y}
        if np.iscomplexobj(y):
            parts = {f"{name}, real": y.real, f"{name}, imaginary": y.imag}
        for label, part in parts.items():
            dash, several = "dot" if label.endswith(", imaginary") else "solid", len(x) * len(parts) > 1
            t = np.arange(start, start + len(part))
            draw.line(fig, t, part, label, colour, dash=dash, legend=several)
            drawn[label] = Curve([np.stack([t, part], 1)], colour)
            seen.append(f"{label} runs from {say(np.nanmin(part))} to {say(np.nanmax(part))} over {len(part)} tokens")
    longest = max(len(line) for curve in drawn.values() for line in curve.lines)
    if longest <= DOTS:  # a token is a point: what is between two is no value
        fig.update_traces(mode="lines+markers", marker_size=5, line_width=1)
    last = start + longest - 1
    fig.update_xaxes(range=[start - 0.5, last + 0.5])
    fig.update_xaxes(**(draw.places(longest, start) if text is None else draw.glyphs(text, start)))
    labels.name_lines(fig, drawn, (start - 0.5, last + 0.5))
    return draw.alt(fig, "Signals over tokens", seen)


def spectrum(
    x: Mapping[str, object] | object, n: int | None = None, max_freq: float = 0.5, periods: Iterable[float] = ()
) -> go.Figure:
    """Power |X|^2 / n of signals over frequency, a stem a bin, averaged over segments of `n` tokens (default: of all).

    x: real signals (T,) or (T, C), whose channels' powers add. Token ids are no signal (see `text_spectrum`): whole
    numbers other than 0 and 1 are refused. periods, in tokens, are marked.
    """
    x, periods, seen = draw.named(x), list(periods), []
    fig = draw.figure(FREQUENCY, "power (value² per bin)")
    for name, colour in draw.colours(x).items():
        f, power = _periodogram(draw.array(x[name]), n)
        f, power = f[f <= max_freq], power[f <= max_freq]
        draw.stems(fig, f, power, name, colour, legend=len(x) > 1, dots=len(f) <= DOTS)
        seen.append(f"{name} has its highest power, {say(power.max())}, at {draw.at(f[power.argmax()])}")
    draw.marks(fig, seen, periods)
    fig.update_xaxes(range=[-max_freq / 60, max_freq * 61 / 60], zeroline=False)  # room for the stems at both ends
    fig.update_xaxes(**draw.frequency_ticks(max_freq)).update_yaxes(rangemode="tozero")
    return draw.alt(fig, "Power spectrum", seen)


def _periodogram(x: np.ndarray, n: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies and mean power over whole segments of n tokens, summed over channels."""
    if np.iscomplexobj(x) or x.ndim not in (1, 2) or not len(x):
        raise ValueError(f"a spectrum needs real signals (T,) or (T, C), got {x.shape} of {x.dtype}")
    if np.issubdtype(x.dtype, np.integer) and not np.isin(x, (0, 1)).all():
        raise ValueError("whole numbers look like token ids, which are names: use figures.text_spectrum, or .float()")
    n = len(x) if n is None else n
    if not 1 <= n <= len(x):
        raise ValueError(f"segments of n = {n} tokens do not fit a signal of {len(x)}")
    segments = x[: len(x) // n * n].reshape(-1, n, *x.shape[1:]).astype(float)
    power = (np.abs(np.fft.rfft(segments, axis=1)) ** 2).mean(0) / n
    return np.fft.rfftfreq(n), power.reshape(n // 2 + 1, -1).sum(1)


def text_spectrum(spectra: Mapping[str, Spectrum] | Spectrum, periods: Iterable[float] = ()) -> go.Figure:
    """Relative power of texts (`Spectrum`) over frequency, both ways of a log scale; periods, in tokens, are marked.

    The dashed line at 1 is the power that the same tokens have in random order.
    """
    spectra, seen, drawn, periods = draw.named(spectra, Spectrum), [], {}, list(periods)
    fig, low = draw.figure(FREQUENCY, "power (factor of chance)"), min(s.freq[1].item() for s in spectra.values())
    for name, colour in draw.colours(spectra).items():
        f, power = draw.array(spectra[name].freq)[1:], draw.array(spectra[name].relative)[1:]
        draw.line(fig, f, power, name, colour, legend=len(spectra) > 1)
        drawn[name] = Curve([np.stack([np.log10(f), power], 1)], colour)
        peaks = sorted(spectra[name].peaks(), key=lambda peak: -peak.ratio)[:3]
        at = f"its strongest peaks at periods of {', '.join(say(peak.period) for peak in peaks)} tokens"
        seen.append(f"{name} runs from {say(power.min())} to {say(power.max())}, {at if peaks else 'without peaks'}")
    fig.add_hline(1, line=dict(color=TEXT, dash="dash", width=1))
    fig.update_xaxes(type="log", range=[np.log10(low), np.log10(0.5)], **draw.frequency_ticks(0.5, low))
    draw.marks(fig, seen, periods)
    drawn |= {f"_{p}": Curve([np.array([[-np.log10(p), 0], [-np.log10(p), 99]])], TEXT) for p in periods}
    labels.name_lines(fig, drawn, (np.log10(low), np.log10(0.5)), 0)
    return draw.alt(fig, "Power spectrum of a text", seen)


def arrows(x: object, k: int) -> go.Figure:
    """Bin `k` of the DFT of a signal (n,), token by token: x[t] exp(-2 pi i k t / n), from the origin and head to tail.

    Head to tail the arrows end at X[k], the bold one.
    """
    x = draw.signal("x", x)
    n = len(x)
    z = x * np.exp(-2j * np.pi * k * np.arange(n) / n)
    spokes = np.stack([np.zeros(n), z, np.full(n, np.nan)], 1).ravel()  # origin, tip, gap
    chain = np.cumsum([0, *z])
    fig = make_subplots(1, 2, horizontal_spacing=0.12)
    for i, title in enumerate(("one arrow a token", f"head to tail: X[{k}]"), 1):
        draw.head(fig, i, [(title, TEXT, 0.5, "center")])
    paths = (
        (1, spokes, [0, 9, 0] * n, CATEGORIES[4], 1), (2, chain, [0] + [9] * n, CATEGORIES[4], 1),
        (2, chain[[0, -1]], [0, 14], CATEGORIES[0], 3),
    )  # fmt: skip
    for col, path, size, colour, width in paths:
        style = dict(line=dict(color=colour, width=width), mode="lines+markers", showlegend=False)
        marker = dict(symbol="arrow", angleref="previous", size=size, color=colour, line=dict(width=0))
        x, y = draw.numbers(path.real), draw.numbers(path.imag)
        fig.add_scatter(x=x, y=y, marker=marker, **style, row=1, col=col)
        fig.update_yaxes(scaleanchor=f"x{col}".replace("x1", "x"), row=1, col=col)
    draw.geometry(fig, 340)
    fig.update_xaxes(title="real part (value)").update_yaxes(title="imaginary part (value)", col=1)
    reached, walked = say(abs(chain[-1])), say(np.abs(z).sum())
    seen = f"head to tail they end at X[{k}], {reached} from the origin, after a way of length {walked}"
    return draw.alt(fig, f"Bin {k} of a DFT as {n} arrows", [seen])


def heatmap(
    matrix: object,
    xlabel: str = "key position (tokens)",
    ylabel: str = "query position (tokens)",
    unit: str = "weight",
    labels: Sequence[str] | None = None,
) -> go.Figure:
    """A real matrix (rows, columns), row 0 on top; zero is transparent.

    xlabel, ylabel: titles of the axes; unit: of the values; labels: the tokens, written along both axes. Above 128 a
    side, a cell shows the largest magnitude of the block it stands for. ValueError for anything but one real matrix.
    """
    m = draw.array(matrix)
    if m.ndim != 2 or not m.size or np.iscomplexobj(m):
        raise ValueError(f"a heat map needs one real matrix, got {m.shape} of {m.dtype}: take .real, .imag or abs()")
    low, high = float(np.nanmin(m)), float(np.nanmax(m))
    top = max(-low, high) or 1.0
    fig = draw.figure(xlabel, ylabel, height=440)
    below = CATEGORIES[0] if low < 0 else None
    draw.matrix(fig, m, top=top, above=CATEGORIES[4], below=below, colorbar=dict(title=dict(text=unit, side="bottom")))
    if labels is not None:
        fig.update_xaxes(**draw.glyphs(labels)).update_yaxes(**draw.glyphs(labels))
    return draw.alt(fig, f"Map of {m.shape[0]} by {m.shape[1]} values", [f"{unit} from {say(low)} to {say(high)}"])
