"""Rotary positions, restated with complex numbers: a score depends on the distance alone."""
import numpy as np
import pytest
import torch

from fourierqk.filters import Gaussian
from fourierqk.model import GPT, GPTConfig
from fourierqk.rotary import Rotary


def signal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def turned(x: np.ndarray, base: float, start: int = 0) -> np.ndarray:
    """(..., T, d): channels c and c + d/2 are one complex number, which turns by t base^(-2c/d)."""
    n, d = x.shape[-2:]
    z = x[..., : d // 2] + 1j * x[..., d // 2 :]
    z = z * np.exp(1j * np.outer(np.arange(start, start + n), base ** (-2 * np.arange(d // 2) / d)))
    return np.concatenate([z.real, z.imag], -1)


@pytest.mark.parametrize(("dtype", "tol"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
@pytest.mark.parametrize(("shape", "base"), [((2, 3, 7, 4), 1e4), ((1, 1, 1, 2), 50.0), ((1, 2, 130, 32), 1e4)])
def test_pairs_of_channels_turn_as_complex_numbers_do(shape, base, dtype, tol):
    x = signal(*shape, dtype=dtype)
    rotary = Rotary(shape[-1], base).to(dtype)
    torch.testing.assert_close(rotary(x), torch.tensor(turned(x.numpy(), base), dtype=dtype), atol=tol, rtol=tol)
    assert rotary(x).dtype == dtype


def test_a_text_can_begin_later():
    x = signal(1, 2, 9, 6)
    rotary = Rotary(6).double()
    torch.testing.assert_close(rotary(x[..., 4:, :], start=4), rotary(x)[..., 4:, :])


@pytest.mark.parametrize("shift", [1, 5, 40])
def test_a_score_depends_on_the_distance_alone(shift):
    q, k, rotary = signal(1, 1, 1, 8), signal(1, 1, 1, 8, seed=1), Rotary(8).double()
    scores = [(rotary(q, start=t) @ rotary(k, start=t + shift).mT).item() for t in (0, 3, 77)]
    assert scores == pytest.approx([scores[0]] * 3, rel=1e-9)
    assert scores[0] != pytest.approx((q @ k.mT).item(), rel=1e-3)


def test_each_block_of_a_wide_feature_turns_alike():
    a, b, rotary = signal(1, 2, 5, 4), signal(1, 2, 5, 4, seed=1), Rotary(4).double()
    torch.testing.assert_close(rotary(torch.cat([a, b], -1)), torch.cat([rotary(a), rotary(b)], -1))


def test_no_filter_commutes_with_it():
    x, rotary, band = signal(1, 1, 64, 4), Rotary(4).double(), Gaussian(0.1, 0.02).double()
    assert (rotary(band(x)) - band(rotary(x))).abs().max() > 0.1


def test_rotary_positions_replace_learned_ones():
    """Without positions a causal model of one layer cannot tell the order of what it has read; with turns it can."""
    torch.manual_seed(0)
    cfg = GPTConfig(vocab_size=9, block_size=16, n_layer=1, n_head=2, n_embd=8, dropout=0.0)
    model = GPT(cfg, rotary=Rotary(4)).double().eval()
    assert model.positions is None and "positions.weight" not in model.state_dict()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.7)
    a, b = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[2, 1, 3, 4]])
    assert (model(a)[0] - model(b)[0])[0, -1].abs().max() > 1e-3
    model.blocks[0].mixer.rotary = None
    assert (model(a)[0] - model(b)[0])[0, -1].abs().max() < 1e-12


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Rotary(5), "even number"),
        (lambda: Rotary(0), "d = 0"),
        (lambda: Rotary(4, base=1), "must be above 1"),
        (lambda: Rotary(4)(signal(1, 1, 3, 6)), "heads of 4 channels, the signal has 6"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
