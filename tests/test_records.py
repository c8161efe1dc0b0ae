"""The recorded runs that the pages quote: whole, repeatable, and of the corpus and systems that exist today."""
import json
import math
import re
from dataclasses import asdict

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

from fourierqk import verse
from fourierqk.cli import app
from fourierqk.reckoning import Evidence
from fourierqk.records import (
    SCHEMA,
    by_system,
    compare,
    folder,
    holm,
    identity,
    interval,
    rows,
    runs_in,
    setting,
    study,
    t_quantile,
    table,
    unlike,
)  # fmt: skip
from fourierqk.records.identity import UNSAID
from fourierqk.storage import write_json
from fourierqk.studies.design import STUDIES
from fourierqk.zoo import system

RECORDED = ("verse-tiny", "shakespeare-small", "shakespeare-small-once", "causal-verse", "causal-shakespeare")
RUNS = [(name, run) for name in RECORDED for runs in study(name).values() for run in runs]
VERSE = [run for name, run in RUNS if name == "verse-tiny"]
SHAKESPEARE = "fa03e609cfc0769eb1fa73fb4e81239fee0c6e9ab0608c549b0a742a25535493"  # of the ids and the vocabulary

each_run = pytest.mark.parametrize(
    ("of", "run"), [pytest.param(n, r, id=f"{n}, {r['system']}-s{r['seed']}") for n, r in RUNS]
)
each_study = pytest.mark.parametrize("name", RECORDED)


@each_run
def test_a_record_is_of_a_commit_without_changes_and_of_the_run_it_names(of, run):
    (planned,) = [r for r in STUDIES[of].runs() if (r.system, r.seed) == (run["system"], run["seed"])]
    assert run["commit"] and not run["uncommitted_changes"] and run["schema"] == SCHEMA
    assert (run["preset"], UNSAID | run["train"]) == (planned.preset, asdict(planned.size.train))
    assert run["model"].items() >= planned.size.model.items() and run["model"]["block_size"] == planned.size.block_size
    assert run["history"]["steps"][-1] == planned.size.train.steps


@each_study
def test_a_study_is_of_one_text(name):
    (corpus,) = {(r["corpus"]["name"], r["corpus"]["sha256"]) for of, r in RUNS if of == name}
    assert corpus == (STUDIES[name].corpus, verse().sha256 if STUDIES[name].corpus == "verse" else SHAKESPEARE)


def test_the_records_of_verse_know_its_entropy_rate():
    rate = verse().entropy_rate
    assert all(math.isclose(run["corpus"]["entropy_rate"], rate) for run in VERSE)


@each_study
def test_a_study_has_all_its_systems_and_seeds(name):
    seeds = {s: [r["seed"] for r in runs] for s, runs in study(name).items()}
    assert seeds == {s: list(range(STUDIES[name].seeds)) for s in STUDIES[name].systems}


@each_run
def test_the_audit_of_every_run_finds_what_its_system_is(of, run):
    assert run["audit"]["verdict"] == system(run["system"]).verdict


@pytest.mark.parametrize("run", VERSE, ids=lambda r: f"{r['system']}-s{r['seed']}")
def test_below_the_floor_are_leaks_alone_and_all_that_hear_two_bins_or_more(run):
    leaks = run["audit"]["verdict"] == "leaks"
    if run["system"] != "fourier-qk-sigma1":  # so narrow that what it hears of the future hardly pays
        assert run["losses"]["floor"]["below"] == leaks
    assert run["losses"]["floor"]["difference"] == pytest.approx(
        run["losses"]["ordered"]["mean"] - run["losses"]["floor"]["oracle"], abs=1e-6
    )


def test_the_landing_page_is_right_that_nothing_is_left_where_no_future_exists():
    runs = study("verse-tiny")
    honest = {s: [r["losses"]["honest"]["mean"] for r in seeds] for s, seeds in runs.items()}
    for leaking in (s for s, seeds in runs.items() if seeds[0]["audit"]["verdict"] == "leaks"):
        assert min(honest[leaking]) > max(honest["base-dot"])


