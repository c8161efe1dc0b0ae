"""Monte Carlo arithmetic against the round-off that torch really makes; steadiness against movements we made up."""
import pytest
import torch
from torch import nn

from fourierqk.causality.rounding import KEYS, Rounding, grain, shake, steadiness

DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_noise_has_the_size_of_the_precision_and_no_bias(dtype: torch.dtype) -> None:
    x = 1 + torch.rand(20_000, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = x.clone()
    shake(y, grain(x), 3)
    noise = torch.view_as_real(y - x)[..., 0] if x.is_complex() else y - x
    steps = noise.double() / grain(x)
    assert 0.3 < steps.std() < 12 and steps.abs().max() < 20
    assert steps.mean().abs() < 5 * steps.std() / len(x) ** 0.5 + 0.02


def test_equal_numbers_get_equal_noise_and_keys_differ() -> None:
    x = torch.randn(50, generator=torch.Generator().manual_seed(0)).repeat(2)
    a, b, again = x.clone(), x.clone(), x.clone()
    for t, key in ((a, 1), (b, 2), (again, 1)):
        shake(t, grain(x), key)
    assert torch.equal(a[:50], a[50:]) and torch.equal(a, again) and not torch.equal(a, b)


def test_whole_numbers_infinities_and_nan_stay() -> None:
    x = torch.tensor([0.0, 1.0, -7.0, 1000.0, torch.inf, -torch.inf, torch.nan])
    y = x.clone()
    shake(y, grain(x), 1)
    assert torch.equal(y.nan_to_num(), x.nan_to_num()) and y[-1].isnan()


@pytest.mark.parametrize("n", [16, 15, 64])
def test_it_covers_the_error_of_a_transform_but_not_more_than_it_must(n: int) -> None:
    """A padded FFT convolution in float32 against float64: real round-off is of the size of the noise."""
    rng = torch.Generator().manual_seed(n)
    x, k = torch.randn(n, generator=rng), torch.randn(n, generator=rng)

    def convolve(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(torch.fft.rfft(x, n=2 * n) * torch.fft.rfft(k, n=2 * n), n=2 * n)[:n]

    real = (convolve(x, k).double() - convolve(x.double(), k.double())).abs().max()
    noisy = []
    for key in range(1, 9):
        with Rounding(key):
            noisy.append(convolve(x, k))
    spread = torch.stack(noisy).double().std(0).max()
    assert real < 3 * spread and spread < 1e-5 * convolve(x, k).abs().max()


def test_operations_round_and_views_do_not() -> None:
    x = torch.rand(8, 8) + 0.5
    with Rounding(1):
        for view in (x.T, x[2:], x.view(64), x.detach(), x.unsqueeze(0), x.expand(3, 8, 8)):
            assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        before = x.clone()
        y = x * 1.5
    assert not torch.equal(y, x * 1.5) and torch.allclose(y, x * 1.5, rtol=1e-5)
    assert torch.allclose(x, before, rtol=1e-5)
    held = x.clone()
    with Rounding(1):
        _ = x @ x, x.sum(), x.softmax(-1), nn.functional.gelu(x), torch.fft.rfft(x), x.argmax(), x.long()
    assert torch.equal(x, held), "an input was changed"


def test_the_coarsest_precision_counts() -> None:
    x = torch.rand(1000, dtype=torch.float64) + 0.5
    with Rounding(1):
        fine, mixed = x * x, (x.float() * 1.5).double()
    assert (fine / (x * x) - 1).abs().max() < 1e-14 < 1e-8 < (mixed / (x * 1.5) - 1).abs().max() < 1e-5


def test_in_place_operations_round_too() -> None:
    x = torch.rand(100) + 0.5
    y = x.clone()
    with Rounding(1):
        y.mul_(1.5)
    assert not torch.equal(y, x * 1.5) and torch.allclose(y, x * 1.5, rtol=1e-5)


def told(mean: float, spread: float, n: int = 2000, seed: int = 0):  # noqa: ANN201
    """Movements of a given mean and scatter, new for each key."""
    base = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def move(key: int) -> tuple[torch.Tensor, torch.Tensor]:
        rng = torch.Generator().manual_seed(1000 * seed + key + 1)
        return mean * base + spread * torch.randn(n, generator=rng, dtype=torch.float64), torch.zeros(n)

    return move


@pytest.mark.parametrize("seed", range(10))
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
    for size, repeats in ((1.0, True), (1e-3, True), (1e-6, False)):
        assert steadiness(lambda key, size=size: (torch.full((10,), size), still), 1.0).repeats is repeats
    least = torch.full((10,), 2.0)
    assert steadiness(lambda key: (torch.ones(10), least), 1.0).repeats is False  # too small beside what moved


def test_chance_alone_is_hardly_ever_a_dependence() -> None:
    verdicts = [steadiness(told(0, 1, n=4000, seed=s), 1.0).repeats for s in range(60)]
    assert verdicts.count(True) == 0 and verdicts.count(None) <= 3


def test_keys_are_all_that_is_asked_for() -> None:
    asked = []
    move = told(0.8, 0.25)
    steadiness(lambda key: asked.append(key) or move(key), 1.0)
    assert min(asked) == 0 and max(asked) < KEYS
