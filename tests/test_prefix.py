"""The two-sided filter on what has been read: against the filter run on each prefix by itself."""
import numpy as np
import pytest
import torch

from fourierqk import audit
from fourierqk.combinators import Analytic, Bank, Causal, Unit
from fourierqk.filters import GRID, CircularFilter, Filter, Gaussian, MexicanHat
from fourierqk.model import GPT, Attention, GPTConfig
from fourierqk.prefix import PrefixFilter

BANDS = {
    "two heads": lambda: Unit(Gaussian([1 / 20, 1 / 5], 0.03)),
    "one for all": lambda: Gaussian(1 / 50, 2 / 256),
    "a hat": lambda: MexicanHat(1 / 10),
    "one-sided": lambda: Causal(Gaussian(1 / 8, 0.02), taps=5),
}


def signal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def two_sided(x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """One channel after the other: the sum over lags of either sign, silence around; h[0] is lag 0, h[-1] lag -1."""
    lags = np.concatenate([h[-(len(x) - 1) :] if len(x) > 1 else h[:0], h[: len(x)]])
    return np.stack([np.convolve(c, lags)[len(x) - 1 : 2 * len(x) - 1] for c in x.T], -1)


@pytest.mark.parametrize("n", [1, 2, 17, 96])
@pytest.mark.parametrize("name", BANDS)
def test_each_row_is_that_of_the_prefix_by_itself(name, n):
    inner = BANDS[name]().double()
    q, k, filter = signal(2, 2, n, 3), signal(2, 2, n, 3, seed=1), PrefixFilter(inner)
    scores, kernels = filter.scores(q, k), inner.impulse(GRID).expand(2, -1).numpy()
    for b, head, i in np.ndindex(2, 2, n):
        mine, theirs = (two_sided(x[b, head, : i + 1].numpy(), kernels[head]) for x in (q, k))
        np.testing.assert_allclose(scores[b, head, i, : i + 1], theirs @ mine[i], atol=1e-10, rtol=0)


def test_the_last_token_hears_the_filter_on_the_whole_text():
    q, k, filter = signal(1, 2, 33, 4), signal(1, 2, 33, 4, seed=1), PrefixFilter(BANDS["two heads"]().double())
    last = filter(q)[..., -1:, :] @ filter(k).mT
    torch.testing.assert_close(filter.scores(q, k)[..., -1:, :], last, atol=1e-10, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_not_a_bit_of_a_row_moves_when_later_tokens_do(dtype):
    filter = PrefixFilter(BANDS["two heads"]()).to(dtype)
    q, k = signal(1, 2, 40, 4).to(dtype), signal(1, 2, 40, 4, seed=1).to(dtype)
    before = filter.scores(q, k)
    for cut in (1, 13, 39):
        edited = [torch.cat([x[..., :cut, :], 1e3 * signal(1, 2, 40 - cut, 4, seed=2).to(dtype)], -2) for x in (q, k)]
        after = filter.scores(*edited)
        assert torch.equal(after[..., :cut, :cut], before[..., :cut, :cut])
        assert not torch.equal(after[..., cut:, :], before[..., cut:, :])


def test_a_text_longer_than_half_the_grid_has_a_finer_grid_and_the_same_kernel_on_it():
    filter = PrefixFilter(Gaussian(1 / 16, 0.03).double())
    long, short = filter.kernel(700)[0], filter.kernel(100)[0]
    assert long.shape == (1399,) and short.shape == (199,)
    torch.testing.assert_close(long[600:799], short, atol=1e-6, rtol=0)  # a band so wide has died away in 500 tokens


def test_attention_by_prefixes_is_softmax_over_those_scores():
    cfg = GPTConfig(vocab_size=7, block_size=12, n_layer=1, n_head=2, n_embd=8, dropout=0.0)
    torch.manual_seed(0)
    layer, x = Attention(cfg, PrefixFilter(BANDS["two heads"]())).double().eval(), signal(1, 12, 8)
    q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in layer.qkv(x).chunk(3, -1))
    scores = layer.filter.scores(q, k) / 2
    rows = [torch.softmax(scores[..., i, : i + 1], -1)[..., None, :] @ v[..., : i + 1, :] for i in range(12)]
    wanted = layer.proj(torch.cat(rows, -2).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x), wanted, atol=1e-12, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [96, 128, 320])
def test_the_audit_finds_no_future_in_it(n):
    torch.manual_seed(0)
    cfg = GPTConfig(vocab_size=20, block_size=n, n_layer=1, n_head=2, n_embd=8, dropout=0.0)
    assert audit(GPT(cfg, PrefixFilter(Unit(Gaussian(1 / 64, 2 / 256, heads=2)))), 20, n, draws=2).verdict == "causal"


class Cut(CircularFilter):
    """Passes all; whether it is cut is up to the test."""

    def response(self, f: torch.Tensor) -> torch.Tensor:
        return torch.ones_like(f)[None]


def test_a_filter_that_changes_nothing_gives_dot_products():
    q, k = signal(1, 2, 9, 4), signal(1, 2, 9, 4, seed=1)
    torch.testing.assert_close(PrefixFilter(Cut().double()).scores(q, k), (q @ k.mT).tril(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("inner", [Analytic(Gaussian(0.1, 0.02)), Bank(Gaussian(0.1, 0.02), MexicanHat(0.1))])
def test_a_filter_that_widens_is_refused(inner: Filter):
    with pytest.raises(ValueError, match="real and single"):
        PrefixFilter(inner)


@pytest.mark.parametrize("on", ["k", "qkv", "kq", ""])
def test_it_compares_queries_with_keys_and_no_other(on):
    cfg = GPTConfig(vocab_size=7, block_size=12, n_layer=1, n_head=2, n_embd=8)
    with pytest.raises(ValueError, match="must be one of q, k, v.*of a PrefixFilter, 'qk'"):
        Attention(cfg, PrefixFilter(Gaussian(0.1, 0.02)), on)
