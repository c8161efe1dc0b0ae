"""Monte Carlo arithmetic against the round-off that torch really makes."""
import pytest
import torch
from torch import nn

from fourierqk.causality.rounding import Rounding, eps_of, perturb

DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_noise_has_the_size_of_the_precision_and_no_bias(dtype: torch.dtype) -> None:
    x = 1 + torch.rand(20_000, generator=torch.Generator().manual_seed(0)).to(dtype)
    y = x.clone()
    perturb(y, eps_of(x), 3)
    noise = torch.view_as_real(y - x)[..., 0] if x.is_complex() else y - x
    steps = noise.double() / eps_of(x)
    assert 0.3 < steps.std() < 12 and steps.abs().max() < 20
    throws = len((x.real if x.is_complex() else x).unique())  # equal numbers get equal dice
    assert steps.mean().abs() < 5 * steps.std() / throws**0.5 + 0.02


def test_equal_numbers_get_equal_noise_and_keys_differ() -> None:
    x = torch.randn(50, generator=torch.Generator().manual_seed(0)).repeat(2)
    a, b, again = x.clone(), x.clone(), x.clone()
    for t, key in ((a, 1), (b, 2), (again, 1)):
        perturb(t, eps_of(x), key)
    assert torch.equal(a[:50], a[50:]) and torch.equal(a, again) and not torch.equal(a, b)


def test_whole_numbers_infinities_and_nan_stay() -> None:
    x = torch.tensor([0.0, 1.0, -7.0, 1000.0, torch.inf, -torch.inf, torch.nan])
    y = x.clone()
    perturb(y, eps_of(x), 1)
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