def test_the_table_is_of_the_numbers_in_the_files():
    def run(ordered, honest, below, verdict):
        losses = {"ordered": {"mean": ordered}, "honest": {"mean": honest}, "floor": {"below": below}}
        return {"losses": losses, "audit": {"verdict": verdict}}

    row = table({"a": [run(1.0, 2.0, True, "leaks"), run(1.5, 2.25, False, "causal")]}).splitlines()[-1]
    assert row == "| `a` | 1.25 (1.00 to 1.50) | 2.12 (2.00 to 2.25) | 1 of 2 | causal/leaks |"
    runs = [run(1.0, 2.0, True, "leaks"), run(1.5, 2.25, False, "causal")]
    for r, above in zip(runs, (1.25, 1.5), strict=True):
        r["losses"]["honest"]["floor"] = {"difference": above, "se": 0.01}
    row = table({"a": runs}).splitlines()[-1]
    assert row == "| `a` | 1.25 (1.00 to 1.50) | 2.12 (2.00 to 2.25) | 1.375 (1.250 to 1.500) | 1 of 2 | causal/leaks |"


def test_an_unknown_study_is_named_with_those_that_exist():
    with pytest.raises(FileNotFoundError, match="unknown recorded study .nonesuch.: there are .*verse-tiny"):
        study("nonesuch")
    with pytest.raises(ValueError, match="'spectra' is no study"):
        study("spectra")


# --- which runs a folder holds, and their tables


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 12, 30])
def test_students_quantile_is_scipys(df):
    assert t_quantile(df) == pytest.approx(scipy.stats.t.ppf(0.975, df), abs=1e-8)


def run_of(system, seed, honest, **more):
    losses = {kind: {"mean": honest + shift, "se": 0.01} for shift, kind in enumerate(("honest", "ordered"))}
    record = {"system": system, "seed": seed, "preset": "tiny", "corpus": {"name": "verse"}, "train": {"steps": 9}}
    record |= {"model": {"n_layer": 1, "n_embd": 8, "block_size": 12}}
    history = {"tokens_per_second": 10.0}
    return record | {"losses": losses | {"floor": None}, "audit": {"verdict": "causal"}, "history": history} | more


@pytest.mark.parametrize(
    ("seeds_se", "df", "windows_se"), [(0.1, 2, 0.0), (0.0, 2, 0.1), (0.1, 2, 0.1), (0.02, 7, 0.1)]
)
def test_an_interval_holds_the_errors_over_seeds_and_over_windows(seeds_se, df, windows_se):
    def half(p):
        return np.hypot(scipy.stats.t.isf(p / 2, df) * seeds_se, scipy.stats.norm.isf(p / 2) * windows_se)

    low, high, p = interval(-0.3, seeds_se, df, windows_se)
    assert (low, high) == (pytest.approx(-0.3 - half(0.05)), pytest.approx(-0.3 + half(0.05)))
    assert half(p) == pytest.approx(0.3, rel=1e-4) and (p < 0.05) == (high < 0)
    assert interval(0.0, seeds_se, df, windows_se).p == pytest.approx(1)


@pytest.mark.parametrize("windows_se", [0.1, 1.0, 10.0])  # beside one of 1 over seeds
def test_an_interval_misses_no_more_often_than_it_says_and_less_often_where_both_errors_are_alike(windows_se):
    rng, seeds, n = np.random.default_rng(0), 3, 1000
    d = rng.normal(0, seeds**0.5, (n, seeds)) + rng.normal(0, windows_se, (n, 1))
    found = [interval(m, s, seeds - 1, windows_se) for m, s in zip(d.mean(1), scipy.stats.sem(d, axis=1), strict=True)]
    missed = sum(low > 0 or high < 0 for low, high, _ in found)
    assert missed < 35 if windows_se == 1 else 30 < missed < 65
    assert missed == sum(p < 0.05 for *_, p in found)


def test_holm_keeps_what_stands_when_there_are_many():
    assert holm({"a": 0.012, "b": 0.04, "c": 0.001, "d": 0.03}) == ["c", "a"]  # against .05 / 4, / 3, / 2
    assert holm({"a": 0.04}) == ["a"] and holm({"a": 0.04, "b": 0.04}) == [] == holm({})


