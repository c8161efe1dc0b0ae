"""Repeats or scatters: critical values against scipy's distribution, and movements that we made up."""
import math

import pytest
import torch
from scipy import stats

from fourierqk.causality import steadiness as module
from fourierqk.causality.limits import DEPENDENCE, EXACT, FALSE_LEAK, FOLLOWED, FROZEN, LOOKS, MISSED_LEAK
from fourierqk.causality.steadiness import acquitting, convicting, steadiness


@pytest.mark.parametrize("runs", LOOKS)
@pytest.mark.parametrize("candidates", [1, 32, 2 * FOLLOWED])
def test_critical_values_are_those_of_the_non_central_t(runs: int, candidates: int) -> None:
    root = math.sqrt(runs)
    top = stats.nct.isf(FALSE_LEAK / len(LOOKS) / candidates, runs - 1, FROZEN * root) / root
    bottom = stats.nct.ppf(MISSED_LEAK / len(LOOKS), runs - 1, DEPENDENCE * root) / root
    assert convicting(runs, candidates) == pytest.approx(top, rel=1e-6)
    assert acquitting(runs) == pytest.approx(bottom, rel=1e-6)


def test_the_last_look_leaves_nothing_open() -> None:
    assert convicting(LOOKS[-1], 2 * FOLLOWED) < acquitting(LOOKS[-1])


def told(mean: float, spread: float, n: int = 2000, seed: int = 0):  # noqa: ANN201
    """Movements of a given mean and scatter, new for each key."""
    base = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def move(key: int) -> tuple[torch.Tensor, torch.Tensor]:
        rng = torch.Generator().manual_seed(1000 * seed + key + 1)
        return mean * base + spread * torch.randn(n, generator=rng, dtype=torch.float64), torch.zeros(n)

    return move


@pytest.mark.parametrize("seed", range(3))
def test_scatter_is_round_off_and_repetition_a_dependence(seed: int) -> None:
    assert steadiness(told(0, 1, seed=seed), 1.0).repeats is False
    assert steadiness(told(1, 1e-3, seed=seed), 1.0).repeats is True
    assert steadiness(told(0, 0, seed=seed), 1.0).repeats is False


def test_one_steady_movement_among_many_loose_ones_is_found() -> None:
    loose = told(0, 1)

    def move(key: int) -> tuple[torch.Tensor, torch.Tensor]:
        d, least = loose(key)
        d[77] = 2.0 + 1e-3 * d[77]
        return d, least

    found = steadiness(move, 1.0)
    assert found.repeats and found.which == 77 and 0.5 < found.noise < 5


def test_what_never_scatters_counts_by_its_size_alone() -> None:
    still = torch.zeros(10)
    for size, repeats in ((1.0, True), (2 * EXACT, True), (EXACT / 2, False)):
        assert steadiness(lambda key, size=size: (torch.full((10,), size), still), 1.0).repeats is repeats
    least = torch.full((10,), 2.0)
    assert steadiness(lambda key: (torch.ones(10), least), 1.0).repeats is False  # too small beside what moved


def _rate(mean: float, audits: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """How often movements of a mean of so many standard deviations count as a dependence, at ten times the errors."""
    monkeypatch.setattr(module, "FALSE_LEAK", 0.1)
    monkeypatch.setattr(module, "MISSED_LEAK", 0.1)
    signs = torch.ones(4)  # each of four movements has that mean
    rng = torch.Generator().manual_seed(0)
    draw = lambda key: (mean * signs + torch.randn(4, generator=rng, dtype=torch.float64), torch.zeros(4))  # noqa: E731
    return sum(steadiness(draw, 1.0).repeats for _ in range(audits)) / audits


def test_errors_are_no_more_frequent_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stated errors of a tenth, so that they happen: both must stay below it, with five standard errors to spare."""
    assert _rate(FROZEN, 400, monkeypatch) < 0.1 + 5 * math.sqrt(0.09 / 400)
    assert _rate(DEPENDENCE, 400, monkeypatch) > 0.9 - 5 * math.sqrt(0.09 / 400)


def test_round_off_with_a_frozen_part_is_never_a_dependence() -> None:
    """Each of 4000 movements has a mean of up to FROZEN standard deviations."""
    for seed in range(20):
        frozen = torch.rand(4000, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * FROZEN
        loose = told(0, 1, n=4000, seed=seed)
        assert steadiness(lambda key, f=frozen, e=loose: (f + e(key)[0], torch.zeros(4000)), 1.0).repeats is False


def test_coincidence_of_coarse_numbers_is_no_dependence() -> None:
    """Differences of numbers that are rounded to 0 or 1, with even chances: a few roundings agree by chance."""
    for seed in range(20):
        def move(key: int, seed: int = seed) -> tuple[torch.Tensor, torch.Tensor]:
            rng = torch.Generator().manual_seed(1000 * seed + key)
            a, b = torch.randint(2, (2, 500), generator=rng)
            return (b - a).double(), torch.zeros(500)

        assert steadiness(move, 1.0).repeats is False


def test_plain_cases_take_few_roundings_and_none_takes_more_than_the_last_look() -> None:
    for mean, spread, most in ((1, 1e-6, LOOKS[0]), (0, 1, LOOKS[1]), (0.8, 0.25, LOOKS[-1])):
        asked = []
        move = told(mean, spread, n=200)
        steadiness(lambda key, asked=asked, move=move: asked.append(key) or move(key), 1.0)
        assert min(asked) == 0 and len(asked) == len(set(asked)) and max(asked) <= most
