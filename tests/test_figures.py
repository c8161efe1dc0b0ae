"""Figures: what they draw is the data, and they say what is to be seen, in both senses, on white and on dark."""
import colorsys
import json
from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from fourierqk import figures
from fourierqk.combinators import Analytic, Bank, Causal, shelf
from fourierqk.data.spectrum import text_spectrum
from fourierqk.figures import draw
from fourierqk.filters import Gaussian, Morlet, RandomBands, Tone
from fourierqk.reckoning import Gain, Shown
from fourierqk.zoo import SYSTEMS

RNG = np.random.default_rng(0)
T = np.arange(64)
BAND = Gaussian(0.1, 0.05)
LETTERS = np.where(np.arange(4000) % 5, RNG.integers(2, size=4000), 2)  # a mark at every fifth token
BEAT, SHUFFLED = (text_spectrum(torch.tensor(x), 64) for x in (LETTERS, RNG.permutation(LETTERS)))
DIFFERENCE = {"values": [-0.03, -0.01, -0.02], "mean": -0.02, "low": -0.045, "high": 0.005}  # as records.compare
ONCE = {"values": [0.4], "mean": 0.4, "low": None, "high": None}
LOSS = SimpleNamespace(mean=0.5, se=0.01)  # as losses.Loss


def run(start: float) -> SimpleNamespace:
    """As train.History."""
    return SimpleNamespace(steps=[0, 100, 200], ordered=[start, 1.5, 1.0], honest=[start, 1.75, 1.25])


def leaky() -> SimpleNamespace:
    """As an Audit: token 5 reaches output 2."""
    influence = torch.eye(8)
    influence[2, 5], influence[6, 1] = 1e-3, 1e-2
    return SimpleNamespace(influence=influence, verdict="leaks")


def shown(kind: str, mean: float, safe: bool = True) -> Shown:
    return Shown("mine", kind, Gain(mean, mean - 0.05, mean + 0.05, 3), safe)


