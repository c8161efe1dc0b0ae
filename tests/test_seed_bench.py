"""SeedBench: its intervals are scipy's, they miss as often as theory says, and the reader's hand reaches the model."""
import itertools
import math
import re

import numpy as np
import pytest
import scipy.stats
import traitlets
from viewing import address, alone, leaves_no_trace, pure

from fourierqk.figures import draw
from fourierqk.records.tables import compare
from fourierqk.widgets import MIME, SeedBench
from fourierqk.widgets.seed_bench import INTERVALS, MOST, STUDIES, _normals

ADDRESS = address("seed_bench")
FIRST = {"difference": -0.03, "spread": 0.02, "seeds": 3, "interval": "student"}
SETTINGS = [
    {"difference": d, "spread": s, "seeds": n, "interval": kind}
    for d, s, n, kind in itertools.product((-0.1, -0.03, 0.0, 0.1), (0.002, 0.02, 0.1), (2, 3, 7, MOST), INTERVALS)
]

# ---------------------------------------------------------------- traits


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"difference": -0.11}, "difference = -0.11 must lie between -0.1 and 0.1 nats per token"),
        ({"difference": float("nan")}, "difference = nan must lie between"),
        ({"difference": "none"}, "difference"),
        ({"spread": 0.0}, "spread = 0.0 must lie between 0.002 and 0.1 nats per token"),
        ({"spread": 0.2}, "spread = 0.2 must lie between"),
        ({"spread": float("nan")}, "spread = nan must lie between"),
        ({"seeds": 1}, "seeds = 1 must lie between 2 and 10 seeds"),
        ({"seeds": 11}, "seeds = 11 must lie between 2 and 10 seeds"),
        ({"seeds": 2.5}, "seeds"),
        ({"interval": "bootstrap"}, "student"),
    ],
)
def test_a_wrong_value_is_named_and_changes_nothing(wrong, says):
    with pytest.raises(traitlets.TraitError, match=re.escape(says)):
        SeedBench(**wrong)
    bench = SeedBench()
    for name, value in wrong.items():
        with pytest.raises(traitlets.TraitError, match=re.escape(says)):
            setattr(bench, name, value)
    assert bench.settings() == FIRST


def test_repr_is_the_call_that_makes_it():
    bench = SeedBench(0.05, spread=0.1, seeds=7, interval="normal")
    want = {"difference": 0.05, "spread": 0.1, "seeds": 7, "interval": "normal"}
    assert eval(repr(bench)).settings() == bench.settings() == want
    assert bench._repr_mimebundle_()[0][MIME] == {"widget": "seed_bench", "settings": want}


# ---------------------------------------------------------------- the model against scipy


def test_the_table_is_standard_normal_and_its_seeds_are_strangers():
    z = _normals().numpy()
    assert z.shape == (STUDIES, MOST)
    assert scipy.stats.kstest(z.ravel(), "norm").pvalue > 0.05
    between = np.corrcoef(z.T)[np.triu_indices(MOST, 1)]  # each of variance 1 / 40 by chance alone
    assert abs(between).max() < 4 / math.sqrt(STUDIES) and between.std() < 1.3 / math.sqrt(STUDIES)


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_intervals_are_scipys(settings):
    bench = SeedBench(**settings)
    x = bench.studies.numpy()
    mean, se, n = x.mean(1), scipy.stats.sem(x, axis=1), settings["seeds"]
    if settings["interval"] == "student":
        want = scipy.stats.t.interval(0.95, n - 1, loc=mean, scale=se)
    else:
        want = mean - 1.96 * se, mean + 1.96 * se
    np.testing.assert_allclose(bench.intervals.T, want, atol=1e-9)
    low, high = want
    assert bench.counts == {
        "lower": (high < 0).sum(), "higher": (low > 0).sum(), "undecided": ((low <= 0) & (high >= 0)).sum(),
        "misses": STUDIES - ((low <= bench.difference) & (bench.difference <= high)).sum(),
    }  # fmt: skip


