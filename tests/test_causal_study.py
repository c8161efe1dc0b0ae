"""The causal filters that are varied one thing at a time: what each is, and what the chapter says of their records."""
import math

import pytest
import torch

from fourierqk.records import study
from fourierqk.studies.design import CAUSAL
from fourierqk.training import PRESETS
from fourierqk.zoo import system

STUDIES = {text: study(f"causal-{text}") for text in ("verse", "shakespeare")}


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
    for name in STUDIES[text]:
        assert name == "base-dot" or (losses(text, name, kind) < losses(text, "base-dot", kind)).all(), name


def test_on_shakespeare_the_shorter_past_is_the_better_one():
    two, sixteen, most = (losses("shakespeare", f"fourier-qk-past{n}", "ordered") for n in (2, 16, 128))
    assert (two < sixteen).all() and (sixteen < most).all()


def test_on_shakespeare_the_identity_path_is_slower():
    gap = losses("shakespeare", "causal-morlet-identity", "ordered") - losses("shakespeare", "causal-morlet", "ordered")
    assert (gap > 0).all()


def test_on_shakespeare_what_aliases_is_better_and_all_of_it_best():
    for without, with_it in (("causal-morlet-min4", "causal-morlet"), ("causal-morlet-scale4", "causal-morlet-scale2")):
        assert (losses("shakespeare", without, "ordered") > losses("shakespeare", with_it, "ordered")).all()
    best = min(STUDIES["shakespeare"], key=lambda name: losses("shakespeare", name, "ordered").mean())
    assert best == "causal-morlet-scale2"


def test_on_verse_aliasing_and_identity_make_no_difference_to_speak_of():
    """Next to what a causal filter gains over the baseline."""
    gain = (losses("verse", "base-dot", "ordered") - losses("verse", "causal-morlet", "ordered")).mean()
    pairs = ("causal-morlet-min4", "causal-morlet"), ("causal-morlet-scale4", "causal-morlet-scale2")
    for one, other in (*pairs, ("causal-morlet-identity", "causal-morlet")):
        assert abs(losses("verse", one, "ordered") - losses("verse", other, "ordered")).mean() < gain / 4


@pytest.mark.parametrize("text", STUDIES)
def test_128_taps_are_nowhere_better_than_2(text):
    assert (losses(text, "fourier-qk-past128", "ordered") > losses(text, "fourier-qk-past2", "ordered")).all()
