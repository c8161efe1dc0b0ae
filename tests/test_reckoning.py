"""The reckoning: verdicts follow the records, numbers are those of an independent count, and the page shows them."""
import copy
import itertools
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from fourierqk import reckoning, report
from fourierqk.evidence import Evidence, spearman
from fourierqk.reckoning import CLAIMS, VERDICTS, markdown, paper, reckon
from fourierqk.zoo import SYSTEMS, VARIANTS, system

ROOT = Path(__file__).resolve().parents[1]
ONCE = [s for s in SYSTEMS if s not in ("fourier-qk", "multifourier-qk", "random-qk", "sliding-fourier-qk")]
SEVERAL = ["base-dot", "fourier-qk", "multifourier-qk", "random-qk", "sliding-fourier-qk", "causal-morlet"]


def record(name: str, seed: int = 0, ordered: float = 2.0, honest: float = 2.0) -> dict:
    """A record as `measure` makes it, of a model that learned as little as the numbers say."""
    verdict = system(name).verdict
    means = {"ordered": ordered, "honest": honest, "shuffled": ordered + 5, "truncated": honest}
    losses = {kind: {"mean": mean, "se": 0.01} for kind, mean in means.items()}
    losses["shuffled"] |= {"gap": 5.0, "below_unigram": False}
    filters = [{"coverage": [3.0, 5.0], "future_share": [0.4, 0.5]}] if verdict == "leaks" and name != "fnet" else []
    paths = {f"layer {i // 4} band {i % 4}": [[1 / p, 1 / p]] for i, p in enumerate([50, 26, 10, 5] * 2)}
    return {
        "system": name, "seed": seed, "preset": "small", "corpus": {"name": "shakespeare"}, "losses": losses,
        "audit": {"verdict": verdict}, "filters": filters, "loss_by_position": [ordered] * 12,
        "model": {"n_embd": 128}, "train": {"steps": 1500}, "parameters": 1,
        "history": {"frequencies": paths, "tokens_per_second": 1.0}, "sample": "To be,\n\nor <not>",
    }  # fmt: skip


def evidence() -> Evidence:
    """Three seeds that differ a little, and one: no system is better or worse than another."""
    noise = random.Random(0)
    seeds = {
        s: [record(s, i, 2 + noise.gauss(0, 1e-3), 2 + noise.gauss(0, 1e-3)) for i in range(3)] for s in SEVERAL
    }
    return Evidence(seeds, {s: [record(s)] for s in ONCE if s not in SEVERAL or s == "base-dot"})


def shift(e: Evidence, name: str, **by: float) -> Evidence:
    """The same evidence, losses of one system moved."""
    e = copy.deepcopy(e)
    for run, (kind, d) in itertools.product(e.runs(name), by.items()):
        run["losses"][kind]["mean"] += d
        if kind == "ordered":
            run["loss_by_position"] = [nats + d for nats in run["loss_by_position"]]
    return e


def verdict(name: str, e: Evidence) -> str:
    (claim,) = [c for c in CLAIMS if c.name == name]
    return claim.judge(e).verdict


# --- evidence


def test_a_gain_is_students_interval_of_the_paired_differences():
    e = shift(evidence(), "fourier-qk", honest=-0.1)
    d = [a["losses"]["honest"]["mean"] - b["losses"]["honest"]["mean"]
         for a, b in zip(e.runs("fourier-qk"), e.seeds["base-dot"], strict=True)]  # fmt: skip
    low, high = scipy.stats.t.interval(0.95, len(d) - 1, np.mean(d), scipy.stats.sem(d))
    gain = e.gain("fourier-qk", "honest")
    assert (gain.mean, gain.low, gain.high, gain.seeds) == pytest.approx((np.mean(d), low, high, 3))
    assert gain.side == "lower" and e.gain("random-qk", "honest").side == "level"


