"""Filters, signals and results -> plotly figures: one theme, readable on white and on dark::

    response(filters, n=512, max_freq=0.5)                magnitude over frequency
    impulse(filters, n=64, head=0)                        what one token turns into: past blue, future red
    signals(x, text=None, unit=..., start=0)              values over tokens
    spectrum(x, n=None, max_freq=0.5, periods=())         power of signals over frequency
    text_spectrum(spectra, periods=())                    power of texts over frequency, on a log scale of periods
    arrows(x, k)                                          bin k of a DFT as arrows, and their sum
    heatmap(matrix, xlabel=..., ylabel=..., unit=..., labels=None)    DFT matrices, attention maps
    history(runs, floor=None)                             ordered (solid) and honest (dotted) loss over steps
    loss_by_position(losses, floor=None)                  loss over the positions of a window
    audit(result)                                         influence map of an `Audit`: past blue, future red
    bars(values, xlabel=..., floor=None)                  values with their standard errors, side by side
    gains(differences, verdicts)                          differences to the baseline: seeds, mean, interval
    forest(rows)                                          differences of losses, their intervals: a forest plot
    two_losses(losses, verdicts, floor)                   ordered and honest loss, joined across the floor
    scatter(points, verdicts, xlabel, ylabel, ...)        systems as points: causal ones blue, leaking ones red
    panels(losses, verdicts, base)                        loss by position, a panel a system, beside the baseline's

Tensors, arrays and lists are all welcome. Every figure has units on its axes, says in ``layout.meta["alt"]`` what is to
be seen (computed from the data), and holds few, rounded numbers, so that pages stay small. A system has one colour
throughout: ``COLOURS``.
"""
from fourierqk.figures.draw import BASELINE, CATEGORIES, COLOURS, FUTURE, PAST
from fourierqk.figures.models import (
    audit,
    bars,
    forest,
    gains,
    history,
    loss_by_position,
    panels,
    scatter,
    two_losses,
)  # fmt: skip
from fourierqk.figures.signals import arrows, heatmap, impulse, response, signals, spectrum, text_spectrum

__all__ = [
    "BASELINE", "CATEGORIES", "COLOURS", "FUTURE", "PAST", "arrows", "audit", "bars", "forest", "gains", "heatmap",
    "history", "impulse", "loss_by_position", "panels", "response", "scatter", "signals", "spectrum", "text_spectrum",
    "two_losses",
]  # fmt: skip
