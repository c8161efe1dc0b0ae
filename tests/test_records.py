"""The recorded runs that the pages quote: whole, repeatable, and of the corpus and systems that exist today."""
import math
from dataclasses import asdict

import pytest

from fourierqk import verse
from fourierqk.records.library import study, table
from fourierqk.studies.design import STUDIES
from fourierqk.studies.measurement import SCHEMA
from fourierqk.zoo import system

SEEDS = {"verse-tiny": 3, "shakespeare-small": 3, "shakespeare-small-once": 1}
RUNS = [(name, run) for name in SEEDS for runs in study(name).values() for run in runs]
VERSE = [run for name, run in RUNS if name == "verse-tiny"]
SHAKESPEARE = "fa03e609cfc0769eb1fa73fb4e81239fee0c6e9ab0608c549b0a742a25535493"  # of the ids and the vocabulary

each_run = pytest.mark.parametrize(
    ("of", "run"), [pytest.param(n, r, id=f"{n}, {r['system']}-s{r['seed']}") for n, r in RUNS]
)
each_study = pytest.mark.parametrize("name", SEEDS)


@each_run
def test_a_record_is_of_a_commit_without_changes_and_of_the_run_it_names(of, run):
    (planned,) = [r for r in STUDIES[of].runs() if (r.system, r.seed) == (run["system"], run["seed"])]
    assert run["commit"] and not run["uncommitted_changes"] and run["schema"] == SCHEMA
    assert (run["preset"], run["train"]) == (planned.preset, asdict(planned.size.train))
    assert run["model"].items() >= planned.size.model.items() and run["model"]["block_size"] == planned.size.block_size
    assert run["history"]["steps"][-1] == planned.size.train.steps


@each_study
def test_a_study_is_of_one_text(name):
    (corpus,) = {(r["corpus"]["name"], r["corpus"]["sha256"]) for of, r in RUNS if of == name}
    assert corpus == (("verse", verse().sha256) if name == "verse-tiny" else ("shakespeare", SHAKESPEARE))


def test_the_records_of_verse_know_its_entropy_rate():
    assert all(math.isclose(run["corpus"]["entropy_rate"], verse().entropy_rate) for run in VERSE)


@each_study
def test_a_study_has_all_its_systems_and_seeds(name):
    seeds = {s: [r["seed"] for r in runs] for s, runs in study(name).items()}
    assert seeds == {s: list(range(SEEDS[name])) for s in STUDIES[name].systems}
    assert SEEDS[name] == STUDIES[name].seeds


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


def test_an_unknown_study_is_named_with_those_that_exist():
    with pytest.raises(FileNotFoundError, match="no recorded study 'nonesuch': there are .*verse-tiny"):
        study("nonesuch")
    with pytest.raises(ValueError, match="'spectra' is no study"):
        study("spectra")
