"""The recorded causal filters: whole, repeatable, alike but for the filter, and what the chapter says of them."""
import math
from dataclasses import asdict, replace

import causal
import pytest
import torch

from fourierqk import verse
from fourierqk.records.library import study
from fourierqk.studies.design import CAUSAL
from fourierqk.training.loop import PRESETS
from fourierqk.zoo import system

STUDIES = {text: study(f"causal-{text}") for text in causal.STUDIES}
RUNS = [(text, run) for text, runs in STUDIES.items() for name in runs for run in runs[name]]
NAMES = [f"{text}, {run['system']}, seed {run['seed']}" for text, run in RUNS]
each = pytest.mark.parametrize(("text", "run"), RUNS, ids=NAMES)


@each
def test_a_record_is_of_a_commit_without_changes_and_alike_but_for_its_filter(text, run):
    assert run["commit"] and not run["uncommitted_changes"]
    preset = PRESETS[causal.PRESET]
    assert run["model"].items() >= preset.model.items()
    assert run["train"] == asdict(replace(preset.train, steps=causal.STEPS, eval_every=50, seed=run["seed"]))
    assert run["corpus"]["name"] == text and run["audit"]["verdict"] == "causal"
    assert text == "shakespeare" or not run["losses"]["floor"]["below"]


@pytest.mark.parametrize("text", STUDIES)
def test_every_filter_of_a_study_has_the_same_seeds_on_one_text(text):
    seeds = {name: [r["seed"] for r in runs] for name, runs in STUDIES[text].items()}
    assert seeds == dict.fromkeys(causal.STUDIES[text], seeds["base-dot"])
    assert len(seeds["base-dot"]) >= 2
    assert len({r["corpus"]["sha256"] for runs in STUDIES[text].values() for r in runs}) == 1


def test_verse_is_the_one_that_the_library_writes():
    assert STUDIES["verse"]["base-dot"][0]["corpus"]["sha256"] == verse().sha256


@pytest.mark.parametrize("taps", [2, 16, 128])
def test_a_past_half_is_so_many_taps_of_the_selectors_band(taps):
    past, t = system(f"fourier-qk-past{taps}").filter(PRESETS["tiny"].gpt(36)).inner, torch.arange(taps)
    f = torch.linspace(0, 0.5, 20001, dtype=torch.float64)  # the integral, finely: the band stops at DC
    band = torch.exp(-0.5 * ((f - 4 / 256) / (2 / 256)) ** 2) @ torch.cos(2 * math.pi * f[:, None] * t)
    torch.testing.assert_close(past.kernel()[0] / past.kernel()[0, 0], (band / band[0]).float(), atol=1e-3, rtol=0)
    assert past.kernel().shape == (1, taps) and not any(p.requires_grad for p in past.parameters())


@pytest.mark.parametrize(
    ("name", "scales"),
    [("causal-morlet", [2, 4, 8, 16]), ("causal-morlet-min4", [4, 4, 8, 16]),
     ("causal-morlet-scale2", [2]), ("causal-morlet-scale4", [4])],
)  # fmt: skip
def test_a_morlet_has_the_scales_that_its_name_says(name, scales):
    centre = system(name).filter(PRESETS["tiny"].gpt(36)).inner.centre().flatten()
    torch.testing.assert_close(6 / (2 * torch.pi * centre), torch.tensor(scales, dtype=torch.float32))


@pytest.mark.parametrize("name", CAUSAL)
def test_all_are_as_loud(name):
    cfg = PRESETS["tiny"].gpt(36)
    filter = system(name).filter(cfg)
    energy = filter.impulse(1024).abs().square().sum(-1).reshape(-1, filter.impulse(1).shape[-2]).sum(0)
    torch.testing.assert_close(energy, torch.ones_like(energy))


# what the chapter says of them in words


def losses(text: str, name: str, kind: str) -> torch.Tensor:
    return torch.tensor([run["losses"][kind]["mean"] for run in STUDIES[text][name]])


@pytest.mark.parametrize("kind", ["ordered", "honest"])
@pytest.mark.parametrize("text", STUDIES)
def test_every_causal_filter_ends_below_the_baseline_in_every_seed(text, kind):
    for name in causal.STUDIES[text]:
        assert name == "base-dot" or (losses(text, name, kind) < losses(text, "base-dot", kind)).all(), name


def test_on_shakespeare_the_shorter_past_is_the_better_one():
    two, sixteen, most = (losses("shakespeare", f"past half, {n} taps", "ordered") for n in (2, 16, 128))
    assert (two < sixteen).all() and (sixteen < most).all()


def test_on_shakespeare_the_identity_path_is_slower():
    gap = losses("shakespeare", "causal-morlet-identity", "ordered") - losses("shakespeare", "causal-morlet", "ordered")
    assert (gap > 0).all()


def test_on_shakespeare_what_aliases_is_better_and_all_of_it_best():
    for without, with_it in (("scale 4 for 2", "causal-morlet"), ("scale 4 alone", "scale 2 alone")):
        assert (losses("shakespeare", without, "ordered") > losses("shakespeare", with_it, "ordered")).all()
    best = min(causal.STUDIES["shakespeare"], key=lambda name: losses("shakespeare", name, "ordered").mean())
    assert best == "scale 2 alone"


def test_on_verse_aliasing_and_identity_make_no_difference_to_speak_of():
    """Next to what a causal filter gains over the baseline."""
    gain = (losses("verse", "base-dot", "ordered") - losses("verse", "causal-morlet", "ordered")).mean()
    pairs = ("scale 4 for 2", "causal-morlet"), ("scale 4 alone", "scale 2 alone")
    for one, other in (*pairs, ("causal-morlet-identity", "causal-morlet")):
        assert abs(losses("verse", one, "ordered") - losses("verse", other, "ordered")).mean() < gain / 4


@pytest.mark.parametrize("text", STUDIES)
def test_128_taps_are_nowhere_better_than_2(text):
    assert (losses(text, "past half, 128 taps", "ordered") > losses(text, "past half, 2 taps", "ordered")).all()
