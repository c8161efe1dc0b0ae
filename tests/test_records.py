"""The recorded runs that the pages quote: whole, repeatable, and of the corpus and systems that exist today."""
import math
from dataclasses import asdict

import pytest

from fourierqk import SYSTEMS, verse
from fourierqk.records import study, table
from fourierqk.train import PRESETS

RUNS = [run for runs in study("verse-tiny").values() for run in runs]


def name(run: dict) -> str:
    return f"{run['system']}-s{run['seed']}"


@pytest.mark.parametrize("run", RUNS, ids=name)
def test_a_record_is_of_a_commit_without_changes_and_of_the_preset_it_names(run):
    assert run["commit"] and not run["uncommitted_changes"]
    assert run["system"] in SYSTEMS
    assert run["train"] == asdict(PRESETS["tiny"].train) | {"seed": run["seed"]}
    assert run["model"].items() >= PRESETS["tiny"].model.items()


def test_the_records_are_of_the_verse_that_the_library_writes():
    corpus = verse()
    assert {run["corpus"]["sha256"] for run in RUNS} == {corpus.sha256}
    assert all(math.isclose(run["corpus"]["entropy_rate"], corpus.entropy_rate) for run in RUNS)


def test_every_system_of_the_study_has_the_same_three_seeds():
    seeds = {s: [r["seed"] for r in runs] for s, runs in study("verse-tiny").items()}
    studied = "base-dot", "causal-morlet", "fourier-qk", "multifourier-qk", "random-qk", "sliding-fourier-qk"
    assert seeds == dict.fromkeys(studied, [0, 1, 2])


@pytest.mark.parametrize("run", RUNS, ids=name)
def test_what_the_pages_say_holds_in_every_run(run):
    leaks = run["system"] in ("random-qk", "fourier-qk", "multifourier-qk")
    assert run["losses"]["floor"]["below"] == leaks
    assert run["audit"]["verdict"] == ("leaks" if leaks else "causal")
    assert run["losses"]["floor"]["difference"] == pytest.approx(
        run["losses"]["ordered"]["mean"] - run["losses"]["floor"]["oracle"], abs=1e-6
    )


def test_the_landing_page_is_right_that_nothing_is_left_where_no_future_exists():
    honest = {s: [r["losses"]["honest"]["mean"] for r in runs] for s, runs in study("verse-tiny").items()}
    for leaking in ("random-qk", "fourier-qk", "multifourier-qk"):
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
