"""What is drawn at random, what is added, and the gain of a tone: each against its formula in numpy."""
import copy
import math

import numpy as np
import pytest
import scipy.signal
import torch

from fourierqk.combinators import Analytic, Bank, Causal, Padded, PhaseRandomised, Residual, SlidingDFT, Sum, Unit
from fourierqk.filters import AllPass, Gaussian, MexicanHat, Morlet, RandomBands, Tone

LENGTHS = pytest.mark.parametrize("n", [1, 2, 7, 33, 64, 128, 255, 256, 1500])


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def spectrum(x: torch.Tensor) -> np.ndarray:
    return np.fft.rfft(x.detach().numpy(), axis=-2)


# The gain of a tone


@LENGTHS
@pytest.mark.parametrize("freq", [0.0, 1 / 64, 0.2, 0.5])
def test_a_tone_keeps_its_gain_at_any_length(n, freq):
    """White noise leaves with its variance: over all shifts of a delta, the energy of the reply is 1."""
    filter = Unit(Tone(freq), gain=2.0).double()
    assert filter.impulse(n).square().sum().item() == pytest.approx(4, rel=1e-9)
    delta = torch.zeros(1, 1, n, 1, dtype=torch.float64)
    delta[:, :, n // 2] = 1
    assert filter(delta).square().sum().item() == pytest.approx(4, rel=1e-9)
    f = torch.fft.fftfreq(n, dtype=torch.float64)
    np.testing.assert_allclose(filter.response(f), np.fft.fft(filter.impulse(n)).real, atol=1e-9)


@pytest.mark.parametrize("n, factor", [(1, 1), (8, math.sqrt(8)), (9, math.sqrt(9))])
def test_a_dc_tone_of_gain_one_is_the_mean_times_the_root_of_the_length(n, factor):
    x = noise(1, 1, n, 2)
    expected = factor * x.mean(2, keepdim=True).expand(-1, -1, n, -1)
    torch.testing.assert_close(Unit(Tone(0)).double()(x), expected)


@pytest.mark.parametrize(
    "around", [lambda t: Unit(Unit(t)), lambda t: Unit(Bank(t, Tone(0.2))), lambda t: Unit(Analytic(t)),
               lambda t: Unit(Sum(t, Tone(0.2))), lambda t: Unit(PhaseRandomised(t)).eval(),
               lambda t: Unit(Residual(t))],
    ids=["unit", "bank", "analytic", "sum", "phases", "residual"],
)  # fmt: skip
def test_so_does_what_is_made_of_tones(around):
    for n in (5, 64, 128, 255):
        assert around(Tone(0.02)).double().impulse(n).abs().square().sum().item() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("make", [Causal, SlidingDFT])
def test_a_tone_cut_to_a_kernel_has_the_gain_of_the_kernel(make):
    for n in (128, 300):
        assert Unit(make(Tone(0.1), 128)).double().impulse(n).square().sum().item() == pytest.approx(1, rel=1e-9)


# Sums


@LENGTHS
def test_a_sum_is_one_filter_whose_responses_add(n):
    a, b, c = Gaussian([0.05, 0.2], 0.03).double(), MexicanHat(0.1).double(), Causal(Gaussian(0.1, 0.05), 9).double()
    x = noise(2, 2, n, 3)
    for several in ((a, b), (a, c), (a,), (AllPass(), b, c)):
        torch.testing.assert_close(Sum(*several)(x), sum(h(x) for h in several))


def test_the_score_of_a_sum_has_a_cross_term_for_each_pair():
    a, b, q, k = Gaussian(0.1, 0.05).double(), MexicanHat(0.2).double(), noise(1, 1, 33, 4), noise(1, 1, 33, 4, seed=1)
    score = lambda f, g: f(q) @ g(k).mT  # noqa: E731
    expected = score(a, a) + score(b, b) + score(a, b) + score(b, a)
    torch.testing.assert_close(score(Sum(a, b), Sum(a, b)), expected)
    without = Bank(a, b)
    torch.testing.assert_close(2 * score(without, without), score(a, a) + score(b, b))


def test_a_sum_says_what_it_cannot_add():
    for wrong in (Morlet(), Bank(Gaussian(), Gaussian())):
        with pytest.raises(ValueError, match="must be real and keep d"):
            Sum(Gaussian(), wrong)
    with pytest.raises(ValueError, match="a sum needs at least one"):
        Sum()
    with pytest.raises(ValueError, match=r"of a sum have \[2, 3\] heads"):
        Sum(Gaussian(heads=2), Gaussian(heads=3))


# Random phases


BAND = Gaussian([0.05, 0.2], 0.08)


def phases(heads: int = 2, seed: int = 0) -> PhaseRandomised:
    return PhaseRandomised(copy.deepcopy(BAND), heads, seed).double()


@LENGTHS
@pytest.mark.parametrize("training", [True, False])
def test_amplitudes_are_those_of_the_band_and_dc_and_nyquist_keep_their_sign(n, training):
    filter, band, x = phases().train(training), copy.deepcopy(BAND).double(), noise(2, 2, n, 3)
    torch.manual_seed(1)
    before, after = spectrum(band(x)), spectrum(filter(x))
    np.testing.assert_allclose(np.abs(after), np.abs(before), atol=1e-10)
    np.testing.assert_allclose(after[..., 0, :], before[..., 0, :], atol=1e-10)
    if n % 2 == 0:
        np.testing.assert_allclose(after[..., -1, :], before[..., -1, :], atol=1e-10)
    if n > 2:
        assert np.abs(after - before).max() > 0.1


@pytest.mark.parametrize("n", [7, 33, 64, 256])
@pytest.mark.parametrize("training", [True, False])
def test_angles_differ_by_head_and_bin_and_are_shared_by_rows_and_channels(n, training):
    x = noise(3, 2, n, 4)
    with np.errstate(all="ignore"):
        turn = spectrum(phases().train(training)(x)) / spectrum(copy.deepcopy(BAND).double()(x))
    inner = np.angle(turn)[:, :, 1 : (n + 1) // 2]  # no DC, no Nyquist
    shared = np.broadcast_to(np.exp(1j * inner[:1, :, :, :1]), inner.shape)
    np.testing.assert_allclose(np.exp(1j * inner), shared, atol=1e-6)
    angles = inner[0, :, :, 0].ravel()
    assert len(np.unique(angles.round(6))) == len(angles)


def test_angles_are_uniform():
    """Of 2000 heads at one bin: mean resultant below 4 standard errors, and so for the doubled angle."""
    for filter in (PhaseRandomised(AllPass(), 2000).eval(), PhaseRandomised(AllPass(), 2000).train()):
        torch.manual_seed(0)
        delta = torch.zeros(1, 2000, 16, 1, dtype=torch.float64)
        delta[:, :, 0] = 1
        angle = np.angle(spectrum(filter(delta))[0, :, 3, 0])
        for k in (1, 2):
            assert np.abs(np.exp(1j * k * angle).mean()) < 4 / math.sqrt(2000)


def test_in_training_every_forward_draws_anew_from_torchs_generator():
    filter, x = phases().train(), noise(1, 2, 33, 2)
    torch.manual_seed(3)
    a, b = filter(x), filter(x)
    torch.manual_seed(3)
    assert not torch.equal(a, b) and torch.equal(filter(x), a) and torch.equal(filter(x), b)


def test_queries_and_keys_share_a_draw():
    filter, x = phases().train(), noise(1, 2, 33, 2)
    q, k = filter.together(x, x)
    again, _ = filter.together(x, x)
    assert torch.equal(q, k) and not torch.equal(q, again) and not torch.equal(filter(x), filter(x))


def test_evaluation_is_reproducible_and_leaves_the_generator_alone():
    filter, x = phases(seed=4).eval(), noise(1, 2, 33, 2)
    state = torch.get_rng_state()
    q, k = filter.together(x, x)
    assert torch.equal(q, k) and torch.equal(phases(seed=4).eval()(x), q)
    assert not torch.equal(phases(seed=5).eval()(x), q)
    assert torch.equal(torch.get_rng_state(), state)
    loaded = phases(seed=4).eval()
    loaded.load_state_dict(filter.state_dict())
    assert torch.equal(loaded(x), q)


def test_response_and_impulse_are_those_of_evaluation_whatever_the_mode():
    for n in (33, 64):
        delta = torch.zeros(1, 2, n, 1, dtype=torch.float64)
        delta[:, :, 0] = 1
        filter = phases()
        impulse = filter.train().impulse(n)
        torch.testing.assert_close(filter.eval()(delta)[0, :, :, 0], impulse)
        f = torch.fft.fftfreq(n, dtype=torch.float64)
        torch.testing.assert_close(filter.train().response(f), torch.fft.fft(impulse))


def test_gradients_pass_random_phases():
    filter = PhaseRandomised(Unit(Gaussian([0.1, 0.2], 0.05, learn=True)), heads=2).train()
    x = noise(1, 2, 33, 2).float()
    (filter(x) * noise(1, 2, 33, 2, seed=1).float()).sum().backward()
    (p,) = filter.parameters()
    assert (p.grad != 0).all() and p.grad.isfinite().all()


def test_random_phases_keep_the_gain():
    for inner in (RandomBands(2), Bank(*[MexicanHat([0.1, 0.2])] * 2)):
        filter = PhaseRandomised(Unit(inner), heads=2)
        h = filter.impulse(1024).square().sum(-1).reshape(-1, 2).sum(0)
        assert h.tolist() == pytest.approx([1, 1], rel=1e-4)
    with pytest.raises(ValueError, match="heads = 0"):
        PhaseRandomised(Gaussian(), heads=0)
    with pytest.raises(ValueError, match="build it with heads=2"):
        PhaseRandomised(Gaussian(), heads=3)(torch.zeros(1, 2, 5, 3))


@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_padded_convolves_on_the_line(n):
    """By scipy: all lags of the kernel of twice the length, those to the future too, and nothing across the ends."""
    x = torch.randn(2, 1, n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    band = Gaussian(0.1, 0.05).double()
    kernel = np.roll(band.impulse(2 * n)[0].numpy(), n)  # lags -n .. n - 1
    want = scipy.signal.convolve(x.numpy(), kernel[None, None, :, None])[..., n : 2 * n, :]
    np.testing.assert_allclose(Padded(band)(x).numpy(), want, atol=1e-12)
    assert Padded(band)(x.float()).dtype == torch.float32


def test_a_causal_filter_needs_no_padding():
    x, filter = torch.randn(1, 2, 30, 4, generator=torch.Generator().manual_seed(0)), Morlet([4.0, 8.0])
    torch.testing.assert_close(Padded(filter)(x), filter(x))
    with pytest.raises(ValueError, match="Padded"):
        Padded(Padded(filter))