def test_a_single_seed_has_four_standard_errors_over_windows_to_either_side():
    gain = shift(evidence(), "dc", ordered=0.05).gain("dc", "ordered")
    assert (gain.mean, gain.high - gain.low, gain.seeds) == pytest.approx((0.05, 8 * 0.01 * 2**0.5, 1))
    assert gain.side == "level" and "one seed" in str(gain)
    assert shift(evidence(), "dc", ordered=0.06).gain("dc", "ordered").side == "higher"


def test_the_middle_of_the_window_is_its_middle_third():
    e = evidence()
    for run in e.runs("fourier-qk"):
        run["loss_by_position"] = [9.0] * 4 + [1.0] * 4 + [9.0] * 4
    base = np.mean([r["loss_by_position"][4:8] for r in e.seeds["base-dot"]])
    assert e.middle("fourier-qk") == pytest.approx(1 - base)


@pytest.mark.parametrize("n", [3, 7, 20])
def test_the_rank_correlation_is_scipys(n):
    x, y = np.random.default_rng(n).normal(size=(2, n))
    assert spearman(list(x), list(y)) == pytest.approx(scipy.stats.spearmanr(x, y).statistic)


def test_what_no_run_can_tell_is_said_by_name():
    e = evidence()
    with pytest.raises(ValueError, match="no recorded run of 'mine': there are base-dot"):
        e.gain("mine", "honest")
    e.once["dc"][0]["seed"] = 7
    with pytest.raises(ValueError, match="dc and base-dot share no seed"):
        e.gain("dc", "honest")
    with pytest.raises(ValueError, match="unknown claim 'nonesuch': there are paper_base_dot"):
        paper("nonesuch")


# --- verdicts