def test_a_study_says_what_the_tables_of_real_runs_would():
    bench = SeedBench(seeds=5)
    for differences, ends in zip(bench.studies.tolist(), bench.intervals.tolist(), strict=True):
        base, system = (
            [{"seed": i, "losses": {"honest": {"mean": 1.5 + v, "se": 0.0}}} for i, v in enumerate(values)]
            for values in ([0.0] * 5, differences)
        )
        found = compare(system, base)
        assert [found["low"], found["high"]] == pytest.approx(ends, abs=1e-12)


def test_a_setting_moves_the_intervals_and_draws_no_new_ones():
    z = (SeedBench(seeds=4).studies - -0.03) / 0.02
    moved = SeedBench(0.1, spread=0.05, seeds=4)
    np.testing.assert_allclose(moved.studies, 0.1 + 0.05 * z, atol=1e-12)
    np.testing.assert_allclose(SeedBench(seeds=9).studies[:, :4], SeedBench(seeds=4).studies)  # a seed joins the others
    misses = {SeedBench(d, spread=s, seeds=4).counts["misses"] for d in (-0.1, 0, 0.1) for s in (0.002, 0.1)}
    assert len(misses) == 1, "which intervals miss is a matter of chance and of the interval alone"


@pytest.mark.parametrize("seeds", range(2, MOST + 1))
def test_how_often_an_interval_misses(seeds):
    """Over 100,000 studies, drawn apart from the table; and the forty are no strange ones."""
    n = 100_000
    x = np.random.default_rng(seeds).normal(-0.03, 0.02, (n, seeds))
    away, se = abs(x.mean(1) - -0.03), x.std(1, ddof=1) / math.sqrt(seeds)
    rate = {kind: (away > half(seeds) * se).mean() for kind, half in INTERVALS.items()}
    assert rate["student"] == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / n))
    normal = 2 * scipy.stats.t.sf(1.96, seeds - 1)
    assert rate["normal"] == pytest.approx(normal, abs=4 * math.sqrt(normal * (1 - normal) / n))
    assert seeds > 3 or rate["normal"] > 3 * rate["student"]
    for kind, p in {"student": 0.05, "normal": normal}.items():
        misses = SeedBench(seeds=seeds, interval=kind).counts["misses"]
        assert scipy.stats.binomtest(misses, STUDIES, p).pvalue > 0.1


# ---------------------------------------------------------------- the script against the model


@pytest.fixture(scope="module")
def script(browser):
    with pure(browser, ADDRESS, "counts, inks, intervals, sentence, stackPlot, studies") as call:
        yield call


def test_both_sides_know_the_same_intervals(script):
    assert script("intervals") == list(INTERVALS)


def test_numbers_equal_the_models(script):
    every = SETTINGS + [FIRST | {"seeds": n} for n in range(2, MOST + 1)]
    theirs = script("a.map((s) => [studies(s), counts(studies(s))])", every)
    for settings, (rows, counts) in zip(every, theirs, strict=True):
        bench = SeedBench(**settings)
        np.testing.assert_allclose([[r["low"], r["high"]] for r in rows], bench.intervals, atol=1e-9)
        np.testing.assert_allclose([r["mean"] for r in rows], bench.studies.mean(1), atol=1e-12)
        assert counts == bench.counts
        for r in rows:
            assert r["verdict"] == ("lower" if r["high"] < 0 else "higher" if r["low"] > 0 else "undecided")
            assert r["miss"] == (not r["low"] <= settings["difference"] <= r["high"])