FIGURES = {
    "response": lambda: figures.response({"band": Gaussian(0.125, 0.02), "two heads": Morlet([4.0, 8.0])}),
    "impulse": lambda: figures.impulse({"band": BAND, "cut": Causal(BAND), "pair": Morlet()}),
    "signals": lambda: figures.signals({"x": np.sin(T / 5), "pair": np.exp(1j * T / 5)}, text="to be or " * 7 + "!"),
    "spectrum": lambda: figures.spectrum({"x": np.cos(2 * np.pi * T / 8), "noise": (T * 37) % 64 / 64}, periods=[8]),
    "arrows": lambda: figures.arrows(np.cos(2 * np.pi * T[:16] / 8), 2),
    "text_spectrum": lambda: figures.text_spectrum({"beat": BEAT, "the same, shuffled": SHUFFLED}, periods=[5]),
    "heatmap": lambda: figures.heatmap(np.tril(np.ones((5, 5))), labels="to be"),
    "history": lambda: figures.history({"base-dot": run(4.0), "fourier-qk": run(3.0)}, floor=0.39),
    "loss_by_position": lambda: figures.loss_by_position({"base-dot": torch.ones(9), "mine": T[:9]}, floor=0.39),
    "audit": lambda: figures.audit(leaky()),
    "bars": lambda: figures.bars({"base-dot": (1.25, 0.02), "fourier-qk": LOSS}, floor=0.39),
    "gains": lambda: figures.gains({"mine": DIFFERENCE, "once": ONCE}, {"mine": "causal", "once": "leaks"}),
    "forest": lambda: figures.forest({"mine": [shown("ordered", -0.9, False), shown("honest", 0.2)],
                                      "theirs": [shown("ordered", -0.1), shown("honest", -0.2)]}),
    "two_losses": lambda: figures.two_losses(
        {"mine": (0.2, 1.1), "theirs": (0.8, 0.85)}, {"mine": "leaks", "theirs": "causal"}, floor=0.79
    ),
    "scatter": lambda: figures.scatter(
        {"mine": (7.5, 0.01), "theirs": (4.2, 2.5)}, {"mine": "causal", "theirs": "leaks"},
        "shuffled gap (nats per token)", "honest minus ordered loss (nats per token)", marks=(2, 4),
        labels=["theirs"],
    ),
    "panels": lambda: figures.panels(
        {"base-dot": np.ones(9), "mine": T[:9] / 4, "theirs": T[:9] / 8},
        {"mine": "causal", "theirs": "leaks"}, "base-dot",
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("name", FIGURES)


# What every figure owes its reader


def test_every_function_is_tested_and_announced():
    functions = {name for name in figures.__all__ if callable(getattr(figures, name))}
    assert functions == set(FIGURES)
    assert all(f"    {name}(" in figures.__doc__ for name in functions)


@EACH
def test_axes_have_titles_with_units(name):
    axes = [a for a in FIGURES[name]().layout.to_plotly_json() if a.startswith(("xaxis", "yaxis"))]
    titles = [FIGURES[name]().layout[a].title.text for a in axes]
    said = [t for t in titles if t]
    assert any(axis.startswith("x") and t for axis, t in zip(axes, titles, strict=True))
    units = ("token", "steps", "factor", "nats", "value", "cycles", "weight", "system")
    assert said and all(any(u in t for u in units) for t in said), said


@EACH
def test_the_alt_text_is_a_sentence_with_numbers(name):
    alt = FIGURES[name]().layout.meta["alt"]
    assert alt[0].isupper() and alt.endswith(".") and any(c.isdigit() for c in alt) and 40 < len(alt) < 500


@EACH
def test_figures_suit_light_and_dark_and_narrow_pages(name):
    fig = FIGURES[name]()
    look = fig.layout.template.layout
    assert fig.layout.height <= 600 and fig.layout.width is None
    assert {look.paper_bgcolor, look.plot_bgcolor} == {"rgba(0,0,0,0)"} and look.font.color == draw.TEXT
    assert not {"white", "#fff", "#ffffff", "black", "#000", "#000000"} & set(fig.to_json().lower().split('"'))


@EACH
def test_figures_are_small_plain_json_without_mathjax(name):
    text = FIGURES[name]().to_json()
    assert len(text) < 20_000 and "$" not in text
    assert "bdata" not in text and "NaN" not in text and "Infinity" not in text  # base64 arrays need a newer plotly.js
    assert json.loads(text)["data"]


@EACH
def test_figures_do_not_change_from_call_to_call(name):
    assert FIGURES[name]().to_json() == FIGURES[name]().to_json()


# Colours


def contrast(a: str, b: str) -> float:
    def luminance(colour):
        c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_marks_and_words_stand_out_on_white_and_on_dark():
    """WCAG 2: 3 for graphics on both, 4.5 for text on white, and 4 on dark, where no grey could have 4.5 on both."""
    for colour in (draw.PAST, draw.FUTURE, draw.BASELINE, *draw.CATEGORIES):
        assert contrast(colour, "#ffffff") >= 3 and contrast(colour, "#121212") >= 3, colour
    assert contrast(draw.TEXT, "#ffffff") >= 4.5 and contrast(draw.TEXT, "#121212") >= 4


def test_a_dark_page_gets_lighter_colours():
    """4.5 on dark for all that a figure draws with, 7 for its words and on white for them."""
    dark, light = draw.SHADES["dark"], draw.SHADES["light"]
    assert {*dark} == {draw.TEXT, draw.PAST, draw.FUTURE, draw.BASELINE, *draw.CATEGORIES}
    assert all(contrast(other, "#121212") >= 4.5 for other in dark.values())
    assert contrast(dark[draw.TEXT], "#121212") >= 7 and contrast(light[draw.TEXT], "#ffffff") >= 7
    assert not {*dark} & {*dark.values()} | {*light} & {*light.values()}  # put in place one after the other


def hues(colour: str) -> float:
    return 360 * colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))[0]


def test_red_blue_and_grey_are_kept_for_future_past_and_baseline():
    for colour in draw.CATEGORIES:
        assert 15 < hues(colour) < 190 or 260 < hues(colour) < 345, colour