def test_every_claim_finds_its_runs_and_gives_a_known_verdict():
    for claim, finding in reckon(evidence()):
        assert finding.verdict in VERDICTS and finding.ours and claim.name, claim
        assert (ROOT / "book" / f"{claim.chapter}.md").is_file()
    assert len({c.name for c in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize(
    ("name", "of", "by", "says"),
    [
        ("one band", "fourier-qk", {}, "does not hold here"),
        ("one band", "fourier-qk", {"ordered": -1}, "with the future only"),
        ("one band", "fourier-qk", {"ordered": -1, "honest": 0.4}, "with the future only"),
        ("one band", "fourier-qk", {"ordered": -1, "honest": -0.4}, "holds"),
        ("four bands", "multifourier-qk", {"ordered": -1}, "with the future only"),
        ("random bands", "random-qk", {"ordered": 1}, "does not hold here"),
        ("causal filters", "causal-gaussian", {}, "undecided"),  # one seed cannot exclude a gain that would matter
        ("causal filters", "causal-gaussian", {"ordered": -0.3}, "does not hold here"),
        ("phase", "phase-randomised", {}, "undecided"),
        ("phase", "phase-randomised", {"ordered": 0.3}, "holds"),
        ("phase", "phase-randomised", {"ordered": -0.3}, "does not hold here"),
        ("DC", "dc", {"ordered": 0.3}, "holds"),
        ("Nyquist", "nyquist", {"ordered": -0.3}, "does not hold here"),
        ("boundary", "fourier-qk", {"ordered": -0.5}, "does not hold here"),
        ("boundary", "fourier-qk", {"ordered": -0.01}, "undecided"),
        ("best band", "collapse-real", {"ordered": -1}, "with the future only"),
        ("best band", "collapse-real", {"ordered": -1, "honest": -1}, "holds"),
        ("best band", "gauss-wide", {"ordered": -1, "honest": -1}, "does not hold here"),
    ],
)
def test_a_verdict_follows_the_losses(name, of, by, says):
    assert verdict(name, shift(evidence(), of, **by)) == says


def test_an_order_must_hold_in_every_seed():
    e = evidence()
    for place, name in enumerate(("multifourier-qk", "fourier-qk", "random-qk")):
        e = shift(e, name, ordered=place / 10)
    assert verdict("order", e) == "with the future only"
    e.runs("random-qk")[1]["losses"]["ordered"]["mean"] = 0.0
    assert verdict("order", e) == "does not hold here"


def test_no_gain_of_several_seeds_holds_where_the_interval_leaves_no_room_for_one():
    e = evidence()
    gain = e.gain("causal-morlet", "ordered")
    assert gain.low > -reckoning.WORTH
    e.once.update({s: e.seeds["causal-morlet"] for s in ("causal-gaussian", "causal-mexican-hat")})
    e.once["causal-morlet-learned"] = e.seeds["causal-morlet"]
    exact = Evidence({**e.seeds, **{s: e.once[s] for s in e.once if s.startswith("causal-")}}, e.once)
    assert verdict("causal filters", exact) == "holds"


def test_audits_decide_what_leaks_and_what_the_rule_of_thumb_is_worth():
    e = evidence()
    assert verdict("leak", e) == verdict("correlation", e) == "holds"
    e.runs("nyquist")[0]["audit"]["verdict"] = "causal"
    assert verdict("leak", e) == "holds in part"
    assert verdict("collapse", e) == "holds in part" and verdict("shuffled gap", e) == "does not hold here"
    for run in e.all():
        run["losses"]["shuffled"]["gap"] = 1.0 if run["audit"]["verdict"] == "leaks" else 6.0
    assert verdict("shuffled gap", e) == "holds"
    e.runs("dc")[0]["losses"]["shuffled"]["gap"] = 1.0
    assert verdict("shuffled gap", e) == "does not hold here"


def test_periods_that_never_moved_decide_nothing():
    e = evidence()
    assert verdict("learned periods", e) == "undecided"
    for run in e.runs("multifourier-qk"):
        run["history"]["frequencies"]["layer 1 band 2"][-1] = [1 / 40, 1 / 40]
    (claim,) = [c for c in CLAIMS if c.name == "learned periods"]
    finding = claim.judge(e)
    assert finding.verdict == "does not hold here" and "20.0 (10.0 to 40.0)" in finding.ours  # geometric mean


@pytest.mark.parametrize(("sign", "says"), [(1, "holds"), (-1, "does not hold here")])
def test_the_coverage_law_is_a_rank_correlation(sign, says):
    e = evidence()
    for i, name in enumerate(s for s in e.leaking() if s != "fnet"):
        for run in e.runs(name):
            run["filters"] = [{"coverage": [i + 1.0], "future_share": [0.5]}]
            run["losses"]["honest"]["mean"] = run["losses"]["ordered"]["mean"] + sign * i
    assert verdict("coverage", e) == says


# --- tables


def test_the_claim_table_has_a_row_a_claim_with_the_papers_number():
    rows = markdown(reckon(evidence())).splitlines()
    assert len(rows) == 2 + len(CLAIMS)
    for claim, row in zip(CLAIMS, rows[2:], strict=True):
        assert row.count("|") == 4 and (not claim.key or paper(claim.key) in row)


def test_the_table_of_seeds_keeps_seeds_and_windows_apart():
    e = shift(evidence(), "fourier-qk", honest=-0.1)
    table = report.by_seed(report.rows([r for runs in e.seeds.values() for r in runs])).splitlines()
    assert table[0].split(" | ")[1:5] == ["seed 0", "seed 1", "seed 2", "s.e. over windows"]
    cells = next(line for line in table if "`fourier-qk`" in line).strip("| ").split(" | ")
    assert [float(c) for c in cells[1:4]] == [
        pytest.approx(r["losses"]["honest"]["mean"], abs=5e-4) for r in e.runs("fourier-qk")
    ]
    gain = e.gain("fourier-qk", "honest")
    assert cells[4:] == ["0.010", f"{gain.mean:+.3f}", f"{gain.low:+.3f} to {gain.high:+.3f}", "leaks"]
    assert report.by_seed(report.rows([record("base-dot"), record("dc")])).splitlines()[-1].count("|") == 7


def test_samples_stay_one_block_of_html():
    text = report.samples({"a <model>": record("base-dot"), "b": record("dc")}, characters=12)
    assert "\n" not in text and "To be,&#10;&#10;or &lt;" in text and "a &lt;model&gt;" in text and "<not" not in text
    assert text.count("<figure") == text.count("</figure>") == 2