def test_it_says_what_is_seen(script):
    c = SeedBench().counts
    said = script("sentence(a, counts(studies(a)))", FIRST)
    assert said == (
        f"Of 40 studies with 3 seeds each, {c['lower']} say lower, {c['undecided']} are undecided, {c['higher']} say "
        f"higher. {c['misses']} interval misses the true difference of −0.030 nats per token; 95 % intervals should "
        "miss it about twice in 40."
    )
    nothing = SeedBench(difference=0.0, interval="normal")
    assert nothing.counts["lower"] + nothing.counts["higher"] == nothing.counts["misses"] > 4
    alt = script("stackPlot(a, studies(a)).alt", nothing.settings())
    assert f"{nothing.counts['undecided']} hold it" in alt and "beyond the edges" not in alt
    wide = SeedBench(spread=0.1, seeds=2)
    beyond = int((wide.intervals.abs() > 0.25).any(1).sum())
    assert beyond > 30 and f"{beyond} run beyond the edges" in script("stackPlot(a, studies(a)).alt", wide.settings())


def test_colours_are_the_books_and_mean_nothing_else(script):
    inks = script("inks")
    assert list(inks) == ["lower", "undecided", "higher"] and inks.pop("undecided") == draw.BASELINE
    assert {*inks.values()} < {*draw.CATEGORIES} and len({*inks.values()}) == 2


# ---------------------------------------------------------------- on a page


@pytest.fixture
def live(browser):
    with alone(browser, SeedBench(), viewport={"width": 390, "height": 800}, color_scheme="dark") as page:
        yield page


def test_what_the_reader_does_reaches_the_model(live):
    live.get_by_label("True difference, exact value").fill("0")
    live.get_by_label("True difference, exact value").press("Enter")
    live.get_by_label("Spread over seeds", exact=True).press("End")
    live.get_by_label("Seeds", exact=True).press("ArrowLeft")
    live.get_by_role("combobox", name="Interval").select_option("normal")
    live.clock.run_for(700)
    saved = live.evaluate("saved")
    assert saved == {"difference": 0, "spread": 0.1, "seeds": 2, "interval": "normal"}
    c = SeedBench(**saved).counts
    said = live.get_by_role("status").inner_text()
    assert f"{c['lower']} say lower" in said and f"{c['misses']} intervals miss" in said
    assert f"{c['misses']} miss the true difference" in live.get_by_role("img").get_attribute("aria-label")
    live.get_by_label("Spread over seeds", exact=True).press("Home")
    live.get_by_label("True difference", exact=True).press("End")
    live.clock.run_for(500)
    assert live.evaluate("saved") == {"difference": 0.1, "spread": 0.002, "seeds": 2, "interval": "normal"}


def test_the_page_sends_nothing_that_python_refuses(live):
    for label, key in (("True difference", "difference"), ("Spread over seeds", "spread"), ("Seeds", "seeds")):
        field = live.get_by_label(f"{label}, exact value", exact=True)
        for typed in ("0", "-3", "9999", "2.5", "0.0123", ""):
            field.fill(typed)
            field.press("Enter")
            live.clock.run_for(150)
            SeedBench(**{key: live.evaluate(f"model.get('{key}')")})


def test_the_study_under_the_pointer_is_read_out(live):
    canvas, tip = live.get_by_role("img"), live.locator(".fqk-tip")
    box = canvas.bounding_box()
    low, high = SeedBench().intervals[0].tolist()
    canvas.hover(position={"x": box["width"] / 2, "y": 54 + 3})  # 54 px down, the first of rows 8 px high
    assert tip.inner_text().replace("−", "-").startswith("study 1: ")
    assert f"from {low:.3f} to {high:.3f}" in tip.inner_text().replace("−", "-")
    canvas.hover(position={"x": box["width"] / 2, "y": box["height"] - 42 - 3})
    assert tip.inner_text().startswith("study 40: ")
    canvas.hover(position={"x": box["width"] / 2, "y": 20})
    assert tip.is_hidden()


def test_a_phone_has_room_for_it_and_it_leaves_no_trace(live):
    assert live.evaluate("document.documentElement.scrollWidth") <= 390
    assert live.locator("canvas").count() == 1
    assert leaves_no_trace(live)