@pytest.mark.parametrize("shades", [{}, draw.SHADES["dark"]], ids=["as they are", "dark"])
def test_colour_blind_eyes_tell_the_systems_apart(shades):
    """CIELAB distances of over 20, for normal sight and two kinds of colour blindness (Machado et al. 2009)."""
    deuteranopia = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    protanopia = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    for eyes in (np.eye(3), deuteranopia, protanopia):
        lab = []
        for colour in (shades.get(c, c) for c in (draw.BASELINE, *draw.CATEGORIES)):
            c = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
            c = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
            x, y, z = np.cbrt(xyz @ np.clip(eyes @ c, 0, 1) / [0.9505, 1, 1.089])
            lab.append([116 * y - 16, 500 * (x - y), 200 * (y - z)])
        distance = np.linalg.norm(np.subtract.outer(lab, lab).diagonal(axis1=1, axis2=3), axis=-1)
        assert distance[~np.eye(len(lab), dtype=bool)].min() > 20


def test_a_system_has_one_colour_throughout():
    assert set(figures.COLOURS) <= set(SYSTEMS) and len(set(figures.COLOURS.values())) == len(figures.COLOURS)
    history, bars = FIGURES["history"](), FIGURES["bars"]()
    assert {t.line.color for t in history.data if t.name.startswith("fourier-qk")} == {figures.COLOURS["fourier-qk"]}
    assert list(bars.data[0].marker.color) == [figures.COLOURS["base-dot"], figures.COLOURS["fourier-qk"]]


def test_others_get_colours_that_no_system_of_the_figure_owns():
    colours = draw.colours(["mine", "fourier-qk", "yours"])
    assert len(set(colours.values())) == 3 and colours["fourier-qk"] == figures.COLOURS["fourier-qk"]
    many = draw.colours([*SYSTEMS, *(f"run {i}" for i in range(20))])
    assert all(many[s] == figures.COLOURS[s] for s in figures.COLOURS) and None not in many.values()


# What is drawn is the data


def points(trace) -> tuple[np.ndarray, np.ndarray]:
    return np.array(trace.x, dtype=float), np.array(trace.y, dtype=float)


def test_a_response_is_the_filters():
    filter = Gaussian([0.1, 0.2], 0.03)
    fig = figures.response(filter, n=128, max_freq=0.25)
    f = np.arange(33) / 128
    for trace, centre in zip(fig.data, (0.1, 0.2), strict=True):
        x, y = points(trace)
        np.testing.assert_allclose(x, f, atol=1e-4)
        np.testing.assert_allclose(y, np.exp(-((f - centre) ** 2) / (2 * 0.03**2)), atol=1e-4)
    assert "highest at 0.0" in figures.response(Gaussian(0.0625, 0.01)).layout.meta["alt"]
    assert "a period of 16 tokens" in figures.response(Gaussian(1 / 16, 0.01)).layout.meta["alt"]


def test_an_impulse_shows_the_past_in_blue_and_the_future_in_red():
    fig = figures.impulse(Gaussian(0.1, 0.05), n=32)
    (x, y), (x_future, y_future) = (points(t) for t in fig.data)
    assert [t.marker.color for t in fig.data] == [figures.PAST, figures.FUTURE]
    assert x.tolist() == list(range(32)) and x_future.tolist() == list(range(-32, 0))
    h = Gaussian(0.1, 0.05).impulse(64)[0].detach()
    np.testing.assert_allclose(y, h[:32], atol=1e-4)
    np.testing.assert_allclose(y_future, h[32:], atol=1e-4)
    ahead = (h[33:].square().sum() + h[32] ** 2 / 2) / h.square().sum()  # 32 of 64 tokens away: half ahead, half behind
    assert f", {ahead:.0%} of its energy in the future" in fig.layout.meta["alt"]


@pytest.mark.parametrize("filter", [Morlet(8.0, taps=200), Causal(Gaussian(0.1, 0.05), 100)], ids=["pair", "real"])
def test_a_causal_impulse_has_no_future_even_where_it_outlasts_the_figure(filter):
    fig = figures.impulse(filter, n=16)
    future = [t for t in fig.data if t.name == "future"]
    assert future and all(v == 0 for t in future for v in t.y)
    assert ", 0% of its energy in the future" in fig.layout.meta["alt"]