def test_differences_are_paired_by_seed_with_both_errors():
    base = [run_of("base-dot", seed, loss) for seed, loss in enumerate((2.0, 3.0, 4.0, 9.0))]
    mine = [run_of("other", seed, loss) for seed, loss in ((2, 3.7), (0, 1.9), (1, 2.8))]
    found = compare(mine, base)
    d = np.array([-0.3, -0.1, -0.2])
    assert found["values"] == pytest.approx(d) and found["mean"] == pytest.approx(-0.2)
    errors = found["seeds_se"], 2, found["windows_se"]
    assert errors == pytest.approx((scipy.stats.sem(d), 2, 0.01 * 2**0.5))
    assert (found["low"], found["high"], found["p"]) == interval(found["mean"], *errors)
    assert compare(mine[:1], base)["low"] is None and compare(mine, []) is None
    (_, row) = rows([*base, *mine])
    assert row["against_base"] == found and row["losses"]["honest"]["mean"] == pytest.approx(2.8)


def test_the_error_over_windows_is_that_of_the_distance_to_the_oracle():
    """Where it is known: both systems are evaluated on the same windows, so their luck is shared."""
    mine, base = run_of("other", 0, 2.0), run_of("base-dot", 0, 3.0)
    for r, se in ((mine, 0.003), (base, 0.004)):
        r["losses"]["honest"]["floor"] = {"difference": 1.0, "se": se}
        r["losses"]["floor"] = {"below": False, "se": 2 * se}
    assert compare([mine], [base])["windows_se"] == pytest.approx(0.005)
    assert compare([mine], [base], "ordered")["windows_se"] == pytest.approx(0.01)
    (row, _) = rows([mine, base])
    assert row["above_oracle"] == {"values": [1.0], "mean": 1.0, "se": [0.003]}


def test_texts_and_sizes_are_never_mixed():
    base = run_of("base-dot", 0, 2.0)
    for why, more in (
        ("training.steps", {"train": {"steps": 5}}), ("size.n_embd", {"model": base["model"] | {"n_embd": 9}}),
        ("text.sha256", {"corpus": {"name": "verse", "sha256": "another"}}),
    ):  # fmt: skip
        other = run_of("other", 0, 1.0, **more)
        (field,) = unlike(base, other)
        assert field == why
        apart = [(r["system"], r["against_base"]) for r in rows([base, other])]
        assert apart == [("base-dot", None), ("other", None)]
    assert unlike(base, run_of("other", 1, 1.0, train={"steps": 9, "seed": 1, "device": "cuda"})) == {}


@pytest.mark.parametrize(("field", "part", "values"), [
    ("training.lr", "train", (0.01, 0.003)), ("training.dropout_at", "train", (None, 7)),
    ("size.dropout", "model", (0.0, 0.1)), ("text.sha256", "corpus", ("a" * 64, "b" * 64)),
])  # fmt: skip
def test_runs_that_differ_in_one_field_stand_in_two_tables_which_name_it_and_claims_are_not_judged_by_both(
    tmp_path, field, part, values
):
    name = field.split(".")[1]
    for place, value in zip("ab", values, strict=True):
        (tmp_path / place).mkdir()
        record = judged("base-dot", 0, 2.0, "cpu")
        write_json(tmp_path / place / "record.json", record | {part: record[part] | {name: value}})
    shown = [f"{field} = {str(value)[:12]}" for value in values]
    says = [(f"{tmp_path / place}:", line) for place, line in zip("ab", shown, strict=True)]
    for how in ([], ["--markdown"]):
        report = CliRunner().invoke(app, ["report", str(tmp_path), *how]).stdout.split("\n\n")
        titles = [table.splitlines()[0] for table in report if " steps" in table]
        assert len(titles) == 2
        assert all(place in title and line in title for title, (place, line) in zip(titles, says, strict=True))
    refused = CliRunner().invoke(app, ["reckon", str(tmp_path)])
    both = " and ".join(str(value)[:12] for value in values)
    assert refused.exit_code == 2 and f"differ in {field} ({both})" in refused.stderr
    assert all(str(tmp_path / place / "record.json") in refused.stderr for place in "ab")


