"""ScaleMixer: kernels are the library's, marks are the records', and a drag keeps the band that it began with."""
import math
import random

import numpy as np
import pytest
import torch
import traitlets
from viewing import address, alone, pure

from fourierqk import records
from fourierqk.filters import Gaussian, period
from fourierqk.widgets import MIME, ScaleMixer
from fourierqk.widgets.scale_mixer import STUDIES, recorded

ADDRESS = address("scale_mixer")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"period1": 2}, "between 2.1 and 256 tokens"),
        ({"period4": 257}, "between 2.1 and 256 tokens"),
        ({"period2": float("nan")}, "between 2.1 and 256 tokens"),
        ({"width": 0.001}, "between 0.002 and 0.2 cycles per token"),
        ({"learned": {"mine": [[5.0], [6.0], [7.0]]}}, "four lists of periods"),
        ({"learned": {"mine": [[5.0], [6.0], [7.0], []]}}, "four lists of periods"),
        ({"learned": {"mine": [[5.0], [6.0], [7.0], [1.9]]}}, "four lists of periods"),
        ({"learned": [50, 26, 10, 5]}, "four lists of periods"),
    ],
)
def test_a_wrong_value_is_named(wrong, says):
    with pytest.raises(traitlets.TraitError, match=says):
        ScaleMixer(**wrong)


def test_repr_is_the_call_that_makes_it():
    mixer = ScaleMixer(80, 64, 50, 40, width=0.01, learned={"mine": [[70, 71], [60], [50], [40]]})
    assert eval(repr(mixer)).settings() == mixer.settings()
    assert mixer.learned == {"mine": [[70.0, 71.0], [60.0], [50.0], [40.0]]}
    assert mixer._repr_mimebundle_()[0][MIME] == {"widget": "scale_mixer", "settings": mixer.settings()}


@pytest.mark.parametrize("text", STUDIES)
def test_marks_are_the_ends_of_the_recorded_runs(text):
    """Written out: a parameter a band and layer, in the order of layers and bands, a frequency a head."""
    runs = records.study(STUDIES[text])["multifourier-qk"]
    for band, marks in enumerate(recorded()[text]):
        ends = [
            head
            for r in runs
            for name, evaluated in r["history"]["frequencies"].items()
            for head in evaluated[-1]
            if f".filters.{band}." in name
        ]
        shape = runs[0]["model"]
        assert len(ends) == len(marks) == len(runs) * shape["n_layer"] * shape["n_head"]
        np.testing.assert_allclose(sorted(marks), sorted(1 / f for f in ends), rtol=1e-3)


# ---------------------------------------------------------------- the page against the library


@pytest.fixture
def precise():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "describe, sentence") as call:
        yield call


def settings(count: int) -> list[dict]:
    rng = random.Random(2)
    return [
        {f"period{i}": 2.1 * 2 ** rng.uniform(0, 6.9) for i in range(1, 5)}
        | {"width": 0.002 * 100 ** rng.random(), "learned": {}}
        for _ in range(count)
    ]


@pytest.mark.parametrize("s", settings(12))
def test_kernels_and_the_share_of_the_future_are_the_librarys(script, precise, s):
    told = script("(({ rows, future }) => ({ rows: rows.map((h) => [...h]), future }))(describe(a))", s)
    each = [Gaussian(period(s[f"period{i}"]), s["width"]) for i in range(1, 5)]
    for filter, row in zip([*each, ScaleMixer(**s).filter], told["rows"], strict=True):
        ours = filter.impulse(1024)[0].numpy()
        np.testing.assert_allclose(row, ours[: len(row)], atol=1e-9)
        np.testing.assert_allclose(row[1:], ours[: -len(row) : -1], atol=1e-9)  # the future: its mirror image
    energy = ours[np.r_[513:1024, 0:512]] ** 2  # lags -511 .. 511; lag 512 of the ring is on neither side, and faint
    assert told["future"] == pytest.approx(energy[:511].sum() / energy.sum(), abs=1e-6)


def test_all_bands_hear_equally_far(script):
    """What the chapter asks: under each wave the same bell, of 1 / (2 pi width) tokens."""
    s = {f"period{i}": p for i, p in enumerate((50, 26, 10, 5), 1)} | {"width": 2 / 256, "learned": {}}
    told = script("(({ rows, fades }) => ({ rows: rows.map((h) => [...h]), fades }))(describe(a))", s)
    lags = np.arange(len(told["rows"][0]))
    for p, row in zip((50, 26, 10, 5), told["rows"], strict=False):
        bell = 2 * s["width"] * math.sqrt(2 * math.pi) * np.exp(-0.5 * (lags / told["fades"]) ** 2)
        # but for what the slowest band's mirror image adds at DC
        np.testing.assert_allclose(row, bell * np.cos(2 * np.pi * lags / p), atol=2e-3 if p == 50 else 1e-6)


def test_what_the_first_picture_says(script):
    said = script("sentence(a, describe(a))", ScaleMixer().settings())
    assert "Periods of 50, 26, 10 and 5 tokens" in said and "fades over 20.4 tokens either way" in said
    for text, bands in recorded().items():
        means = [float(f"{math.exp(np.log(band).mean()):.2g}") for band in bands]
        assert f"{means[0]:g}, {means[1]:g}, {means[2]:g} and {means[3]:g} on {text}" in said


# ---------------------------------------------------------------- the reader's hand


@pytest.fixture
def live(browser):
    with alone(browser, ScaleMixer()) as page:
        yield page


def axis(page):
    """Period -> the place of its band on the page."""
    box = page.get_by_role("img").first.bounding_box()

    def at(p: float) -> tuple[float, float]:
        return box["x"] + 50 + (math.log2(256) - math.log2(p)) / 7 * (box["width"] - 62), box["y"] + 150

    return at


def test_a_drag_keeps_the_band_that_it_began_with(live):
    at = axis(live)
    live.mouse.move(*at(11))
    live.mouse.down()
    for p in (9, 5, 4, 3):  # past the fourth band
        live.mouse.move(*at(p))
    live.mouse.up()
    live.mouse.move(*at(100))
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert (saved["period1"], saved["period2"], saved["period4"]) == (50, 26, 5)
    assert saved["period3"] == pytest.approx(3, rel=0.02)
    live.mouse.click(*at(200))
    live.clock.run_for(600)
    assert live.evaluate("saved.period1") == pytest.approx(200, rel=0.02)
    ScaleMixer(**live.evaluate("saved"))


def test_keys_and_buttons_reach_the_model(live):
    live.get_by_label("Width of all four", exact=True).press("Home")
    live.get_by_label("Period 2, exact value").fill("84")
    live.get_by_label("Period 2, exact value").press("Enter")
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    assert (saved["width"], saved["period2"]) == (0.002, 84)
    live.get_by_role("button", name="Means learned on verse").click()
    live.clock.run_for(600)
    saved = live.evaluate("saved")
    for i, band in enumerate(saved["learned"]["verse"], 1):
        assert saved[f"period{i}"] == pytest.approx(math.exp(np.log(band).mean()), rel=1e-3)
    live.get_by_role("button", name="The paper's start").click()
    live.clock.run_for(600)
    assert [live.evaluate(f"saved.period{i}") for i in range(1, 5)] == [50, 26, 10, 5]
    ScaleMixer(**live.evaluate("saved"))