def test_one_head_of_many_is_drawn():
    first, second = (figures.impulse(Gaussian([0.1, 0.3], 0.05), head=h).data[0].y for h in (0, 1))
    assert first != second and first == figures.impulse(Gaussian(0.1, 0.05)).data[0].y


@pytest.mark.parametrize("name", shelf())
def test_every_filter_on_the_shelf_can_be_drawn(name):
    for fig in (figures.response(shelf()[name]), figures.impulse(shelf()[name]), figures.impulse(shelf()[name], n=2)):
        assert len(fig.to_json()) < 25_000 and "nan" not in fig.layout.meta["alt"]


def test_learned_and_float64_filters_can_be_drawn():
    for filter in (Gaussian(learn=True), Analytic(RandomBands(3)).double(), Bank(Gaussian(heads=4), Tone()).double()):
        assert figures.response(filter).data and figures.impulse(filter, n=7).data


def test_signals_of_all_kinds_are_drawn_alike():
    y = [0.0, 1.5, -2.0]
    for x in (y, np.array(y), torch.tensor(y), torch.tensor(y, requires_grad=True)):
        fig = figures.signals(x, start=5)
        assert list(fig.data[0].x) == [5, 6, 7] and list(fig.data[0].y) == y
    assert "runs from -2 to 1.5 over 3 tokens" in fig.layout.meta["alt"]


def test_a_text_spells_out_under_the_axis():
    axis = figures.signals([1, 2, 3], text="a \n", start=4).layout.xaxis
    assert list(axis.ticktext) == ["a", "␣", "⏎"] and list(axis.tickvals) == [4, 5, 6]


def test_long_lines_keep_their_peaks():
    x = np.zeros(100_000)
    x[54_321], x[98_765] = 7.0, -3.0
    fig = figures.signals(x)
    assert len(fig.data[0].x) <= draw.POINTS and 54_321 in fig.data[0].x
    assert max(fig.data[0].y) == 7 and min(fig.data[0].y) == -3 and len(fig.to_json()) < 60_000


def test_bins_are_stems_from_zero():
    trace = figures.spectrum(RNG.normal(size=32)).data[0]
    assert trace.mode == "markers" and set(trace.error_y.array) == {0}
    assert list(trace.error_y.arrayminus) == list(trace.y)


@pytest.mark.parametrize("n", [64, 63])
def test_a_spectrum_keeps_parsevals_account(n):
    """The powers of all bins, positive and negative, add to the energy."""
    x = RNG.normal(size=n)
    f, power = points(figures.spectrum(x).data[0])
    twice = (f > 0) & (np.abs(f - 0.5) > 1e-9)
    assert (power * np.where(twice, 2, 1)).sum() == pytest.approx((x**2).sum(), rel=1e-3)


def test_token_ids_are_not_taken_for_a_signal_but_indicators_are():
    ids = torch.tensor([3, 0, 2, 9] * 50)
    with pytest.raises(ValueError, match="names: use figures.text_spectrum"):
        figures.spectrum(ids)
    one = figures.spectrum((ids == 9).long(), n=40, periods=[4])
    f, power = points(one.data[0])
    assert f[power[1:].argmax() + 1] == 0.25 and power[10] == pytest.approx(10**2 / 40, rel=1e-3)
    assert "marked: periods of 4 tokens" in one.layout.meta["alt"] and "4 tokens" in one.to_json()