def test_the_report_says_what_the_records_say():
    place = folder("verse-tiny")
    records, bad = runs_in(place)
    assert bad == [] and by_system(records) == study("verse-tiny")
    shown = {row["system"]: row for row in rows(records)}
    for name, of in study("verse-tiny").items():
        values = [r["losses"]["honest"]["mean"] for r in of]
        assert shown[name]["losses"]["honest"]["values"] == values
        assert shown[name]["below_floor"] == sum(r["losses"]["floor"]["below"] for r in of)
    result = CliRunner().invoke(app, ["report", str(place), "--json"])
    assert result.exit_code == 0 and json.loads(result.stdout) == json.loads(json.dumps([*shown.values()]))
    values = shown["fourier-qk"]["losses"]["ordered"]["values"]
    cell = f"{sum(values) / 3:.3f} ({min(values):.3f} to {max(values):.3f})"
    for how in ([], ["--markdown"]):
        (line,) = [x for x in CliRunner().invoke(app, ["report", str(place), *how]).stdout.splitlines()
                   if x.strip("| `").replace("`", "").startswith("fourier-qk ")]  # fmt: skip
        assert cell in line and "leaks, 3 below the floor" in line


def test_a_report_names_what_it_cannot_read_and_shows_the_rest(tmp_path):
    write_json(tmp_path / "base-dot-s0.json", run_of("base-dot", 0, 2.0))
    (tmp_path / "torn.json").write_text("{")
    write_json(tmp_path / "mine.json", {"a": 1})
    (tmp_path / "nan.json").write_text(json.dumps(run_of("base-dot", 1, float("nan"))))
    (tmp_path / "deep.json").write_text("[" * 10**5)
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 2 and "base-dot" in result.stdout
    assert "torn.json is not JSON" in result.stderr and "mine.json is no record of a run" in result.stderr
    assert "nan.json is not JSON (it holds NaN)" in result.stderr and "deep.json is not JSON" in result.stderr
    for args, says in ([str(tmp_path / "no")], "there is no folder"), ([str(tmp_path), "--json", "--markdown"], "both"):
        result = CliRunner().invoke(app, ["report", *args])
        assert result.exit_code == 2 and says in result.stderr and result.stdout == ""


def test_records_of_another_version_are_named(tmp_path):
    for seed, version in enumerate((SCHEMA, SCHEMA + 1, None)):
        about = {} if version is None else {"schema": version}
        write_json(tmp_path / f"{seed}.json", run_of("base-dot", seed, 2.0) | about)
    says = [f"1 of 3 records are of version {version}, this is version {SCHEMA}" for version in (SCHEMA + 1, None)]
    for command, status, shown in ("report", 0, "base-dot"), ("reckon", 2, ""):
        result = CliRunner().invoke(app, [command, str(tmp_path)])
        assert result.exit_code == status and shown in result.stdout and bool(result.stdout) == bool(shown)
        assert all(line in result.stderr for line in says) and result.stderr.count("this is version") == 2
    tables_shown = CliRunner().invoke(app, ["report", str(tmp_path)]).stdout.split("\n\n")
    assert [re.search(r"version = (\w+)", table)[1] for table in tables_shown] == ["1", "2", "None"]
    assert CliRunner().invoke(app, ["report", str(folder("verse-tiny"))]).stderr == ""


@pytest.mark.parametrize(
    ("path", "value"),
    [("corpus", {}), ("audit", {}), ("train", {}), ("model", {}), ("history", {}), ("losses", {}),
     ("losses", {"honest": {"mean": "2", "se": 1}, "ordered": {"mean": 1, "se": 1}}),
     ("losses", {"honest": {"mean": 2, "se": 1}, "ordered": {"mean": None, "se": 1}}),
     ("losses", {"honest": {"mean": 2, "se": 1}, "ordered": {"mean": 2, "se": 1}, "floor": True})],
)  # fmt: skip
def test_a_record_that_lacks_a_part_is_named_and_the_rest_shown(tmp_path, path, value):
    write_json(tmp_path / "good.json", run_of("base-dot", 0, 2.0))
    write_json(tmp_path / "odd.json", run_of("other", 0, 2.0) | {path: value})
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 2 and "base-dot" in result.stdout and "other" not in result.stdout
    assert "odd.json is no record of a run: it lacks " in result.stderr and f"{path}." in result.stderr


