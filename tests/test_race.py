"""The race: contrasts against numpy, the protocol's rules on made-up losses, and the records against their protocol."""
import random
from dataclasses import asdict

import numpy as np
import pytest
import scipy.stats

from fourierqk.reckoning import race
from fourierqk.records import SCHEMA, contrast
from fourierqk.records.identity import UNSAID
from fourierqk.studies.design import STUDIES
from fourierqk.zoo import system

STAGES = ("calibrate", "nanogpt", "screen")
RECORDS = [(stage, r) for stage in STAGES for r in race.raced(stage)]
HALVES = "7fefecc2c5d616c699dc1021b18ae40dab73e2bfd4928c73cdcb16075f74e56e"  # of its ids and vocabulary


def run(system: str, seed: int = 0, lr: float = 1e-2, loss: float = 2.0, values: list[float] | None = None) -> dict:
    tested = {} if values is None else {"test": {"ordered": {"values": values}}}
    train, losses = {"lr": lr, "steps": 10}, {"ordered": {"mean": loss}}
    return {"system": system, "seed": seed, "train": train, "model": {"dropout": 0.0}, "losses": losses, **tested}


def windows(seeds: int, n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(2, 0.3, (seeds, n))


def runs(system: str, values: np.ndarray) -> list[dict]:
    return [run(system, seed, values=row.tolist()) for seed, row in enumerate(values)]


@pytest.mark.parametrize(("seeds", "n"), [(5, 40), (2, 7), (3, 512)])
def test_a_contrast_is_a_paired_difference_with_both_errors(seeds, n):
    a, b, c, d = (windows(seeds, n, seed) for seed in range(4))
    for sides, total in (
        (((1, a), (-1, b)), a - b),
        (((1, a), (-1, b), (-1, c), (1, d)), a - b - (c - d)),
    ):
        found = contrast(*((w, runs("x", values)) for w, values in sides))
        by_seed, by_window = total.mean(1), total.mean(0)
        assert found["values"] == pytest.approx(by_seed.tolist()) and found["mean"] == pytest.approx(total.mean())
        assert found["seeds_se"] == pytest.approx(scipy.stats.sem(by_seed))
        assert found["windows_se"] == pytest.approx(scipy.stats.sem(by_window))
        t, z = scipy.stats.t.ppf(0.975, seeds - 1), scipy.stats.norm.ppf(0.975)
        half = np.hypot(t * found["seeds_se"], z * found["windows_se"])
        assert (found["low"], found["high"]) == pytest.approx((total.mean() - half, total.mean() + half), rel=1e-6)


def test_what_is_hard_for_all_drops_out():
    hard = windows(1, 200, 0)
    a, b = (hard + windows(3, 200, seed) / 100 for seed in (1, 2))
    assert contrast((1, runs("a", a)), (-1, runs("b", b)))["windows_se"] < 0.02 * scipy.stats.sem(hard[0])


def test_a_contrast_needs_seeds_in_common_and_tested_runs():
    a, b = runs("a", windows(2, 5, 0)), runs("b", windows(2, 5, 1))
    assert contrast((1, a[:1]), (-1, b[1:])) is None
    assert contrast((1, a[:1]), (-1, b))["low"] is None
    with pytest.raises(ValueError, match="a, seed 0 has no test losses"):
        contrast((1, [run("a")]), (-1, b))
    with pytest.raises(ValueError, match="the same windows"):
        contrast((1, a), (-1, runs("b", windows(2, 6, 1))))
    with pytest.raises(ValueError, match="one seed twice in one comparison, a, seed 0"):
        contrast((1, [a[0], a[0]]), (-1, b))


def test_a_curve_knows_its_best_rate_and_whether_it_lies_at_an_edge():
    table = {3e-3: (2.2, 2.4), 1e-2: (2.0, 2.1), 3e-2: (1.9, 2.3)}
    records = [run("a", seed, lr, loss) for lr, losses in table.items() for seed, loss in enumerate(losses)]
    random.Random(0).shuffle(records)
    curve = race.curves(records)["a"]
    assert curve.best == (1e-2,) and curve.loss == pytest.approx(2.05) and not curve.at_edge
    assert {k: sorted(v) for k, v in curve.losses.items()} == {(lr,): sorted(v) for lr, v in table.items()}
    assert race.curves([r for r in records if r["train"]["lr"] != 3e-2])["a"].at_edge
    cells = race.curves(records, ("lr", "dropout"))["a"]
    assert cells.best == (1e-2, 0.0)


def test_the_finalists_are_those_of_the_protocol():
    losses = {
        "base-dot": 1.9, "base-rope": 1.8, "short-conv": 1.7, "short-conv-rope": 1.6, "kv-shift": 1.5,
        "sliding-fourier-qk": 1.85, "causal-morlet": 1.84, "prefix-fourier-qk": 1.88, "prefix-fourier-rope": 1.7,
        "taps-resonator": 1.87, "taps-resonator-rope": 1.75,
    }  # fmt: skip
    screened = race.curves([run(s, loss=loss) for s, loss in losses.items()])
    assert race.finalists(screened) == (
        "base-dot", "base-rope", "short-conv", "short-conv-rope", "causal-morlet", "sliding-fourier-qk",
        "prefix-fourier-rope", "prefix-fourier-qk",
    )  # fmt: skip
    screened = race.curves([run(s, loss=loss) for s, loss in losses.items() if s != "prefix-fourier-rope"])
    assert race.finalists(screened)[-2:] == ("taps-resonator-rope", "taps-resonator")


def test_compared_systems_are_corrected_for_their_number_and_told_from_equal_ones():
    rng = np.random.default_rng(0)
    base = rng.normal(2, 0.2, (5, 300))
    noise = {s: rng.normal(0, 0.01, (5, 300)) for s in ("far", "same")}
    losses = {"base": base, "far": base - 0.5 + noise["far"], "same": base + noise["same"]}
    by_system = {name: runs(name, values) for name, values in losses.items()}
    found = race.compared(by_system, [("far", "base"), ("same", "base")])
    assert found["far - base"]["holds"] and not found["far - base"]["equivalent"]
    assert found["same - base"]["equivalent"] and abs(found["same - base"]["mean"]) < 0.01


@pytest.mark.parametrize("right", [True, False])
def test_an_outcome_is_told_from_what_was_predicted(right):
    shift = 0.0 if right else 0.1
    cells = [run("base-dot", loss=1.65 + shift), run("base-dot", lr=3e-3, loss=1.9)]
    cells += [run("base-rope", loss=1.6 + 2 * shift)]
    losses = {"base-dot": 1.9, "one-tap": 1.91 + shift, "prefix-fourier-qk": 1.9 - shift}
    losses |= {"causal-morlet": 1.9 - 2 * shift, "short-conv": 1.8, "base-rope": 1.5}
    screened = race.curves([run(s, loss=loss) for s, loss in losses.items()])
    said = race.outcomes(race.curves(cells, ("lr", "dropout")), screened, 1.69 + shift)
    assert [*said] == ["P1", "P2", "P3", "P4", "P5"]
    assert all(text.startswith("as predicted: ") == right for text in said.values())
    assert f"{1.69 + shift:.3f} nats at 0.01, dropout 0" in said["P1"] and ("short-conv is best" in said["P3"]) == right


def test_predictions_have_a_name_each():
    ids = [p["id"] for p in race.predictions()]
    assert ids == [f"P{i}" for i in range(1, len(ids) + 1)] and all(p["says"].endswith(".") for p in race.predictions())


# the records


@pytest.mark.parametrize("stage", STAGES)
def test_records_are_of_planned_runs_from_one_text_and_clean_commits(stage):
    study = STUDIES[f"race-{stage}"]
    found = [r for of, r in RECORDS if of == stage]
    assert found and {(r["corpus"]["name"], r["corpus"]["sha256"]) for r in found} == {("shakespeare-halves", HALVES)}
    for r in found:
        size = study.runs()[0].size  # but for what a stage sweeps
        size = size.changed(lr=r["train"]["lr"], dropout=r["model"]["dropout"], seed=r["seed"])
        assert r["train"]["lr"] in (1e-3, 3e-3, 1e-2, 3e-2, 1e-1) and r["system"] in study.systems
        assert r["seed"] - study.first_seed in range(study.seeds)
        assert r["commit"] and not r["uncommitted_changes"] and r["schema"] == SCHEMA
        assert UNSAID | r["train"] == asdict(size.train) and r["preset"] == study.preset
        assert r["model"].items() >= {**size.model, "block_size": size.block_size}.items()
        assert r["audit"]["verdict"] == system(r["system"]).verdict == "causal"
        assert len(r["test"]["ordered"]["values"]) == r["test"]["ordered"]["windows"] == 512


def test_what_the_chapter_says_of_the_screen_in_words():
    """Gains over the baseline of a system's kind, each at its best rate: on the half that chooses, and that reports."""
    screen = [r for of, r in RECORDS if of == "screen"]
    curves = race.curves(screen)
    turned = [name for name in curves if name.endswith("-rope") and name != "base-rope"]
    plain = [name for name in curves if name not in turned and name not in race.BASELINES]
    assert all(curves[name].best == (1e-2,) for name in [*plain, "base-dot"])
    lost = [curves[name].mean((3e-2,)) - curves[name].loss for name in plain]
    assert min(lost) > 0 and sum(loss > 0.5 for loss in lost) >= 2
    fast = [name for name in [*turned, "base-rope"] if curves[name].best == (3e-2,)]
    assert len(fast) > (len(turned) + 1) / 2
    slow = sorted(turned, key=lambda name: curves[name].mean((1e-2,)))
    assert slow.index("dealt-fourier-rope") == 7 and curves["base-rope"].mean((1e-2,)) > curves[slow[7]].mean((1e-2,))

    def runs(name: str) -> list[dict]:
        return [r for r in screen if r["system"] == name and (r["train"]["lr"],) == curves[name].best]

    def difference(*sides: tuple[int, str]) -> list[float]:
        return contrast(*((weight, runs(name)) for weight, name in sides))["values"]

    def test(name: str) -> float:
        return float(np.mean(difference((1, name), (-1, "base-rope" if name in turned else "base-dot"))))

    for loss in (lambda name: curves[name].loss, test):
        assert sorted(turned, key=loss)[0] == "token-shift-rope"
        assert {*sorted(turned, key=loss)[1:3]} == {"short-conv-rope", "dealt-fourier-rope"}
        assert {*sorted(plain, key=loss)[:2]} == {"dealt-fourier", "sliding-multifourier-qk"}
        assert abs(loss("short-conv-rope") - loss("dealt-fourier-rope")) < 0.002
    spread = {name: np.ptp([r["losses"]["ordered"]["mean"] for r in runs(name)]) for name in curves}
    assert max(spread, key=spread.get) == "token-shift" and 0.08 < spread["token-shift"] < 0.09
    first = sorted(curves[name].loss for name in turned)[:3]
    assert first[2] - first[0] < spread["token-shift"] / 10
    prefix = [(1, "prefix-fourier-rope"), (-1, "base-rope"), (-1, "prefix-fourier-qk"), (1, "base-dot")]
    assert max(difference((1, "prefix-fourier-qk"), (-1, "base-dot"))) < -0.04
    assert abs(test("prefix-fourier-rope")) < 0.001 and min(difference(*prefix)) > 0.04
    for name in {*turned} - {"prefix-fourier-rope"}:
        alone = next(other for other in (name[:-5], f"{name[:-5]}-qk") if other in curves)
        assert min(difference((1, name), (-1, "base-rope"), (-1, alone), (1, "base-dot"))) < 0.03
    rotation = difference((1, "base-rope"), (-1, "base-dot"))
    assert max(rotation) < min(map(test, turned))  # the second step is larger than the third


def test_the_halves_disagree_on_the_baselines_rate():
    cells = {r["train"]["lr"]: r for of, r in RECORDS if of == "calibrate" and r["system"] == "base-dot"
             and r["model"]["dropout"] == 0}  # fmt: skip
    first, second = ({lr: loss(r) for lr, r in cells.items()} for loss in (
        lambda r: r["losses"]["ordered"]["mean"], lambda r: r["test"]["ordered"]["mean"]
    ))  # fmt: skip
    assert 0 < first[3e-3] - first[1e-2] < 1e-3 and second[3e-3] < second[1e-2]


def test_every_system_was_screened_by_the_rules():
    """Three rates on the first seed; one more where the edge is best; the second seed near the best of the first."""
    first, second = (
        {system: {r["train"]["lr"]: r["losses"]["ordered"]["mean"] for of, r in RECORDS
                  if of == "screen" and r["seed"] == seed and r["system"] == system}
         for system in STUDIES["race-screen"].systems}
        for seed in (100, 101)
    )  # fmt: skip
    for name, losses in first.items():
        assert losses.keys() >= {3e-3, 1e-2, 3e-2}
        best = min((3e-3, 1e-2, 3e-2), key=losses.get)
        assert (1e-1 in losses) == (best == 3e-2) and best != 3e-3
        assert {*second[name]} == {lr for lr, loss in losses.items() if loss <= min(losses.values()) + 0.03}


def test_the_main_stage_has_those_that_the_rule_sends_there():
    sent = race.finalists(race.curves(race.raced("screen")))
    assert {*STUDIES["race-rates"].systems} == {*sent} - {*race.BASELINES}
