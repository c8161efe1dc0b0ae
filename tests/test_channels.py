"""Maps of the channels: their matrices from numpy, their algebra, and no word of any other token."""
import copy
import math

import numpy as np
import pytest
import torch

from fourierqk.channels import ChannelCollapse, ChannelFilter, ChannelMap, RandomProjection, RandomRotation
from fourierqk.combinators import Analytic, Bank
from fourierqk.filters import FeatureMap, Filter, Gaussian
from fourierqk.model import GPT, GPTConfig, filter_parameters

MAPS = {
    "filter": lambda d: ChannelFilter(Gaussian([0.1, 0.2], 0.07, learn=True)),
    "collapse": lambda d: ChannelCollapse(Gaussian([0.1, 0.2], 0.07, learn=True)),
    "rotation": lambda d: RandomRotation(d, heads=2, seed=1),
    "projection": lambda d: RandomProjection(d, rank=max(1, d // 2), heads=2, seed=1),
}
EACH = pytest.mark.parametrize("name", MAPS)
WIDTHS = pytest.mark.parametrize("d", [1, 2, 7, 8, 33])


def noise(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def weights(d: int, centre: float) -> np.ndarray:
    return np.exp(-((np.abs(np.fft.fftfreq(d)) - centre) ** 2) / (2 * 0.07**2))


def along_channels(x: np.ndarray, centre: float) -> np.ndarray:
    """The DFT of each token's channels, weighed, and back."""
    return np.fft.ifft(np.fft.fft(x, axis=-1) * weights(x.shape[-1], centre), axis=-1).real


@WIDTHS
def test_a_channel_filter_is_a_dft_over_channels_weighed_and_inverted(d):
    x, filter = noise(3, 2, 5, d), MAPS["filter"](d).double()
    got = filter(x).detach().numpy()
    for h, centre in enumerate((0.1, 0.2)):
        size = (weights(d, centre) ** 4).sum() / d  # of a circulant, the eigenvalues of the Gram matrix are |w|^2
        expected = along_channels(x[:, h].numpy(), centre) / size**0.25
        np.testing.assert_allclose(got[:, h], expected, atol=1e-6 * np.abs(expected).max())


@WIDTHS
def test_collapsed_it_is_one_weighted_sum_over_frequencies_and_scores_have_rank_one(d):
    q, k, collapse = noise(1, 2, 9, d), noise(1, 2, 9, d, seed=1), MAPS["collapse"](d).double()
    features = collapse(q)
    assert features.shape == (1, 2, 9, 1)
    for h, centre in enumerate((0.1, 0.2)):
        scalar = (np.fft.fft(q[0, h].numpy(), axis=-1) * weights(d, centre)).sum(-1)
        assert np.abs(scalar.imag).max() < 1e-9  # the weights are even, so the sum is real
        direction = np.fft.ifft(weights(d, centre)).real
        expected = scalar.real / d / np.linalg.norm(direction) * d**0.25
        np.testing.assert_allclose(features[0, h, :, 0].detach(), expected, atol=1e-6 * np.abs(expected).max())
    ranks = torch.linalg.matrix_rank((collapse(q) @ collapse(k).mT).detach(), rtol=1e-9)
    assert ranks.tolist() == [[1, 1]]


@WIDTHS
def test_a_channel_filter_commutes_with_turning_the_channels_and_w_q_absorbs_it(d):
    q, k, filter = noise(1, 2, 9, d), noise(1, 2, 9, d, seed=1), MAPS["filter"](d).double()
    m = filter.scaled(d).detach()
    for shift in range(d):  # a circulant: it commutes with every rotation of the channels
        torch.testing.assert_close(m.roll(shift, -1), m.roll(-shift, -2))
    torch.testing.assert_close(filter(q) @ filter(k).mT, (q @ (m.mT @ m)) @ k.mT)


@WIDTHS
def test_a_rotation_is_one_and_cancels_between_queries_and_keys(d):
    q, k, turn = noise(2, 2, 9, d), noise(2, 2, 9, d, seed=1), RandomRotation(d, heads=2, seed=1).double()
    r = turn.scaled(d)
    torch.testing.assert_close(r @ r.mT, torch.eye(d).double().expand(2, -1, -1), rtol=0, atol=1e-6)
    assert torch.linalg.det(r).tolist() == pytest.approx([1, 1], abs=1e-5)
    torch.testing.assert_close(turn(q) @ turn(k).mT, q @ k.mT, rtol=0, atol=1e-5)
    if d > 1:
        assert (turn(q) - q).abs().max() > 0.1 and not torch.allclose(r[0], r[1])


def test_rotations_are_uniform():
    """A Haar matrix sends each axis anywhere: coordinates have mean 0 and variance 1 / d, those of QR alone do not."""
    r = RandomRotation(5, heads=4000).rotation.double()
    assert r.mean(0).abs().max() < 5 / math.sqrt(5 * 4000)
    assert (r.square().mean(0) - 1 / 5).abs().max() < 5 * math.sqrt(2 / 4000) / 5
    assert r.diagonal(dim1=1, dim2=2).sum(1).square().mean().item() == pytest.approx(1, abs=0.15)  # E tr^2 over SO(5)


@pytest.mark.parametrize("d, rank", [(1, 1), (2, 1), (7, 3), (8, 4), (8, 8)])
def test_a_projection_has_the_rank_it_says_and_is_not_orthogonal(d, rank):
    q, k, m = noise(1, 2, 20, d), noise(1, 2, 20, d, seed=1), RandomProjection(d, rank, heads=2, seed=3).double()
    raw = torch.randn(2, rank, d, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    gram = raw.mT @ raw
    gram *= math.sqrt(d) / torch.linalg.matrix_norm(gram)[:, None, None]
    torch.testing.assert_close(m(q) @ m(k).mT, q @ gram @ k.mT, rtol=0, atol=1e-5)
    assert torch.linalg.matrix_rank(m(q) @ m(k).mT, rtol=1e-9).tolist() == [[rank, rank]]
    directions = m.scaled(d)
    off = (directions @ directions.mT)[:, ~torch.eye(rank, dtype=torch.bool)]
    assert rank == 1 or off.abs().max() > 0.01


@EACH
@WIDTHS
def test_scores_of_white_noise_are_as_loud_as_dot_products(name, d):
    """Their variance is the squared norm of the Gram matrix: d, as of q . k."""
    m = MAPS[name](d).double().scaled(d).detach()
    assert (m.mT @ m).square().sum((1, 2)).tolist() == pytest.approx([d, d], rel=1e-9)


@EACH
def test_tokens_keep_to_themselves(name):
    channel_map, x = MAPS[name](6), noise(2, 2, 9, 6, dtype=torch.float32)
    y, other = channel_map(x), x.clone()
    other[:, :, 4] = 1e6
    moved = (channel_map(other) != y).any(-1).any(1).any(0)
    assert moved.tolist() == [t == 4 for t in range(9)]


@EACH
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_precision_is_kept_and_bfloat16_is_computed_in_float32(name, dtype):
    channel_map, x = MAPS[name](6), noise(2, 2, 9, 6).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        y = channel_map(x)
    expected = channel_map(x.double()).detach()
    assert y.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2**-8}[dtype]
    assert ((y - expected).abs() <= tolerance * expected.abs() + 1e-5 * (dtype != torch.float64)).all()


@EACH
def test_a_half_precision_map_is_worked_out_in_float32(name):
    channel_map, x = MAPS[name](6), noise(2, 2, 9, 6).float()
    half = copy.deepcopy(channel_map).bfloat16()
    assert half.scaled(6).dtype == torch.float32
    torch.testing.assert_close(half(x), channel_map(x), rtol=0, atol=0.05 * channel_map(x).abs().max().item())


@EACH
def test_copies_share_nothing_and_a_seed_means_one_map(name):
    channel_map, x = MAPS[name](6), noise(2, 2, 9, 6).float()
    twin = copy.deepcopy(channel_map)
    mine, other = ({t.data_ptr() for t in (*f.parameters(), *f.buffers()) if t.numel()} for f in (channel_map, twin))
    assert not mine & other and torch.equal(channel_map(x), twin(x))
    assert torch.equal(MAPS[name](6)(x), channel_map(x))
    assert isinstance(channel_map, FeatureMap) and not isinstance(channel_map, Filter)


@pytest.mark.parametrize("name", ["filter", "collapse"])
def test_the_centre_is_learned(name):
    channel_map, x = MAPS[name](6), noise(2, 2, 9, 6).float()
    (channel_map(x) * noise(*channel_map(x).shape, seed=1).float()).sum().backward()
    (p,) = channel_map.parameters()
    assert (p.grad != 0).all() and p.grad.isfinite().all()
    model = GPT(GPTConfig(5, block_size=8, n_layer=2, n_head=2, n_embd=12), channel_map)
    assert len(list(filter_parameters(model))) == 2


def test_what_does_not_fit_is_explained():
    x = torch.zeros(1, 2, 5, 6)
    for act, words in (
        (lambda: RandomRotation(8, heads=2)(x), "is of 8 channels, the signal has 6: build it with d=6"),
        (lambda: RandomProjection(8, 4, heads=2)(x), "build it with d=6"),
        (lambda: RandomRotation(6, heads=3)(x), "build it with heads=2"),
        (lambda: RandomProjection(4, rank=5), "rank = 5"),
        (lambda: RandomRotation(0), "d = 0"),
        (lambda: RandomRotation(4, heads=0), "heads = 0"),
        (lambda: ChannelFilter(Analytic(Gaussian())), "real and single"),
        (lambda: ChannelCollapse(Bank(Gaussian(), Gaussian())), "real and single"),
        (lambda: RandomRotation(6, heads=2)(x[0]), r"(batch, heads, time, d)"),
    ):
        with pytest.raises(ValueError) as error:
            act()
        assert words in str(error.value)
    with pytest.raises(NotImplementedError):
        ChannelMap()(x)
    with pytest.raises(NotImplementedError):
        FeatureMap()(x)