def test_the_spectrum_of_a_text_is_drawn_as_it_is():
    fig = figures.text_spectrum({"beat": BEAT, "the same, shuffled": SHUFFLED}, periods=[5])
    for trace, s in zip(fig.data, (BEAT, SHUFFLED), strict=True):
        f, power = points(trace)
        np.testing.assert_allclose(f, s.freq[1:], rtol=1e-3)
        np.testing.assert_allclose(power, s.relative[1:], atol=2e-4 * power.max())
    assert fig.layout.xaxis.type == "log" and list(fig.layout.xaxis.ticktext) == ["1/2", "1/4", "1/16", "1/64"]
    assert fig.layout.annotations[0].x == pytest.approx(np.log10(1 / 5)) and fig.layout.shapes[-1].x0 == 1 / 5
    alt = fig.layout.meta["alt"]
    assert "its strongest peaks at periods of 4.92, 2.46 tokens" in alt and "shuffled" in alt and "without peaks" in alt
    assert "marked: periods of 5 tokens" in alt and "5 tokens" in fig.to_json()
    alone = figures.text_spectrum(BEAT)
    assert len(alone.data) == 1 and not alone.data[0].showlegend


def test_segments_are_averaged_and_channels_added():
    x = RNG.normal(size=(100, 3))
    expected = (np.abs(np.fft.rfft(x[:90].reshape(3, 30, 3), axis=1)) ** 2).mean(0).sum(1) / 30
    np.testing.assert_allclose(figures.spectrum(x, n=30).data[0].y, expected, atol=1e-3 * expected.max())


def test_arrows_end_at_the_bin_of_the_dft():
    x = RNG.normal(size=12)
    spokes, chain, total = figures.arrows(x, 3).data
    expected = np.fft.fft(x)[3]
    for trace in (total, chain):
        assert (trace.x[-1], trace.y[-1]) == pytest.approx((expected.real, expected.imag), abs=1e-3)
    assert len(chain.x) == 13 and len(spokes.x) == 36


def test_a_small_map_is_the_matrix_and_a_large_one_keeps_the_strongest():
    m = RNG.normal(size=(5, 7))
    fig = figures.heatmap(m)
    np.testing.assert_allclose(fig.data[0].z, m, atol=1e-3)
    assert fig.data[0].zmin == -fig.data[0].zmax and "5 by 7" in fig.layout.meta["alt"]
    big = np.zeros((300, 300))
    big[123, 234] = -2.0
    fig = figures.heatmap(big)
    z = np.array(fig.data[0].z, dtype=float)
    assert z.shape == (100, 100) and z[41, 78] == -2 and np.abs(z).sum() == 2
    assert fig.data[0].x0 + 78 * fig.data[0].dx == 235 and fig.data[0].dx == 3  # the middle of columns 234 to 236


def test_history_draws_ordered_solid_and_honest_dotted():
    fig = figures.history({"base-dot": run(4.0)}, floor=0.39)
    ordered, honest, floor = fig.data[:3]
    assert (list(ordered.y), ordered.line.dash) == ([4.0, 1.5, 1.0], "solid")
    assert (list(honest.y), honest.line.dash) == ([4.0, 1.75, 1.25], "dot")
    assert (list(floor.x), set(floor.y), floor.line.dash) == ([0, 100, 200], {0.39}, "dash")
    assert "base-dot, honest: from 4 to 1.25" in fig.layout.meta["alt"] and "floor: 0.39" in fig.layout.meta["alt"]


def test_a_floor_may_differ_from_position_to_position():
    floor = torch.linspace(2, 1, 9)
    fig = figures.loss_by_position(torch.ones(9), floor=floor)
    np.testing.assert_allclose(fig.data[-1].y, floor, atol=1e-3)


def test_the_audit_draws_past_blue_future_red_and_the_diagonal():
    fig = figures.audit(leaky())
    z = np.array(fig.data[0].z, dtype=float)
    colour = dict(fig.data[0].colorscale)
    assert colour[0.0] == figures.PAST and colour[1.0] == figures.FUTURE
    assert z[0, 0] == -1 and z[2, 5] == pytest.approx(0.5) and z[6, 1] == pytest.approx(-4 / 6, abs=1e-3)
    assert np.count_nonzero(z) == 10
    assert list(fig.data[1].x) == list(fig.data[1].y) == [-0.5, 7.5]
    assert "leaks" in fig.layout.meta["alt"] and "future token is 0.001" in fig.layout.meta["alt"]


