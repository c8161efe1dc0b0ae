"""Filters against matrices, closed forms and scipy; then the contract that every filter on the shelf keeps."""
import copy
import inspect
import math

import numpy as np
import pytest
import scipy.signal
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fourierqk import combinators, filters
from fourierqk.combinators import Analytic, Bank, Causal, PhaseRandomised, Residual, SlidingDFT, Sum, Unit, shelf
from fourierqk.filters import (
    AllPass,
    CausalFilter,
    CausalGaussian,
    CausalMexicanHat,
    CircularFilter,
    Filter,
    Gaussian,
    MexicanHat,
    Morlet,
    MorletCorrelation,
    RandomBands,
    Tone,
    bins,
    period,
)  # fmt: skip
from fourierqk.parts import convolve

LENGTHS = (7, 64, 255)  # odd and even, shorter and longer than the 128 taps
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
PRECISIONS = pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])
AT = pytest.mark.parametrize("n", LENGTHS)


# Oracles: numpy in float64, straight from the definitions, no FFT


def dft(n: int) -> np.ndarray:
    t = np.arange(n)
    return np.exp(-2j * np.pi * (np.outer(t, t) % n) / n)


def frequencies(n: int) -> np.ndarray:
    """Of the n bins, in [-1/2, 1/2)."""
    k = np.arange(n)
    return np.where(k < (n + 1) // 2, k, k - n) / n


def circulant(weights: np.ndarray) -> np.ndarray:
    """The matrix that multiplies bin k of a DFT by weights[k]."""
    w = dft(len(weights))
    return w.conj().T @ np.diag(weights) @ w / len(weights)


def toeplitz(kernel: np.ndarray, n: int) -> np.ndarray:
    """Row t hears column s through the tap at lag t - s."""
    return np.array([[kernel[t - s] if 0 <= t - s < len(kernel) else 0 for s in range(n)] for t in range(n)])


def gaussian(f: np.ndarray, centre: float, width: float) -> np.ndarray:
    return np.exp(-((np.abs(f) - centre) ** 2) / (2 * width**2))


def ricker(f: np.ndarray, centre: float) -> np.ndarray:
    return (f / centre) ** 2 * np.exp(1 - (f / centre) ** 2)


def morlet(scale: float, omega0: float, taps: int) -> np.ndarray:
    t = np.arange(taps)
    return np.exp(-(t**2) / (2 * scale**2)) * np.exp(1j * omega0 * t / scale)


def nearest(n: int, freq: float) -> np.ndarray:
    """1 at the two mirror bins nearest to freq."""
    f = np.abs(frequencies(n))
    return (np.abs(f - freq) <= np.abs(f - freq).min() + 1e-12).astype(float)


def noise(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def assert_close(got: torch.Tensor, expected: np.ndarray, dtype: torch.dtype = torch.float64) -> None:
    """Within the precision's tolerance of the largest value expected."""
    assert got.dtype in (dtype, torch.complex64 if dtype == torch.float32 else torch.complex128)
    assert tuple(got.shape) == expected.shape
    error = np.abs(got.detach().numpy() - expected).max()
    assert error <= TOLERANCE[dtype] * max(np.abs(expected).max(), 1e-3), error


def assert_filters(filter: Filter, matrices: list[np.ndarray], n: int, dtype: torch.dtype) -> None:
    """filter(x) is x times the matrix of each head: (heads, n, n) each, one for every block of d' features."""
    x = noise(2, len(matrices[0]), n, 3, dtype=dtype, seed=n)
    expected = np.concatenate([np.einsum("hts,bhsd->bhtd", m, x.double().numpy()) for m in matrices], -1)
    assert_close(filter.to(dtype)(x), expected, dtype)


# Circular filters: the DFT of the whole window


def circular_cases() -> dict:
    """name -> (filter of 2 heads, its weights at frequencies f of the window's n bins, one function a head)."""
    u = torch.rand(2, 1, generator=torch.Generator().manual_seed(3)).numpy().ravel().astype(float)
    random = [(c, 0.15 * c + 1 / 128) for c in 1 / 128 + u * (0.26 - 1 / 128)]
    return {
        "gaussian": (Gaussian([0.05, 0.21], 0.03), [lambda f, c=c: gaussian(f, c, 0.03) for c in (0.05, 0.21)]),
        "narrow": (Gaussian([0.05, 0.21], 0.004), [lambda f, c=c: gaussian(f, c, 0.004) for c in (0.05, 0.21)]),
        "mexican hat": (MexicanHat([0.05, 0.21]), [lambda f, c=c: ricker(f, c) for c in (0.05, 0.21)]),
        "morlet correlation": (
            MorletCorrelation([4.0, 9.0]),
            [lambda f, a=a: np.exp(-((2 * np.pi * a * np.abs(f) - 6) ** 2) / 2) for a in (4.0, 9.0)],
        ),
        "random bands": (RandomBands(2, seed=3), [lambda f, c=c, w=w: gaussian(f, c, w) for c, w in random]),
        "dc": (Tone(0), [lambda f: nearest(len(f), 0)] * 2),
        "tone": (Tone(0.11), [lambda f: nearest(len(f), 0.11)] * 2),
        "nyquist": (Tone(0.5), [lambda f: nearest(len(f), 0.5)] * 2),
    }


@pytest.mark.parametrize("name", circular_cases())
@AT
@PRECISIONS
def test_circular_filters_are_dense_circulant_matrices(name, n, dtype):
    filter, weights = circular_cases()[name]
    filter = exact(filter, name) if dtype == torch.float64 else filter
    matrix = np.stack([circulant(w(frequencies(n))) for w in weights])
    assert np.abs(matrix.imag).max() < 1e-10  # real in, real out
    assert_filters(filter, [matrix.real], n, dtype)
    heads = len(filter.response(torch.zeros(1)))
    assert_close(filter.to(dtype).impulse(n), matrix.real[:heads, :, 0], dtype)


def exact(filter: Filter, name: str) -> Filter:
    """The same filter with its parameters set in float64, so that 1e-10 tests the filter and not their rounding."""
    filter = filter.double()
    if name in ("gaussian", "narrow", "mexican hat"):
        filter.centre.logit.data = torch.logit(2 * torch.tensor([[0.05], [0.21]], dtype=torch.float64))
    if name == "morlet correlation":
        filter.centre.logit.data = torch.logit(2 * 6 / (2 * math.pi * torch.tensor([[4.0], [9.0]]).double()))
    if name == "random bands":
        u = torch.rand(2, 1, generator=torch.Generator().manual_seed(3)).double()
        filter.centre = 1 / 128 + u * (0.26 - 1 / 128)
        filter.width = 0.15 * filter.centre + 1 / 128
    return filter


NARROW = {
    "band": lambda: Gaussian([0.05, 0.21], 0.004, learn=True),
    "edges": lambda: Bank(Gaussian([0.003, 0.499], 0.004, learn=True), Tone(0), Tone(0.5)),  # DC and Nyquist count once
    "unit": lambda: Unit(Gaussian([0.05, 0.21], 0.004, learn=True)),
    "hat": lambda: Unit(MexicanHat(0.01, learn=True)),
    "correlation": lambda: Unit(MorletCorrelation([32.0, 64.0], learn=True)),
    "bank": lambda: Unit(Bank(Gaussian([0.1, 0.1], 0.003, learn=True), Gaussian(0.12, 0.004, learn=True), Tone(0.1))),
    "sum": lambda: Unit(Sum(Gaussian([0.1, 0.1], 0.003, learn=True), Gaussian(0.12, 0.004, learn=True))),
    "pair": lambda: Unit(Analytic(Gaussian([0.05, 0.21], 0.004, learn=True))),
    "phases": lambda: PhaseRandomised(Unit(Gaussian([0.05, 0.21], 0.004, learn=True)), heads=2).eval(),
}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("n", [192, 255, 256])
@PRECISIONS
def test_a_narrow_band_is_filtered_without_the_bins_that_it_stops(name, n, dtype):
    """Values and gradients are those of an FFT of all bins, and no such FFT of the signal is made."""

    class Transforms(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += func is torch.ops.aten._fft_r2c.default and args[0].dim() == 4
            return func(*args, **(kwargs or {}))

    filter, x = NARROW[name]().to(dtype), noise(2, 2, n, 3, dtype=dtype, seed=n).requires_grad_()
    made, found = [], []
    for fades in (True, False):
        assert filter.fades or not fades
        for m in filter.modules():
            m.fades = fades
        with Transforms() as seen:
            y = filter(x)
        made.append(seen.count)
        weight = noise(*y.shape, dtype=dtype, seed=1)
        found.append([y, *torch.autograd.grad((y * weight).sum(), [x, *filter.parameters()])])
    assert made == [0, 1]
    for thin, whole in zip(*found, strict=True):
        assert (thin - whole).abs().max() <= 10 * TOLERANCE[dtype] * whole.abs().max() and whole.abs().max() > 0


def test_a_response_of_ones_own_learns_where_it_stops_all():
    """Nothing says that its gradient vanishes with it, so no bin may be left out."""

    class Free(CircularFilter):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1, 129, dtype=torch.float64))

        def response(self, f):
            return self.weight

    filter, x, w = Free(), noise(1, 1, 256, 2), noise(1, 1, 256, 2, seed=1)
    with torch.no_grad():
        filter.weight[0, 20] = 1
    (got,) = torch.autograd.grad((filter(x) * w).sum(), filter.weight)
    a, b = (dft(256) @ t[0, 0].numpy() for t in (x, w))
    both = np.where(np.arange(129) % 128, 2, 1)  # all but DC and Nyquist have a mirror image
    assert_close(got, (both * (a.conj() * b).real.sum(1)[:129] / 256)[None])


def test_the_dc_tone_is_the_mean_and_the_nyquist_tone_alternates():
    x = noise(1, 1, 8, 1)
    assert_close(Tone(0)(x), np.full((1, 1, 8, 1), x.mean().item()))
    sign = np.array([1, -1] * 4).reshape(1, 1, 8, 1)
    assert_close(Tone(0.5)(x), sign * (x.numpy() * sign).mean())


def test_the_nyquist_tone_takes_the_highest_bin_of_an_odd_window():
    weights = Tone(0.5).response(torch.fft.rfftfreq(7))
    assert weights.tolist() == [[0, 0, 0, 1]]


def test_the_gaussian_in_time_is_a_modulated_bell():
    """The closed form: a band of width w at c is 2 w sqrt(2 pi) exp(-2 pi^2 w^2 t^2) cos(2 pi c t)."""
    n, c, w = 4096, 0.1, 0.01
    t = np.arange(-n // 2, n // 2)
    bell = 2 * w * math.sqrt(2 * math.pi) * np.exp(-2 * (np.pi * w * t) ** 2) * np.cos(2 * np.pi * c * t)
    got = torch.fft.fftshift(Gaussian(c, w).double().impulse(n))[0]
    np.testing.assert_allclose(got.detach(), bell, atol=1e-7)


def test_the_mexican_hat_in_time_is_the_ricker_wavelet():
    n, f = 4096, 0.05
    a, t = 1 / (math.sqrt(2) * math.pi * f), np.arange(-n // 2, n // 2)
    hat = math.e / (2 * math.sqrt(2 * math.pi) * a) * (1 - (t / a) ** 2) * np.exp(-((t / a) ** 2) / 2)
    got = torch.fft.fftshift(MexicanHat(f).double().impulse(n))[0]
    np.testing.assert_allclose(got.detach(), hat, atol=1e-7)


def test_the_mexican_hat_peaks_with_one_at_its_frequency_and_stops_dc():
    f = torch.linspace(0, 0.5, 5001)
    r = MexicanHat(0.07).response(f)[0]
    assert r[0] == 0 and r.max() == pytest.approx(1, abs=1e-6) and f[r.argmax()] == pytest.approx(0.07, abs=1e-4)


def test_random_bands_have_the_stated_widths_and_come_from_their_seed():
    a, b = RandomBands(500, seed=1), RandomBands(500, seed=1)
    assert torch.equal(a.centre, b.centre) and not torch.equal(a.centre, RandomBands(500, seed=2).centre)
    assert 1 / 128 <= a.centre.min() < 0.012 and 0.255 < a.centre.max() <= 0.26
    assert torch.allclose(a.width, 0.15 * a.centre + 1 / 128)
    assert a.centre.mean().item() == pytest.approx(0.134, abs=0.014)  # uniform: 4 standard errors of 0.0033


# Causal filters: convolutions with silence before the first token


@AT
@PRECISIONS
@pytest.mark.parametrize("taps", [1, 5, 128, 300])
def test_the_morlet_is_a_dense_toeplitz_matrix(n, dtype, taps):
    kernels = np.stack([morlet(a, 6, taps) for a in (4.0, 9.0)])
    matrix = np.stack([toeplitz(k, n) for k in kernels])
    filter = Morlet([4.0, 9.0], taps=taps).to(dtype)
    if dtype == torch.float64:
        filter.centre.logit.data = torch.logit(2 * 6 / (2 * math.pi * torch.tensor([[4.0], [9.0]], dtype=dtype)))
    assert_filters(filter, [matrix.real, matrix.imag], n, dtype)
    assert_close(filter.impulse(n), np.pad(kernels, ((0, 0), (0, n)))[:, :n], dtype)


@AT
@PRECISIONS
@pytest.mark.parametrize(
    "make, shape", [(CausalGaussian, lambda u: np.exp(-(u**2) / 2)),
                    (CausalMexicanHat, lambda u: (1 - u**2) * np.exp(-(u**2) / 2))], ids=["bell", "hat"],
)  # fmt: skip
def test_half_a_bell_and_half_a_hat_are_dense_toeplitz_matrices(make, shape, n, dtype):
    matrix = np.stack([toeplitz(shape(np.arange(100) / a), n) for a in (2.5, 20.0)])
    assert_filters(make([2.5, 20.0], taps=100).to(dtype), [matrix], n, dtype)


def test_half_a_hat_passes_dc_and_a_whole_one_does_not():
    """The taps of the whole sum to nearly 0, so those of lags 0 .. sum to half of lag 0: not admissible."""
    dc = CausalMexicanHat(8.0).double().response(torch.zeros(1, dtype=torch.float64))
    assert dc.real.item() == pytest.approx(0.5, abs=1e-6)
    assert CausalGaussian(8.0).double().response(torch.zeros(1).double()).real.item() == pytest.approx(
        8 * math.sqrt(math.pi / 2) + 0.5, abs=1e-6
    )


def test_the_kernel_of_the_morlet_correlation_is_even_and_is_the_wavelet_itself():
    n, a = 1024, 9.0
    h = MorletCorrelation(a).double().impulse(n)[0].detach()
    torch.testing.assert_close(h[1:], h[1:].flip(0), rtol=0, atol=1e-12)
    t = np.arange(-200, 201)
    wave = np.exp(-(t**2) / (2 * a**2)) * np.cos(6 * t / a)
    np.testing.assert_allclose(h[t] / h[0], wave, atol=1e-6)


def test_a_morlet_correlation_is_a_gaussian_band():
    f = torch.linspace(-0.5, 0.5, 101)
    band = Gaussian(6 / (2 * math.pi * 9), 1 / (2 * math.pi * 9))
    torch.testing.assert_close(MorletCorrelation(9.0).response(f), band.response(f))


@AT
def test_a_causal_cut_is_the_convolution_with_the_first_lags(n):
    inner, taps = Gaussian([0.05, 0.21], 0.03).double(), 40
    weights = inner.response(torch.fft.fftfreq(1024, dtype=torch.float64)).detach().numpy()
    k = (weights @ dft(1024)[:, :taps].conj()).real / 1024
    x = noise(2, 2, n, 3, seed=n)
    got = Causal(inner, taps)(x).detach().numpy()
    for b, h, c in np.ndindex(2, 2, 3):
        signal = x[b, h, :, c].numpy()
        np.testing.assert_allclose(got[b, h, :, c], np.convolve(signal, k[h])[:n], atol=1e-12)
        np.testing.assert_allclose(got[b, h, :, c], scipy.signal.lfilter(k[h], 1, signal), atol=1e-12)


@pytest.mark.parametrize("make", [Morlet, lambda: Causal(Gaussian(0.05, 0.03), 40), lambda: SlidingDFT(Gaussian(), 50)])
def test_the_response_of_a_causal_filter_is_what_scipy_finds_in_its_taps(make):
    filter = make().double()
    f = torch.linspace(-0.5, 0.5, 101, dtype=torch.float64)
    _, expected = scipy.signal.freqz(filter.kernel()[0].detach().numpy(), worN=2 * np.pi * f.numpy())
    assert_close(filter.response(f), expected[None])


@AT
@pytest.mark.parametrize("window", [1, 6, 33])
def test_the_sliding_dft_is_the_dft_of_every_trailing_window_read_at_its_last_token(n, window):
    """Restated literally: take the last `window` tokens (silence first), np.fft, weigh, back, keep the last sample."""
    x = noise(2, n, seed=n).numpy()
    weights = gaussian(np.fft.fftfreq(window), 0.1, 0.07)
    expected = np.zeros_like(x)
    for b, t in np.ndindex(x.shape):
        last = np.concatenate([np.zeros(window), x[b]])[t + 1 : t + 1 + window]
        expected[b, t] = np.fft.ifft(np.fft.fft(last) * weights).real[-1]
    inner = Gaussian(0.1, 0.07).double()
    inner.centre.logit.data = torch.logit(torch.tensor([[0.2]], dtype=torch.float64))
    got = SlidingDFT(inner, window)(torch.from_numpy(x)[:, None, :, None])
    assert_close(got[:, 0, :, 0], expected)


def causal_filters() -> dict[str, Filter]:
    band = Gaussian([0.05, 0.2], 0.03)
    return {
        "morlet": Morlet([4.0, 8.0], taps=20), "causal": Causal(band, 20), "sliding": SlidingDFT(band, 20),
        "bell": CausalGaussian([4.0, 8.0], taps=20), "hat": CausalMexicanHat([4.0, 8.0], taps=20),
        "unit": Unit(Causal(band, 20)), "bank": Bank(Morlet(4.0), Causal(band, 9)), "residual": Residual(Causal(band)),
        "of a bank": Causal(Bank(band, MexicanHat(0.1)), 20), "of a pair": Causal(Analytic(band), 20),
    }  # fmt: skip


@pytest.mark.parametrize("name", causal_filters())
@pytest.mark.parametrize("n", [1, 2, 7, 64])
@PRECISIONS
def test_causal_filters_hear_nothing_of_the_future(name, n, dtype):
    """Exactly nothing: not a bit of any earlier output moves, whatever comes later."""
    filter = causal_filters()[name].to(dtype)
    x = noise(2, 2, n, 3, dtype=dtype)
    y = filter(x)
    assert y.shape[:3] == x.shape[:3] and y.isfinite().all() and y.abs().max() > 0
    for t in range(n - 1):
        changed = x.clone()
        changed[:, :, t + 1 :] = 1e6 * noise(2, 2, n - 1 - t, 3, dtype=dtype, seed=t)
        assert torch.equal(filter(changed)[:, :, : t + 1], y[:, :, : t + 1])


@pytest.mark.parametrize("name", causal_filters())
def test_causal_filters_hear_a_prefix_as_they_hear_the_whole(name):
    filter, x = causal_filters()[name].double(), noise(1, 2, 50, 2)
    for n in (1, 2, 19, 20, 21, 49):
        assert_close(filter(x[:, :, :n]), filter(x)[:, :, :n].detach().numpy())


# lengths and taps on both sides of all that decides how a convolution is computed: 4 taps, blocks of 32 tokens
SWITCHES = pytest.mark.parametrize(
    "n, taps", [(1, 3), (3, 4), (3, 9), (31, 4), (31, 5), (32, 31), (33, 32), (33, 33), (65, 40), (100, 128), (128, 64)]
)  # fmt: skip
KERNELS = pytest.mark.parametrize("count, heads", [(1, 2), (3, 1), (2, 2)])


@SWITCHES
@KERNELS
@PRECISIONS
def test_convolutions_are_dense_toeplitz_matrices_and_so_are_their_gradients(n, taps, count, heads, dtype):
    x, kernels = noise(3, 2, n, 2, dtype=dtype, seed=n), noise(count, heads, taps, dtype=dtype, seed=taps)
    weight = noise(3, 2, n, count * 2, dtype=dtype, seed=1)
    y = convolve(x.requires_grad_(), kernels.requires_grad_())
    dx, dk = torch.autograd.grad((y * weight).sum(), [x, kernels])

    signal, taps_of = x.detach().double().numpy(), kernels.detach().double().expand(-1, 2, -1).numpy()
    w = weight.double().numpy().reshape(3, 2, n, count, 2)
    m = np.stack([[toeplitz(h, n) for h in k] for k in taps_of])  # (K, heads, n, n)
    assert_close(y, np.einsum("khts,bhsd->bhtkd", m, signal).reshape(y.shape), dtype)
    assert_close(dx, np.einsum("khts,bhtkd->bhsd", m, w), dtype)
    moved = np.einsum("bhtkd,bhsd->khts", w, signal)  # by each entry of m; a tap has a diagonal of them
    by_tap = np.stack([np.trace(moved, -lag, 2, 3) for lag in range(taps)], -1)  # 0 of a tap beyond the text
    assert_close(dk, by_tap if heads == 2 else by_tap.sum(1, keepdims=True), dtype)


@SWITCHES
@KERNELS
@PRECISIONS
def test_not_a_bit_of_a_convolution_comes_from_the_future(n, taps, count, heads, dtype):
    """Nor of its gradient, by the outputs up to a token, with respect to a later one."""
    x, kernels = noise(2, 2, n, 3, dtype=dtype), noise(count, heads, taps, dtype=dtype)
    y = convolve(x, kernels)
    for t in range(n - 1):
        changed = x.clone()
        changed[:, :, t + 1 :] = 1e6 * noise(2, 2, n - 1 - t, 3, dtype=dtype, seed=t)
        changed.requires_grad_()
        early = convolve(changed, kernels)[:, :, : t + 1]
        assert torch.equal(early, y[:, :, : t + 1])
        (dx,) = torch.autograd.grad(early.square().sum(), changed)
        assert (dx[:, :, t + 1 :] == 0).all() and (dx[:, :, t] != 0).all()


@pytest.mark.parametrize("taps", [2, 4, 5, 128])
def test_the_memory_of_a_convolution_grows_as_the_text(taps):
    """All that is kept for the gradient, and the largest tensor that is made on the way."""

    class Made(TorchDispatchMode):
        most = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            self.most = max([self.most, *(t.numel() for t in tree_leaves(out) if t is not None)])
            return out

    def memory(n: int) -> tuple[int, int]:
        x, kernel, kept = noise(1, 2, n, 3).requires_grad_(), noise(2, 2, taps).requires_grad_(), {}
        keep = lambda t: kept.update({t.data_ptr(): t.numel()}) or t  # noqa: E731
        with Made() as made, torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            convolve(x, kernel).sum().backward()
        return sum(kept.values()), made.most

    (kept, largest), (most_kept, most) = memory(1024), memory(4096)
    assert kept < most_kept <= 4 * kept and largest < most <= 4 * largest


def test_two_sided_filters_do_hear_the_future():
    """So that the test above can fail."""
    x = noise(1, 1, 16, 1)
    changed = x.clone()
    changed[:, :, -1] += 1
    for filter in (Gaussian(), MexicanHat(), Tone(), RandomBands(), Analytic(Causal(Gaussian()))):
        assert (filter(changed) - filter(x))[:, :, :8].abs().max() > 1e-9


# Combinators


@AT
def test_unit_divides_by_the_norm_of_the_impulse_response(n):
    inner = Gaussian([0.05, 0.21], 0.03).double()
    norm = np.linalg.norm(inner.impulse(1024).detach().numpy(), axis=-1)
    x, filter = noise(2, 2, n, 3), Unit(inner, gain=2.5)
    scale = 2.5 / norm[:, None]
    assert_close(filter(x), (scale[..., None] * inner(x).detach().numpy()))
    assert_close(filter.impulse(n), scale * inner.impulse(n).detach().numpy())
    f = torch.fft.rfftfreq(n, dtype=torch.float64)
    assert_close(filter.response(f), scale * inner.response(f).detach().numpy())


@pytest.mark.parametrize(
    "inner", [AllPass(), Gaussian(0.25, 0.05), MexicanHat(0.1), Morlet(4.0, taps=40), Causal(Gaussian(0.1, 0.05), 40),
              Bank(Gaussian(0.2, 0.04), Gaussian(0.3, 0.04)), Analytic(Gaussian(0.25, 0.05)),
              Residual(Gaussian(0.25, 0.05))], ids=lambda f: type(f).__name__,
)  # fmt: skip
def test_unit_has_norm_one_at_every_length_that_holds_the_response(inner):
    for n in (64, 255, 256, 1024, 2000):
        assert Unit(inner).impulse(n).abs().square().sum().item() == pytest.approx(1, abs=1e-4)


def test_the_gain_does_not_depend_on_the_length():
    """A constant, once it fills the taps, is multiplied by the same number in a text of any length."""
    hat, cut = Unit(Gaussian(0.02, 0.02)).double(), Unit(Causal(Gaussian(0.02, 0.02), 30)).double()
    for filter in (hat, cut):
        gains = [filter(torch.ones(1, 1, n, 1, dtype=torch.float64))[0, 0, -1, 0].item() for n in (30, 31, 64, 777)]
        assert gains == pytest.approx([gains[0]] * 4, rel=1e-6)


def test_unit_keeps_the_variance_of_white_noise():
    x = noise(32, 2, 512, 8)
    for inner in (Gaussian([0.05, 0.2], 0.03), Morlet([4.0, 8.0]), Causal(MexicanHat([0.05, 0.2]))):
        power = Unit(inner.double())(x).square().mean((0, 2, 3)) * (2 if isinstance(inner, Morlet) else 1)  # of a pair
        assert power.tolist() == pytest.approx([1, 1], abs=0.05)


def test_a_bank_scores_the_mean_of_its_filters_scores():
    """No cross terms: filter(q) . filter(k) is the mean over filters of their own q . k."""
    q, k = noise(2, 3, 21, 4), noise(2, 3, 21, 4, seed=1)
    bands = Gaussian([0.05, 0.1, 0.2], 0.03), Gaussian(0.3, 0.02)
    for several in (bands, (AllPass(), Morlet(4.0), Analytic(MexicanHat())), (*bands, Causal(bands[0], 9))):
        bank = Bank(*several)
        scores = [f(q) @ f(k).mT for f in several]
        assert_close(bank(q) @ bank(k).mT, (sum(scores) / len(scores)).detach().numpy())


@AT
def test_a_bank_of_circular_filters_stacks_circulant_matrices(n):
    bank = Bank(Gaussian(0.05, 0.03), MexicanHat([0.1, 0.2])).double()
    f = torch.fft.fftfreq(n, dtype=torch.float64)
    weights = [bank.filters[0].response(f).expand(2, -1), bank.filters[1].response(f)]
    matrices = [np.stack([circulant(w.detach().numpy()).real for w in pair]) / math.sqrt(2) for pair in weights]
    assert_filters(bank, matrices, n, torch.float64)
    assert_close(bank.impulse(n), np.stack(matrices)[..., 0])


@AT
def test_the_analytic_pair_is_scipys(n):
    x = noise(2, 2, n, 3)
    pair = scipy.signal.hilbert(x.numpy(), axis=2)
    assert_close(Analytic(AllPass())(x), np.concatenate([pair.real, pair.imag], -1))
    band = Gaussian([0.05, 0.2], 0.03).double()
    pair = scipy.signal.hilbert(band(x).detach().numpy(), axis=2)
    assert_close(Analytic(band)(x), np.concatenate([pair.real, pair.imag], -1))


@AT
def test_residual_adds_the_identity(n):
    inner, x = Causal(Gaussian([0.05, 0.2], 0.03), 30).double(), noise(2, 2, n, 3)
    matrix = np.stack([np.eye(n) + toeplitz(k, n) for k in inner.kernel().detach().numpy()])
    assert_filters(Residual(inner), [matrix], n, torch.float64)
    assert AllPass()(x) is x


# Learned frequencies


@pytest.mark.parametrize(
    "make", [lambda: Gaussian([0.1, 0.2], 0.03, learn=True), lambda: MexicanHat([0.1, 0.2], learn=True),
             lambda: Morlet([6.0, 8.0], learn=True), lambda: MorletCorrelation([6.0, 8.0], learn=True)],
    ids=["Gaussian", "MexicanHat", "Morlet", "MorletCorrelation"],
)  # fmt: skip
@pytest.mark.parametrize("around", [lambda f: f, Unit, SlidingDFT, Analytic, lambda f: Bank(f, AllPass())])
def test_learned_frequencies_learn_and_never_leave_their_range(make, around):
    inner = make()
    filter, x = around(inner), noise(1, 2, 33, 2, dtype=torch.float32)
    loss = (filter(x) * noise(*filter(x).shape, dtype=torch.float32, seed=1)).sum()
    (gradient,) = torch.autograd.grad(loss, [p for p in filter.parameters()])
    assert gradient.shape == (2, 1) and (gradient != 0).all() and gradient.isfinite().all()
    for step in (-1e9, 1e9):
        with torch.no_grad():
            inner.centre.logit.fill_(step)
        assert ((inner.centre() > 0) & (inner.centre() < 0.5)).all()
        assert filter(x).isfinite().all()


def test_the_gradient_of_a_learned_frequency_is_that_of_finite_differences():
    filter, x, y = Unit(Gaussian(0.1, 0.03, learn=True)).double(), noise(1, 1, 33, 2), noise(1, 1, 33, 2, seed=1)
    (p,) = filter.parameters()

    def loss(logit):
        return (torch.func.functional_call(filter, {"inner.centre.logit": logit}, x) * y).sum()

    assert torch.autograd.gradcheck(loss, [p.detach().clone().requires_grad_()])


def test_fixed_frequencies_have_nothing_to_learn():
    for filter in shelf().values():
        assert not [p for p in filter.parameters() if p.requires_grad]


def test_a_frequency_starts_where_it_is_told():
    for f in (1e-4, 4 / 256, 0.25, 0.499):
        assert Gaussian(f, learn=True).centre().item() == pytest.approx(f, rel=1e-5)
    assert Morlet(8.0, omega0=5.0).centre().item() == pytest.approx(5 / (2 * math.pi * 8), rel=1e-6)
    assert Gaussian(0.1, heads=3).centre().flatten().tolist() == pytest.approx([0.1] * 3)


# The contract of the shelf


SHELF = pytest.mark.parametrize("name", shelf())


def test_every_public_filter_is_on_the_shelf():
    public, defined = set(), set()
    for module in (filters, combinators):
        found = {n for n, c in vars(module).items() if inspect.isclass(c) and issubclass(c, Filter) and n[0] != "_"}
        public |= found & set(module.__all__)
        defined |= found
    assert defined == public
    assert public - {"Filter", "CircularFilter", "CausalFilter"} == set(shelf())


def parts(impulse: torch.Tensor) -> torch.Tensor:
    """(K, heads, n) real or complex -> (features, heads, n): real and imaginary parts in turn."""
    h = impulse.reshape(-1, *impulse.shape[-2:])
    return torch.stack([h.real, h.imag], 1).flatten(0, 1) if h.is_complex() else h


@SHELF
@pytest.mark.parametrize("n", [1, 2, 7, 64, 255])
def test_the_reply_to_a_delta_is_the_impulse(name, n):
    filter = shelf()[name].double()
    delta = torch.zeros(1, 1, n, 1, dtype=torch.float64)
    delta[:, :, 0] = 1
    assert_close(filter(delta)[0].permute(2, 0, 1), parts(filter.impulse(n)).detach().numpy())


@SHELF
@AT
def test_impulse_and_response_are_a_fourier_pair(name, n):
    """Over n tokens; of a causal filter with more taps than n, over the taps."""
    filter = shelf()[name].double()
    n = n + 256 if hasattr(filter, "kernel") else n
    f = torch.fft.fftfreq(n, dtype=torch.float64)
    assert_close(filter.response(f), torch.fft.fft(filter.impulse(n)).detach().numpy())


@SHELF
@AT
def test_filters_are_linear(name, n):
    filter, x, y = shelf()[name].double(), noise(2, 3, n, 2), noise(2, 3, n, 2, seed=1)
    assert_close(filter(2 * x - 3 * y), (2 * filter(x) - 3 * filter(y)).detach().numpy())


@SHELF
@AT
def test_filters_are_time_invariant(name, n):
    """A circular filter of a rotated text is the rotated result; a causal one waits for the text to begin."""
    filter, x = shelf()[name].double(), noise(2, 3, n, 2)
    if isinstance(filter, CausalFilter):
        late = torch.cat([torch.zeros(2, 3, 3, 2, dtype=torch.float64), x], 2)
        y = filter(late)
        assert (y[:, :, :3] == 0).all()
        assert_close(y[:, :, 3:], filter(x).detach().numpy())
    else:
        assert_close(filter(x.roll(3, 2)), filter(x).roll(3, 2).detach().numpy())


@SHELF
def test_responses_on_two_grids_agree_where_they_meet(name):
    """Of a Tone, which is one bin of the running n, where both grids hold its frequency."""
    filter = shelf()[name].double()
    for n in (64, 256):
        f, g = (torch.fft.rfftfreq(m, dtype=torch.float64) for m in (n, 2 * n))
        assert_close(filter.response(g)[..., ::2], filter.response(f).detach().numpy())


@SHELF
@PRECISIONS
def test_filters_take_random_shapes_and_keep_the_precision(name, dtype):
    filter, rng = shelf()[name].to(dtype), np.random.default_rng(0)
    for b, heads, n, d in rng.integers(1, 12, (8, 4)).tolist():
        y = filter(noise(b, heads, n, d, dtype=dtype))
        assert y.shape[:3] == (b, heads, n) and y.shape[3] % d == 0 and y.dtype == dtype


@SHELF
@AT
def test_float32_is_close_to_float64(name, n):
    filter, x = shelf()[name], noise(2, 3, n, 2)
    y = filter(x.float())
    assert_close(y, filter.double()(x).detach().numpy(), torch.float32)


@SHELF
@pytest.mark.parametrize("autocast", [False, True])
def test_bfloat16_signals_are_filtered_in_float32(name, autocast):
    """The one error is that of rounding the result."""
    filter, x = shelf()[name], noise(2, 3, 200, 4, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        y = filter(x)
    expected = filter(x.float()).detach()
    assert y.dtype == torch.bfloat16
    assert ((y - expected).abs() <= 2**-8 * expected.abs() + 1e-6).all()


@SHELF
def test_copies_share_nothing(name):
    filter = Unit(shelf()[name])
    twin = copy.deepcopy(filter)
    mine, other = ({t.data_ptr() for t in (*f.parameters(), *f.buffers()) if t.numel()} for f in (filter, twin))
    assert not mine & other
    x = noise(1, 2, 9, 2, dtype=torch.float32)
    assert torch.equal(filter(x), twin(x))


def test_the_shelf_shares_nothing_between_its_filters():
    seen = [id(m) for f in shelf().values() for m in f.modules()]
    assert len(seen) == len(set(seen))


@SHELF
def test_a_state_dict_brings_a_filter_back(name):
    filter, x = shelf()[name], noise(1, 2, 9, 2, dtype=torch.float32)
    with torch.no_grad():
        for p in filter.parameters():
            p.add_(0.3)
    fresh = shelf()[name]
    fresh.load_state_dict(filter.state_dict())
    assert torch.equal(fresh(x), filter(x))
    assert not [p for p in filter.parameters()] or not torch.equal(shelf()[name](x), filter(x))


# What a filter prints


@SHELF
def test_a_filter_prints_itself_in_one_line(name):
    line = repr(shelf()[name])
    assert line.startswith(f"{name}(") and line.endswith(")") and "\n" not in line and len(line) < 120


LINES = [
    (Gaussian(1 / 16, 1 / 64, learn=True), "Gaussian(freq=0.0625, width=0.0156, learned)"),
    (Gaussian([0.05, 0.2, 0.1], 1 / 64), "Gaussian(freq=0.05..0.2, width=0.0156)"),
    (Gaussian([0.1, 0.10001], 0.5), "Gaussian(freq=0.1, width=0.5)"),
    (MexicanHat(1 / 16, heads=4), "MexicanHat(freq=0.0625)"),
    (Tone(0.5), "Tone(freq=0.5)"),
    (CausalGaussian([2.0, 32.0], taps=1000), "CausalGaussian(scale=2..32, taps=1000)"),
    (Morlet(8.0, omega0=6), "Morlet(freq=0.119, scale=8, omega0=6, taps=128)"),
    (MorletCorrelation(8.0, learn=True), "MorletCorrelation(freq=0.119, scale=8, omega0=6, learned)"),
    (Unit(SlidingDFT(Gaussian(1 / 16, 1 / 64), window=128), gain=2.5),
     "Unit(SlidingDFT(Gaussian(freq=0.0625, width=0.0156), window=128), gain=2.5)"),
    (Bank(MexicanHat(0.05), MexicanHat([0.1, 0.2])), "Bank(2 x MexicanHat(freq=0.05..0.2))"),
    (Bank(MexicanHat(0.05), MexicanHat(0.1, learn=True)), "Bank(MexicanHat(freq=0.05), MexicanHat(freq=0.1, learned))"),
    (Bank(Unit(Tone(0.1)), Unit(Tone(0.2))), "Bank(Unit(Tone(freq=0.1), gain=1), Unit(Tone(freq=0.2), gain=1))"),
]  # fmt: skip


@pytest.mark.parametrize(("filter", "line"), LINES, ids=[line.partition("(")[0] for _, line in LINES])
def test_the_line_names_the_values(filter, line):
    assert repr(filter) == line


def test_the_line_follows_what_is_learned():
    filter = Morlet(8.0, learn=True)
    filter.centre.logit.data.fill_(0)
    assert repr(filter) == "Morlet(freq=0.25, scale=3.82, omega0=6, taps=128, learned)"


# Errors


def complain() -> dict:
    x, band = torch.zeros(1, 2, 5, 3), Gaussian()
    zero = CircularFilter()
    zero.response = lambda f: torch.zeros_like(f)[None]
    return {
        "no taps": (lambda: Morlet(taps=0), "taps = 0"),
        "fractional taps": (lambda: Causal(band, 2.5), "taps = 2.5"),
        "more taps than the grid": (lambda: Causal(band, 1025), "at most 1024"),
        "no window": (lambda: SlidingDFT(band, 0), "window = 0"),
        "infinite window": (lambda: SlidingDFT(band, math.inf), "window = inf"),
        "frequency 0": (lambda: Gaussian(0.0), "inside (0, 1/2)"),
        "frequency Nyquist": (lambda: MexicanHat(0.5), "inside (0, 1/2)"),
        "frequency NaN": (lambda: Gaussian(math.nan), "inside (0, 1/2)"),
        "one frequency of two": (lambda: Gaussian([0.1, 0.7]), "inside (0, 1/2)"),
        "Morlet beyond Nyquist": (lambda: Morlet(1.0), "scale above omega0 / pi"),
        "Morlet without turns": (lambda: Morlet(8.0, omega0=0.0), "omega0 > 0"),
        "no scale": (lambda: CausalGaussian(0.0), "scale [0.0]"),
        "scale NaN": (lambda: CausalMexicanHat([2.0, math.nan]), "above 0"),
        "infinite scale": (lambda: CausalGaussian(math.inf), "above 0"),
        "no taps of a bell": (lambda: CausalGaussian(taps=0), "taps = 0"),
        "correlation beyond Nyquist": (lambda: MorletCorrelation(1.0), "scale above omega0 / pi"),
        "tone beyond Nyquist": (lambda: Tone(0.6), "[0, 1/2]"),
        "width 0": (lambda: Gaussian(0.1, 0.0), "bandwidth 0.0"),
        "width NaN": (lambda: Gaussian(0.1, math.nan), "bandwidth nan"),
        "values for other heads": (lambda: Gaussian([0.1, 0.2], heads=3), "2 values for 3 heads"),
        "no values": (lambda: Gaussian([]), "0 values"),
        "no heads": (lambda: RandomBands(0), "heads = 0"),
        "no heads of a band": (lambda: Gaussian(heads=0), "heads = 0"),
        "period 2": (lambda: period(2), "above 2"),
        "period NaN": (lambda: period(math.nan), "above 2"),
        "no bins": (lambda: bins(1, 0), "n = 0 must be a whole number, at least 1"),
        "gain 0": (lambda: Unit(band, gain=0), "gain 0"),
        "zero response": (lambda: Unit(zero), "zero response"),
        "empty bank": (lambda: Bank(), "at least one"),
        "bank of 2 and 3 heads": (lambda: Bank(Gaussian(heads=2), Gaussian(heads=3)), "[2, 3] heads"),
        "residual of a pair": (lambda: Residual(Morlet()), "Bank(AllPass(), inner)"),
        "residual of a bank": (lambda: Residual(Bank(band, band)), "Bank(AllPass(), inner)"),
        "heads of a circular filter": (lambda: Gaussian(heads=3)(x), "build it with heads=2"),
        "heads of a causal filter": (lambda: Causal(Gaussian(heads=3))(x), "build it with heads=2"),
        "heads of a pair": (lambda: Analytic(Gaussian(heads=3))(x), "build it with heads=2"),
    }


@pytest.mark.parametrize("case", complain())
def test_bad_arguments_are_explained(case):
    act, words = complain()[case]
    with pytest.raises(ValueError) as error:
        act()
    assert words in str(error.value)


@SHELF
@pytest.mark.parametrize(
    "shape, dtype", [((5, 3), torch.float32), ((1, 2, 3, 5, 3), torch.float32), ((1, 2, 0, 3), torch.float32),
                     ((1, 2, 5, 3), torch.long), ((1, 2, 5, 3), torch.complex64)],
)  # fmt: skip
def test_what_is_no_signal_is_refused(name, shape, dtype):
    with pytest.raises(ValueError, match=r"\(batch, heads, time, d\)"):
        shelf()[name](torch.zeros(shape, dtype=dtype))


@SHELF
def test_an_impulse_over_no_tokens_is_refused(name):
    for n in (0, -3):
        with pytest.raises(ValueError, match=f"n = {n}"):
            shelf()[name].impulse(n)


def test_periods_and_bins_convert():
    assert period(64) == 1 / 64 and bins(4, 256) == 4 / 256 and bins(0.5, 1) == 0.5


def test_abstract_filters_promise_only():
    x = torch.zeros(1, 1, 1, 1)
    for filter in (Filter(), CausalFilter(), CircularFilter()):
        with pytest.raises(NotImplementedError):
            filter(x)
        with pytest.raises(NotImplementedError):
            filter.impulse(1)
    assert isinstance(Filter(), nn.Module)


@SHELF
def test_a_half_precision_filter_is_as_precise_as_float32(name):
    x = torch.randn(1, 1, 32, 2, generator=torch.Generator().manual_seed(0))
    whole = shelf()[name]
    half = copy.deepcopy(whole).bfloat16()
    torch.testing.assert_close(half(x), whole(x), rtol=0, atol=0.05 * whole(x).abs().max().item())
    assert half.impulse(8).real.dtype == torch.float32 or name == "AllPass"


@pytest.mark.parametrize("shape", [(0, 1, 4, 2), (1, 0, 4, 2), (1, 1, 0, 2), (1, 1, 4, 0)])
def test_an_empty_signal_is_refused(shape):
    for f in shelf().values():
        with pytest.raises(ValueError, match="none of them 0"):
            f(torch.zeros(shape))


def test_a_response_without_heads_says_what_to_add():
    class Flat(CircularFilter):
        def response(self, f):
            return f

    with pytest.raises(ValueError, match=r"h\[None\]"):
        Flat()(torch.randn(1, 2, 8, 3))