def test_single_runs_and_studies_stand_in_one_table(tmp_path):
    """Whether they lie beside each other, or are named one by one; a folder that is reached twice counts once."""
    study, single, inner = tmp_path / "study", tmp_path / "single", tmp_path / "study" / "runs" / "base-dot-s0"
    for place in (study, single, inner, tmp_path / "notes"):
        place.mkdir(parents=True)
    for seed in (0, 1):
        write_json(study / f"base-dot-s{seed}.json", run_of("base-dot", seed, 2.0))
    write_json(inner / "record.json", run_of("base-dot", 0, 2.0))  # what the study keeps of it
    write_json(single / "record.json", run_of("other", 0, 1.9))
    write_json(tmp_path / "notes" / "mine.json", {"no": "run"})
    for places in ([tmp_path], [study, single], [tmp_path, study, single]):
        records, bad = runs_in(*places)
        found = [(r["system"], r["seed"]) for r in records]
        assert bad == [] and found == [("base-dot", 0), ("base-dot", 1), ("other", 0)]
    result = CliRunner().invoke(app, ["report", str(single), str(study), "--json"])
    shown = [(row["system"], row["seeds"]) for row in json.loads(result.stdout)]
    assert shown == [("base-dot", [0, 1]), ("other", [0])]


def test_a_copy_of_a_record_is_named_and_makes_no_second_seed(tmp_path):
    for name in ("a", "b"):
        write_json(tmp_path / f"{name}.json", run_of("base-dot", 0, 2.0))
    write_json(tmp_path / "c.json", run_of("base-dot", 0, 2.0) | {"preset": "small"})  # another size is another run
    records, bad = runs_in(tmp_path)
    assert len(records) == 2 and len(bad) == 1
    assert f"{tmp_path / 'b.json'} is of the run that {tmp_path / 'a.json'} is of" in bad[0]


def test_a_run_done_again_on_another_device_is_the_same_run_to_whoever_meets_it(tmp_path):
    """Never a second run, never a second seed, and never dropped in silence."""
    here, there = (judged("base-dot", 0, loss, device) for loss, device in ((2.0, "cpu"), (2.1, "cuda")))
    other = judged("other", 0, 1.9, "cpu")
    assert identity(here) == identity(there) and unlike(here, there) == {}
    for name, record in ("here", here), ("other", other), ("there", there):
        write_json(tmp_path / f"{name}.json", record)
    records, bad = runs_in(tmp_path)
    assert records == [here, other] and len(bad) == 1 and "here.json" in bad[0] and "there.json" in bad[0]
    for meets in (
        lambda: rows([here, other, there]), lambda: compare([other], [here, there]), lambda: compare([here, there], []),
        lambda: Evidence({"base-dot": [here, there], "other": [other]}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="base-dot, seed 0"):
            meets()
    for command, shown in ("report", True), ("reckon", False):
        result = CliRunner().invoke(app, [command, str(tmp_path)])
        assert result.exit_code == 2 and bool(result.stdout) == shown
        assert "here.json" in result.stderr and "there.json" in result.stderr
    (shown,) = [row for row in json.loads(CliRunner().invoke(app, ["report", str(tmp_path), "--json"]).stdout)
                if row["system"] == "base-dot"]  # fmt: skip
    assert shown["seeds"] == [0] and shown["losses"]["honest"]["values"] == [2.0]


def judged(name, seed, honest, device):
    """A record that claims can be judged by."""
    record = run_of(name, seed, honest, train={"steps": 9, "seed": seed, "device": device}, schema=SCHEMA)
    record["losses"]["shuffled"] = {"mean": 5.0, "se": 0.01, "gap": 3.0}
    return record | {"filters": [], "loss_by_position": [honest] * 12,
                     "history": {"tokens_per_second": 10.0, "frequencies": {}}}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "change"),
    [("version", {"schema": SCHEMA + 1}), ("text.sha256", {"corpus": {"name": "verse", "sha256": "another"}}),
     ("size.preset", {"preset": "small"}), ("size.n_layer", {"model": {"n_layer": 2, "n_embd": 8, "block_size": 12}}),
     ("training.precision", {"train": {"steps": 9, "seed": 0, "device": "cpu", "precision": "bfloat16"}}),
     (None, {"system": "other"}), (None, {"seed": 1, "train": {"steps": 9, "seed": 1, "device": "cpu"}}),
     (None, {"train": {"steps": 9, "seed": 0, "device": "cuda"}}), (None, {"commit": "another", "audit": {}})],
)  # fmt: skip
def test_what_makes_a_run_and_what_may_stand_in_one_table(key, change):
    one = judged("base-dot", 0, 2.0, "cpu")
    other = one | change
    assert [*unlike(one, other)] == [*unlike(other, one)] == ([key] if key else [])
    assert (setting(one) == setting(other)) == (key is None)
    assert (identity(one) == identity(other)) == (key is None and not {"system", "seed"} & change.keys())