def test_an_audit_without_a_leak_says_so():
    for influence in (torch.eye(4), torch.zeros(4, 4), torch.ones(1, 1)):
        fig = figures.audit(SimpleNamespace(influence=influence, verdict="causal"))
        assert "no future token moves an output" in fig.layout.meta["alt"]
        assert (np.array(fig.data[0].z, dtype=float) <= 0).all()


def test_tokens_that_the_audit_did_not_try_stay_blank():
    influence = torch.eye(4)
    influence[:, 1] = torch.nan
    fig = figures.audit(SimpleNamespace(influence=influence, verdict="causal"))
    assert [row[1] for row in fig.data[0].z] == [None] * 4 and fig.data[0].z[2][2] == -1
    assert "any token is 1" in fig.layout.meta["alt"]


def test_bars_show_two_standard_errors():
    fig = FIGURES["bars"]()
    assert list(fig.data[0].x) == [1.25, 0.5] and list(fig.data[0].error_x.array) == [0.04, 0.02]
    assert "base-dot: 1.25 ± 0.04" in fig.layout.meta["alt"]


# Odd shapes and errors


def test_one_token_and_one_value_can_be_drawn():
    for fig in (
        figures.signals([1.0]), figures.spectrum([1.0]), figures.arrows([1.0], 0), figures.heatmap([[0.0]]),
        figures.loss_by_position([1.0], floor=1.0), figures.response(Gaussian(), n=1), figures.impulse(Gaussian(), n=1),
        figures.signals([0.0, np.nan]), figures.heatmap(np.full((3, 200), -1)), figures.arrows([0.0, 0.0, 0.0], 1),
    ):  # fmt: skip
        assert isinstance(fig, go.Figure) and "Infinity" not in fig.to_json()


@pytest.mark.parametrize(
    "act, words",
    [(lambda: figures.response({}), "at least one"), (lambda: figures.response([1, 2]), "filter"),
     (lambda: figures.impulse({"x": 1.0}), "filter"), (lambda: figures.signals(np.zeros((2, 3))), r"\(2, 3\)"),
     (lambda: figures.signals([]), "T >= 1"), (lambda: figures.spectrum(np.zeros(4), n=5), "n = 5"),
     (lambda: figures.spectrum(np.zeros(4) * 1j), "complex"),
     (lambda: figures.spectrum(np.zeros((2, 2, 2))), r"\(2, 2, 2\)"),
     (lambda: figures.arrows(np.eye(2), 1), r"\(T,\)"), (lambda: figures.heatmap(np.zeros(4)), "one real matrix"),
     (lambda: figures.heatmap(np.eye(2) * 1j), ".real"), (lambda: figures.loss_by_position({}), "at least one")],
)  # fmt: skip
def test_bad_input_is_explained(act, words):
    with pytest.raises(ValueError, match=words):
        act()


# What the figures of studies show


def test_gains_draws_every_seed_its_mean_and_the_interval_it_was_given():
    fig = FIGURES["gains"]()
    seeds, mean, once, lone = fig.data
    assert list(seeds.x) == DIFFERENCE["values"] and [*seeds.y] == [fig.layout.yaxis.tickvals[0]] * 3
    assert list(mean.x) == [-0.02] and list(mean.error_x.array) == pytest.approx([0.025])
    assert list(once.x) == list(lone.x) == [0.4] and lone.error_x.array is None
    assert {mean.marker.color, lone.marker.color} == {draw.PAST, draw.FUTURE}


def test_forest_draws_red_what_the_future_can_touch():
    fig = FIGURES["forest"]()
    touched, causal, honest = fig.data
    assert fig.layout.yaxis.zeroline is False  # the line at 0 is that of the differences
    assert (touched.marker.color, touched.marker.symbol, list(touched.x)) == (draw.FUTURE, "x", [-0.9])
    assert {causal.marker.color, honest.marker.color} == {draw.PAST} and list(honest.x) == [0.2, -0.2]
    assert list(causal.x) == [-0.1] and list(causal.error_x.array) == pytest.approx([0.05])
    assert list(honest.error_x.array) == pytest.approx([0.05, 0.05])
    rows = fig.layout.yaxis.tickvals
    assert [min(range(2), key=lambda i: abs(rows[i] - y)) for y in honest.y] == [0, 1]
    assert touched.y[0] < rows[0] < honest.y[0]  # the ordered loss above, and neither hides the other


def test_forest_says_a_claim_once_and_in_lines_that_a_phone_has_room_for():
    row = [shown("honest", 0.2)]
    names = ("a gain, says the paper, of all<br>mine", "a gain, says the paper, of all<br>yours", "b<br>mine")
    texts = figures.forest(dict.fromkeys(names, row)).layout.yaxis.ticktext
    assert texts == ("<b>a gain, says the<br>paper, of all</b><br>mine", "yours", "<b>b</b><br>mine")


def test_two_losses_are_joined_across_the_floor():
    fig = FIGURES["two_losses"]()
    joined, marks = fig.data[:2], fig.data[2:]
    assert [list(t.x) for t in joined] == [[0.2, 1.1], [0.8, 0.85]]
    assert [(t.marker.color, t.marker.symbol, list(t.x)) for t in marks] == [
        (draw.FUTURE, "x", [0.2]), (draw.PAST, "circle-open", [0.8]), (draw.PAST, "circle", [1.1, 0.85]),
    ]  # fmt: skip
    assert [y for t in marks[:2] for y in t.y] == list(marks[2].y) == list(fig.layout.yaxis.tickvals)
    assert fig.layout.shapes[0].x0 == 0.79 and "mine, leaks: ordered 0.2, honest 1.1" in fig.layout.meta["alt"]


def test_the_bars_of_one_model_have_one_colour():
    fig = figures.bars({"fnet, ordered": (1, 0), "fnet, honest": (2, 0), "mine": (1, 0)})
    first, second, third = fig.data[0].marker.color
    assert first == second != third


def test_ticks_stand_at_the_ends():
    assert figures.spectrum(np.cos(T)).layout.xaxis.ticktext[-1] == figures.response(BAND).layout.xaxis.ticktext[-1]
    assert "1/2" in figures.spectrum(np.cos(T)).layout.xaxis.ticktext
    for n in range(1, 300):
        places = draw.places(n)["tickvals"]
        assert places[0] == 0 and places[-1] == n - 1 and len(places) <= 6
        assert all(b - a > n / 9 for a, b in zip(places, places[1:], strict=False))


def test_scatter_and_panels_tell_leaks_from_causal_systems():
    causal, leaks = FIGURES["scatter"]().data
    assert (list(causal.customdata), list(causal.x), list(causal.y)) == (["mine"], [7.5], [0.01])
    assert (list(leaks.customdata), list(leaks.x), list(leaks.y)) == (["theirs"], [4.2], [2.5])
    assert [a.text for a in FIGURES["scatter"]().layout.annotations] == ["theirs"]
    assert (causal.marker.color, leaks.marker.color) == (draw.PAST, draw.FUTURE)
    assert causal.marker.symbol != leaks.marker.symbol
    lines = {(t.name, t.xaxis): (t.line.color, list(t.y)) for t in FIGURES["panels"]().data}
    assert lines["mine", "x"] == (draw.PAST, (T[:9] / 4).tolist())
    assert lines["theirs", "x2"] == (draw.FUTURE, (T[:9] / 8).tolist())
    assert lines["base-dot", "x"] == lines["base-dot", "x2"] == (draw.BASELINE, [1] * 9)


def test_audits_that_differ_are_drawn_in_neither_colour():
    fig = figures.scatter({"mine": (1, 2)}, {"mine": "mixed"}, "x (nats)", "y (nats)")
    assert (fig.data[0].marker.color, fig.data[0].name) == (draw.BASELINE, "audit: mixed")
    assert {t.marker.color for t in figures.gains({"mine": DIFFERENCE}, {"mine": "mixed"}).data} == {draw.BASELINE}


def test_panels_of_the_baseline_alone_are_refused():
    for losses in ({"base-dot": T}, {"mine": T}):
        with pytest.raises(ValueError, match="panels need 'base-dot' and one system more"):
            figures.panels(losses, {"mine": "causal"}, "base-dot")
