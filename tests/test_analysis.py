"""Surrogates against a DFT written out; coverage and reach against closed forms and brute force."""
import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fourierqk.analysis import (
    AmplitudeOnly,
    ConstantShift,
    IndependentPhase,
    SharedPhase,
    Stream,
    Surrogate,
    coverage,
    future_share,
    learned_periods,
    reach,
    surrogates,
)
from fourierqk.causality.procedure import audit
from fourierqk.channels import ChannelFilter, RandomRotation
from fourierqk.combinators import Analytic, Bank, Causal, PhaseRandomised, Residual, SlidingDFT, Unit, shelf
from fourierqk.filters import AllPass, CausalFilter, CircularFilter, Gaussian, MexicanHat, Morlet, Tone
from fourierqk.model import GPT, Attention, GPTConfig
from fourierqk.zoo import build

CFG = GPTConfig(vocab_size=5, block_size=16, n_layer=2, n_head=2, n_embd=12, dropout=0.0)
KINDS = {
    "shared": SharedPhase(3), "independent": IndependentPhase(3), "amplitude": AmplitudeOnly(),
    "shift": ConstantShift(0.7), "nothing": ConstantShift(0.0),
}  # fmt: skip
KIND = pytest.mark.parametrize("name", KINDS)
AT = pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 33])
SHELF = pytest.mark.parametrize("name", shelf())
QUERY, KEY = Stream(role=0), Stream(role=1)


def noise(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def dft(x: torch.Tensor) -> np.ndarray:
    """Along time, in float64, straight from the definition."""
    t = np.arange(x.shape[-2])
    return np.exp(-2j * np.pi * np.outer(t, t) / len(t)) @ x.detach().double().numpy()


def turns(x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    """The factor between the spectra of x and y at each bin."""
    return dft(y) / dft(x)


def ids(batch: int = 3, n: int = 16, seed: int = 0) -> torch.Tensor:
    return torch.randint(CFG.vocab_size, (batch, n), generator=torch.Generator().manual_seed(seed))


FILTERS = {
    "none": AllPass(), "band": Unit(Gaussian([0.1, 0.2], 0.08, learn=True)), "causal": Unit(Morlet([4.0, 6.0])),
    "bank": Bank(Gaussian(0.1, 0.05), AllPass(), Gaussian(0.3, 0.05)),
}  # fmt: skip


def awake(name: str = "band", cfg: GPTConfig = CFG) -> GPT:
    """A model at evaluation whose weights are large enough for attention to matter."""
    torch.manual_seed(0)
    model = GPT(cfg, FILTERS[name]).eval()
    for p in model.parameters():
        if p.dim() > 1 and p.shape[-1] > 1:
            nn.init.normal_(p, std=0.5)
    return model


# Surrogates of a signal


@KIND
@AT
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-6), (torch.float64, 1e-14)])
def test_amplitudes_stay(name, n, dtype, tolerance):
    x = noise(2, 3, n, 4, dtype=dtype)
    for stream in (QUERY, KEY, Stream(1, 1, 5)):
        y = KINDS[name](x, stream)
        assert y.dtype == dtype and y.shape == x.shape
        before, after = np.abs(dft(x)), np.abs(dft(y))
        np.testing.assert_allclose(after, before, rtol=0, atol=tolerance * n * before.max())


@pytest.mark.parametrize("name", ["shared", "independent", "shift", "nothing"])
@AT
def test_dc_and_nyquist_stay_as_they_are(name, n):
    x = noise(2, 3, n, 4)
    factor = turns(x, KINDS[name](x))
    np.testing.assert_allclose(factor[..., 0, :], 1, atol=1e-10)
    if n % 2 == 0:
        np.testing.assert_allclose(factor[..., n // 2, :], 1, atol=1e-10)


@pytest.mark.parametrize("n", [8, 33])
def test_random_angles_are_one_draw_for_all_channels_and_windows(n):
    """And another for every head, layer and seed; of a real signal, mirrored."""
    x = noise(2, 3, n, 4)
    factor = turns(x, SharedPhase(3)(x))
    np.testing.assert_allclose(factor, np.broadcast_to(factor[:1, :, :, :1], factor.shape), atol=1e-8)
    np.testing.assert_allclose(factor[:, :, 1:], factor[:, :, :0:-1].conj(), atol=1e-8)
    inside = slice(1, (n + 1) // 2)
    others = turns(x, SharedPhase(4)(x)), turns(x, SharedPhase(3)(x, Stream(layer=1))), np.roll(factor, 1, 1)
    for other in others:
        assert (np.abs(factor - other)[..., inside, :] > 1e-6).all()


def test_random_angles_are_uniform():
    x = noise(1, 1, 20001, 1)
    z, y = torch.fft.rfft(x, dim=-2), torch.fft.rfft(SharedPhase(0)(x), dim=-2)
    angle = torch.angle(y / z)[0, 0, 1:, 0].sort().values
    uniform = -math.pi + 2 * math.pi * (torch.arange(10000) + 0.5) / 10000
    assert (angle - uniform).abs().max() < 2 * math.pi * 1.9 / 100  # Kolmogorov and Smirnov, at 0.1 %


def test_queries_and_keys_share_their_angles_or_do_not():
    q, k = noise(2, 3, 9, 4), noise(2, 3, 9, 4, seed=1)
    shared, own = SharedPhase(3), IndependentPhase(3)
    np.testing.assert_allclose(turns(q, shared(q, QUERY)), turns(k, shared(k, KEY)), atol=1e-8)
    assert (np.abs(turns(q, own(q, QUERY)) - turns(k, own(k, KEY)))[..., 1:, :] > 1e-3).all()
    cross = dft(q) * dft(k).conj()
    np.testing.assert_allclose(dft(shared(q, QUERY)) * dft(shared(k, KEY)).conj(), cross, atol=1e-10)
    assert np.abs(dft(own(q, QUERY)) * dft(own(k, KEY)).conj() - cross).max() > 0.1


def test_each_training_step_draws_anew_for_every_window():
    x = noise(2, 3, 9, 4)
    first, second, again = (SharedPhase(3)(x, Stream(step=s)) for s in (1, 2, 1))
    assert torch.equal(first, again) and not torch.allclose(first, second)
    factor = turns(x, first)
    assert (np.abs(factor[0] - factor[1])[:, 1:] > 1e-3).all()
    np.testing.assert_allclose(turns(x, SharedPhase(3)(x))[0], turns(x, SharedPhase(3)(x))[1], atol=1e-8)


@AT
def test_amplitude_only_leaves_a_signal_even_about_the_first_token(n):
    y = AmplitudeOnly()(noise(2, 3, n, 4))
    torch.testing.assert_close(y, y.flip(2).roll(1, 2), rtol=0, atol=1e-12)
    np.testing.assert_allclose(dft(y).imag, 0, atol=1e-10)
    assert (dft(y).real > 0).all()
    assert (y.argmax(2) == 0).all()


@AT
def test_a_constant_shift_is_a_fractional_hilbert_transform(n):
    """Against the sum of cosines that it means."""
    x, angle, t = noise(1, 1, n, 1), 0.7, np.arange(n)
    z = dft(x)[0, 0, :, 0]
    expected = sum(
        (1 if 2 * k in (0, n) else 2) / n * np.abs(z[k])
        * np.cos(2 * np.pi * k * t / n + np.angle(z[k]) + (0 if 2 * k in (0, n) else angle))
        for k in range(n // 2 + 1)
    )  # fmt: skip
    np.testing.assert_allclose(ConstantShift(angle)(x)[0, 0, :, 0], expected, atol=1e-12)


@AT
def test_turning_back_and_by_half_a_turn(n):
    x = noise(2, 3, n, 4)
    torch.testing.assert_close(ConstantShift(-0.7)(ConstantShift(0.7)(x)), x, rtol=0, atol=1e-12)
    kept = x.mean(2, keepdim=True).expand_as(x)
    if n % 2 == 0:
        sign = (1 - 2 * (torch.arange(n) % 2)).double()[:, None]
        kept = kept + sign * (x * sign).mean(2, keepdim=True)
    torch.testing.assert_close(ConstantShift(math.pi)(x), 2 * kept - x, rtol=0, atol=1e-12)


def test_a_delay_is_not_a_constant_shift():
    """A line of angles through 0 moves a window as it is; no constant angle does, even where one wave agrees."""
    x = noise(1, 1, 9, 1)
    factor = turns(x, x.roll(2, 2))[0, 0, :, 0]
    np.testing.assert_allclose(factor, np.exp(-2j * np.pi * 2 * np.arange(9) / 9), atol=1e-9)
    shifted = ConstantShift(-2 * np.pi * 2 / 9)(x)
    assert turns(x, shifted)[0, 0, 1, 0] == pytest.approx(factor[1])
    assert (shifted - x.roll(2, 2)).abs().max() > 0.1


def test_a_constant_shift_of_an_analytic_pair_cancels_in_the_score():
    band = Analytic(MexicanHat(0.2)).double()  # stops DC; at odd n there is no Nyquist
    q, k = band(noise(1, 1, 33, 3)), band(noise(1, 1, 33, 3, seed=1))
    turn = ConstantShift(1.1)
    assert (turn(q) - q).abs().max() > 0.1
    torch.testing.assert_close(turn(q) @ turn(k).mT, q @ k.mT, rtol=0, atol=1e-10)


@KIND
@pytest.mark.parametrize("autocast", [False, True])
def test_bfloat16_is_worked_out_in_float32(name, autocast):
    """The one error is that of rounding the result."""
    x = noise(2, 3, 200, 4, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        y = KINDS[name](x)
    expected = KINDS[name](x.float())
    assert y.dtype == torch.bfloat16
    assert ((y - expected).abs() <= 2**-8 * expected.abs() + 1e-6).all()


@KIND
def test_both_precisions_draw_the_same_angles(name):
    x = noise(2, 3, 9, 4)
    torch.testing.assert_close(KINDS[name](x.float()).double(), KINDS[name](x), rtol=0, atol=1e-5)


# Surrogates inside a model


def filtered(model: GPT, x: torch.Tensor) -> list[torch.Tensor]:
    """What each attention's filter answers, queries and keys in turn, layer by layer, as attention sees it."""
    seen = []
    handles = [
        m.filter.register_forward_hook(lambda module, args, out: seen.extend(out.detach().clone().split(len(x))))
        for m in model.modules() if isinstance(m, Attention)
    ]  # fmt: skip
    with torch.no_grad():
        model(x)
    for handle in handles:
        handle.remove()
    return seen


@KIND
@pytest.mark.parametrize("filter", FILTERS)
def test_attention_compares_surrogates_of_what_it_compared(name, filter):
    """In the first layer, whose input is as before: exactly those of what its filter answers."""
    model, kind = awake(filter), KINDS[name]
    plain = filtered(model, ids())
    with surrogates(model, kind) as inside:
        assert inside is model
        turned = filtered(model, ids())
    assert len(plain) == len(turned) == 2 * CFG.n_layer
    for role in (0, 1):
        assert torch.equal(turned[role], kind(plain[role], Stream(0, role, 0)))


def test_logits_are_those_of_attention_written_out():
    """One layer of base-dot; the surrogate enters scores, and nothing else."""
    cfg = GPTConfig(vocab_size=5, block_size=9, n_layer=1, n_head=2, n_embd=8, dropout=0.0)
    model, x, kind = awake("none", cfg).double(), ids(2, 9), IndependentPhase(1)
    (block,) = model.blocks
    h = model.tokens(x) + model.positions.weight
    q, k, v = block.mixer.qkv(block.norm1(h)).reshape(2, 9, 3, 2, 4).permute(2, 0, 3, 1, 4)
    scores = kind(q, QUERY) @ kind(k, KEY).mT / 2
    weights = scores.masked_fill(torch.ones(9, 9).triu(1).bool(), -math.inf).softmax(-1)
    h = h + block.mixer.proj((weights @ v).transpose(1, 2).flatten(2))
    expected = model.head(model.norm(h + block.mlp(block.norm2(h))))
    with surrogates(model, kind):
        torch.testing.assert_close(model(x)[0], expected, rtol=0, atol=1e-10)


def state(model: nn.Module) -> list:
    """Everything a module holds, hooks included."""
    return [
        (path, type(m), sorted(vars(m)), {k: len(v) for k, v in vars(m).items() if "hooks" in k}, m.training)
        for path, m in model.named_modules()
    ]


@KIND
def test_afterwards_the_model_is_as_before(name):
    model = awake()
    before, weights, logits = state(model), copy.deepcopy(model.state_dict()), model(ids())[0]
    with surrogates(model, KINDS[name]):
        inside = model(ids())[0]
        assert model.state_dict().keys() == weights.keys()
    with pytest.raises(RuntimeError, match="the body"), surrogates(model, KINDS[name]):
        model(ids())
        raise RuntimeError("the body")
    assert (inside - logits).abs().max() < 1e-4 if name == "nothing" else (inside - logits).abs().max() > 1e-2
    assert state(model) == before and torch.equal(model(ids())[0], logits)
    assert all(torch.equal(v, weights[k]) for k, v in model.state_dict().items())


@pytest.mark.parametrize("filter", FILTERS)
def test_the_machinery_without_a_turn_is_the_identity(filter):
    model = awake(filter).double()
    with surrogates(model, ConstantShift(0.0)):
        inside = model(ids())[0]
    torch.testing.assert_close(inside, model(ids())[0], rtol=0, atol=1e-10)


def test_nothing_is_left_in_a_model_whose_attention_breaks():
    model = awake()
    logits = model(ids())[0]
    with surrogates(model, SharedPhase(0)):
        expected = model(ids())[0]
        with pytest.raises(RuntimeError):
            model.blocks[0].mixer(torch.zeros(1, 4, 7))  # not n_embd wide: between hook and filter
        assert torch.equal(model(ids())[0], expected)
    assert torch.equal(model(ids())[0], logits)


def test_contexts_nest_and_close_in_any_order():
    model = awake().double()
    plain = model(ids())[0]
    with surrogates(model, ConstantShift(0.7)):
        once = model(ids())[0]
        with surrogates(model, ConstantShift(-0.7)):
            torch.testing.assert_close(model(ids())[0], plain, rtol=0, atol=1e-10)
        assert torch.equal(model(ids())[0], once)
    outer, inner = surrogates(model, ConstantShift(0.7)), surrogates(model, ConstantShift(-0.7))
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert torch.equal(model(ids())[0], plain)


@KIND
def test_at_evaluation_a_model_stays_a_function(name):
    """Calls repeat, windows do not hear each other, and an entry anew finds the same angles."""
    model, x = awake().double(), ids(4)
    with surrogates(model, KINDS[name]):
        first, alone = model(x)[0], model(x[2:3])[0]
        assert torch.equal(model(x)[0], first)
    torch.testing.assert_close(alone, first[2:3], rtol=0, atol=1e-10)
    with surrogates(model, KINDS[name]):
        assert torch.equal(model(x)[0], first)


def test_training_draws_anew_and_the_same_way_each_time():
    model, x = awake(), ids(2)
    runs = []
    for _ in range(2):
        with surrogates(model.train(), SharedPhase(5)):
            runs.append([model(x)[0].detach() for _ in range(3)])
            model.eval()
            runs[-1] += [model(x)[0].detach() for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))
    one, two, three, calm, again = runs[0]
    assert torch.equal(calm, again)
    for a, b in ((one, two), (two, three), (three, calm)):
        assert (a - b).abs().max() > 1e-2


@KIND
def test_gradients_reach_weights_and_frequencies(name):
    model = awake().train()
    with surrogates(model, KINDS[name]):
        model(ids(), ids(seed=1))[1].backward()
    for p in (model.blocks[0].mixer.qkv.weight, model.blocks[1].mixer.filter.inner.centre.logit):
        assert p.grad.isfinite().all() and (p.grad != 0).any()


@KIND
def test_the_gradient_is_that_of_finite_differences(name):
    x, y = noise(1, 2, 7, 2).requires_grad_(), noise(1, 2, 7, 2, seed=1)
    assert torch.autograd.gradcheck(lambda x: (KINDS[name](x, Stream(step=1)) * y).sum(), [x])


def test_copies_made_inside_belong_to_the_context():
    model = awake()
    plain = model(ids())[0]
    with surrogates(model, SharedPhase(0)):
        twin = copy.deepcopy(model)
        assert torch.equal(twin(ids())[0], model(ids())[0]) and not torch.equal(twin(ids())[0], plain)
    assert torch.equal(twin(ids())[0], plain)


def test_a_filter_asked_by_others_answers_as_always():
    model, x = awake(), noise(1, 2, 9, 6, dtype=torch.float32)
    filter = model.blocks[0].mixer.filter
    expected = filter(x)
    with surrogates(model, SharedPhase(0)):
        assert torch.equal(filter(x), expected)
        model(ids())
        assert torch.equal(filter(x), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shared", "independent", "amplitude", "shift"])
def test_a_whole_window_surrogate_lets_the_future_in(name):
    model = awake("none", replace(CFG, n_layer=1))
    with surrogates(model, KINDS[name]):
        assert audit(model, CFG.vocab_size, 16, draws=2).verdict == "leaks"


def test_the_control_of_the_machinery_lets_no_future_in():
    model = awake("none", replace(CFG, n_layer=1))
    with surrogates(model, ConstantShift(0.0)):
        assert audit(model, CFG.vocab_size, 16, draws=2).verdict != "leaks"
    assert audit(model, CFG.vocab_size, 16, draws=2).verdict == "causal"


def test_one_token_has_no_phase():
    model = awake()
    for name, kind in KINDS.items():
        with surrogates(model, kind):
            inside = model(ids(2, 1))[0]
        assert torch.equal(inside, model(ids(2, 1))[0]), name  # one position attends to itself, whatever its score


# Coverage


class Boxcar(CircularFilter):
    """Passes the bins from..to of n, and no others."""

    def __init__(self, first: int, last: int, n: int) -> None:
        super().__init__()
        self.first, self.last, self.n = first, last, n

    def response(self, f: torch.Tensor) -> torch.Tensor:
        bin = (f.abs() * self.n).round()
        return ((bin >= self.first) & (bin <= self.last)).to(f.dtype)[None]


@pytest.mark.parametrize("n", [1, 2, 7, 64, 255])
def test_a_boxcar_covers_its_bins(n):
    for first, last in {(0, 0), (0, n // 2), (n // 4, n // 2), (n // 2, n // 2)}:
        assert coverage(Boxcar(first, last, n), n).tolist() == pytest.approx([last - first + 1], abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 255])
def test_everything_and_a_single_bin(n):
    assert coverage(AllPass(), n).tolist() == [n // 2 + 1]
    for f in (0.0, 0.1, 0.5):
        assert coverage(Tone(f), n).tolist() == [1]


def test_a_gaussian_covers_the_root_of_two_pi_widths():
    """The sums as integrals: sum p = sqrt(pi) s n, sum p^2 = sqrt(pi / 2) s n."""
    filter = Gaussian([0.2, 0.25, 0.3], 0.02)
    assert coverage(filter, 1024).tolist() == pytest.approx([math.sqrt(2 * math.pi) * 0.02 * 1024] * 3, rel=1e-6)


@pytest.mark.parametrize("n", [7, 64, 65])
def test_coverage_of_kernels_by_brute_force(n):
    """Of complex kernels and of banks: the energy that white noise keeps in each bin."""
    for filter in (Morlet([6.0, 9.0], taps=5), Bank(Gaussian([0.1, 0.2], 0.05), Morlet([6.0, 9.0], taps=5))):
        p = np.zeros((2, n // 2 + 1))
        for f in getattr(filter, "filters", [filter]):
            h = f.double().impulse(n).detach().numpy()
            for part in (h.real, h.imag):  # the real features of one filter
                p += np.abs(part @ np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n // 2 + 1)) / n)) ** 2
        assert coverage(filter, n).tolist() == pytest.approx((p.sum(1) ** 2 / (p**2).sum(1)).tolist(), rel=1e-6)


@SHELF
@pytest.mark.parametrize("n", [17, 33, 64])
def test_coverage_lies_between_one_bin_and_all_and_knows_no_gain(name, n):
    filter = shelf()[name]
    c = coverage(filter, n)
    assert c.dtype == torch.float64 and c.shape == filter.impulse(1).shape[-2:-1]
    assert ((c >= 1 - 1e-12) & (c <= n // 2 + 1 + 1e-9)).all()
    torch.testing.assert_close(coverage(Unit(filter, 3.0), n), c, rtol=1e-6, atol=0)


# Reach


class Echo(CausalFilter):
    """A given one-sided kernel."""

    def __init__(self, *taps: float) -> None:
        super().__init__()
        self.taps = taps

    def kernel(self) -> torch.Tensor:
        return torch.tensor(self.taps, dtype=torch.float64)[None]


class Ring(CircularFilter):
    """A given kernel on a ring of n tokens, lag 0 first, lag -1 last."""

    def __init__(self, *kernel: float) -> None:
        super().__init__()
        self.ring = torch.tensor(kernel, dtype=torch.float64)[None]

    def response(self, f: torch.Tensor) -> torch.Tensor:
        t = torch.arange(self.ring.shape[-1], dtype=torch.float64)
        return (self.ring + 0j) @ torch.exp(-2j * math.pi * t[:, None] * f)


def pair(found: tuple[torch.Tensor, torch.Tensor]) -> tuple[list[int], list[int]]:
    return found[0].tolist(), found[1].tolist()


def test_a_moving_average_reaches_its_taps():
    for n in (8, 9, 64):
        for share, past in ((0.5, 1), (0.51, 2), (0.75, 2), (0.76, 3), (0.999, 3)):
            assert pair(reach(Echo(1, 1, 1, 1), n, share)) == ([past], [0])
    assert pair(reach(Echo(1, 1, 1, 1), 2)) == ([1], [0])  # the window ends it
    assert pair(reach(Echo(1, 0, 0, 0, 0, 0, 1), 8, 0.6)) == ([6], [0])


def test_an_exponential_echo_reaches_by_its_logarithm():
    """Energy a^2t: lags 0 .. r hold 1 - a^(2 r + 2)."""
    a = 0.9
    for share in (0.5, 0.9, 0.99):
        expected = math.ceil(math.log(1 - share) / (2 * math.log(a)) - 1)
        assert pair(reach(Echo(*(a**t for t in range(400))), 512, share)) == ([expected], [0])


def test_lags_on_a_ring_are_counted_to_the_nearer_side():
    ring = [0.0] * 9
    ring[2], ring[-3] = 1.0, 1.0
    assert pair(reach(Ring(*ring), 9)) == ([2], [3])
    assert future_share(Ring(*ring), 9).tolist() == pytest.approx([0.5])
    assert pair(reach(Ring(1, 0, 0, 0, 1, 0, 0, 0), 8)) == ([4], [4])  # n/2 tokens away: as much past as future
    assert future_share(Ring(1, 0, 0, 0, 1, 0, 0, 0), 8).tolist() == pytest.approx([0.25])
    assert pair(reach(Ring(0, 0, 0, 0, 0, 0, 0, 1), 8)) == ([0], [1])
    assert pair(reach(Ring(0, 1), 2)) == ([1], [1])


def test_a_gaussian_reaches_by_its_error_function():
    """A bell at DC: kernel energy exp(-(2 pi width t)^2), of standard deviation 1 / (2 sqrt(2) pi width)."""
    width, n = 0.002, 1024
    sigma = 1 / (2 * math.sqrt(2) * math.pi * width)
    bell = Gaussian(1e-6, width)
    past, future = pair(reach(bell, n, 0.99))
    assert past == future and past[0] == pytest.approx(2.5758 * sigma, abs=1)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 33])
@pytest.mark.parametrize("share", [0.3, 0.9, 0.99])
def test_reach_and_future_share_by_brute_force(n, share):
    """Against a kernel read off with a delta, and a search over both sides."""
    rng = np.random.default_rng(n)
    for kernel in (rng.normal(size=n), rng.normal(size=n) ** 5, np.exp(-np.arange(n) / 4)):
        lags = {t if 2 * t <= n else t - n: h**2 for t, h in enumerate(kernel)}
        if n % 2 == 0:
            lags[n // 2] /= 2
            lags[-n // 2] = lags[n // 2]
        total = sum(lags.values())
        sides = [{t: lags.get(sign * t, 0.0) for t in range(1, n // 2 + 1)} for sign in (1, -1)]
        given_up = (1 - share) * total / max(sum(map(sum, (s.values() for s in sides))), 1e-300)
        expected = [
            min(r for r in range(n) if sum(e for t, e in s.items() if t > r) <= given_up * sum(s.values()))
            for s in sides
        ]  # fmt: skip
        past, future = reach(Ring(*kernel), n, share)
        assert [past.item(), future.item()] == expected
        assert sum(e for t, e in lags.items() if -future <= t <= past) >= share * total - 1e-9
        ahead = sum(e for t, e in lags.items() if t < 0) / total
        assert future_share(Ring(*kernel), n).tolist() == pytest.approx([ahead], abs=1e-12)


@SHELF
@pytest.mark.parametrize("n", [17, 33, 64])
def test_reach_of_the_shelf(name, n):
    filter = shelf()[name]
    (past, future), share = reach(filter, n), future_share(filter, n)
    heads = filter.impulse(1).shape[-2:-1]
    assert past.shape == future.shape == share.shape == heads and share.dtype == torch.float64
    if name in ("AllPass", "Causal", "Morlet", "SlidingDFT"):
        assert (future == 0).all() and (share == 0).all() and (past < n).all()
    if name in ("Tone", "Gaussian", "MexicanHat", "RandomBands", "Residual"):  # real responses: symmetric kernels
        assert torch.equal(past, future) and (past <= n // 2).all()
        h = filter.double().impulse(n).detach()
        torch.testing.assert_close(share, (1 - h[:, 0] ** 2 / h.square().sum(-1)) / 2, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("wrap", [Unit, Residual, lambda f: Bank(f, AllPass()), lambda f: Bank(f, Unit(f))])
def test_combinators_of_causal_filters_hear_no_future(wrap):
    filter = wrap(Causal(Gaussian(0.1, 0.05), 20))
    past, future = pair(reach(filter, 32))
    assert future == [0] and 0 < past[0] < 20
    assert future_share(filter, 32).tolist() == [0]


def test_a_bank_of_both_kinds_counts_each_by_its_own_lags():
    """An echo 6 tokens old, which on a ring of 8 would be 2 tokens ahead, beside a ring that hears 1 ahead."""
    both = Bank(Echo(0, 0, 0, 0, 0, 0, 1), Ring(0, 0, 0, 0, 0, 0, 0, 1))
    assert pair(reach(both, 8)) == ([6], [1])
    assert future_share(both, 8).tolist() == pytest.approx([0.5])


def test_heads_are_told_apart():
    past, future = reach(Gaussian([0.2, 0.2, 0.2], 0.01, heads=3), 256)
    assert past.shape == (3,) and past.unique().numel() == 1
    wide = SlidingDFT(Morlet([6.0, 12.0], taps=64), 64)
    assert reach(wide, 64)[0].tolist() == sorted(set(reach(wide, 64)[0].tolist()))


def test_random_phases_change_the_reach_and_not_the_coverage():
    band = Gaussian(0.2, 0.05)
    scrambled = PhaseRandomised(band).train()  # in training it would draw anew; what is looked at is the fixed draw
    assert coverage(scrambled, 64).tolist() == pytest.approx(coverage(band, 64).tolist(), rel=1e-6)
    assert pair(reach(scrambled, 64)) == pair(reach(scrambled, 64)) and scrambled.training
    assert (reach(scrambled, 64)[0] > reach(band, 64)[0]).all()


def test_looking_at_a_filter_changes_nothing():
    filter = Unit(Gaussian(0.1, 0.02, learn=True))
    weights = copy.deepcopy(filter.state_dict())
    for result in (coverage(filter, 9), *reach(filter, 9), future_share(filter, 9)):
        assert not result.requires_grad
    assert all(torch.equal(v, weights[k]) and v.dtype == weights[k].dtype for k, v in filter.state_dict().items())


def test_a_half_precision_filter_is_looked_at_like_any_other():
    whole = Gaussian(0.125, 0.03125)
    half = copy.deepcopy(whole).bfloat16()
    assert coverage(half, 64).tolist() == pytest.approx(coverage(whole, 64).tolist(), rel=0.02)
    assert (reach(half, 64)[0] - reach(whole, 64)[0]).abs().max() <= 1


# Learned periods


def test_periods_start_where_the_paper_starts_them():
    layers = learned_periods(build("multifourier-qk", CFG))
    assert len(layers) == CFG.n_layer
    for periods in layers:
        assert periods.shape == (4, CFG.n_head) and not periods.requires_grad
        assert periods.mean(1).tolist() == pytest.approx([50, 26, 10, 5], rel=1e-5)


def test_periods_follow_what_is_learned_layer_by_layer():
    model = build("fourier-qk", CFG)
    with torch.no_grad():
        model.blocks[1].mixer.filter.inner.centre.logit.copy_(torch.logit(2 * torch.tensor([[1 / 20], [1 / 7]])))
    first, second = learned_periods(model)
    assert first.flatten().tolist() == pytest.approx([64, 64], rel=1e-5)
    assert second.flatten().tolist() == pytest.approx([20, 7], rel=1e-5)


def test_one_frequency_for_all_heads_is_told_for_each():
    bank = Bank(Gaussian(1 / 8, learn=True), Gaussian(1 / 9), Morlet(9.0, learn=True))
    periods, _ = learned_periods(GPT(CFG, bank))
    assert periods.shape == (2, CFG.n_head)
    assert periods.tolist() == [pytest.approx([8] * 2, rel=1e-5), pytest.approx([9 * 2 * math.pi / 6] * 2, rel=1e-5)]


# Errors


def complain() -> dict:
    band, model = Gaussian(), awake()
    return {
        "no attention": (lambda: surrogates(nn.Linear(2, 2), SharedPhase()).__enter__(), "no fourierqk Attention"),
        "no module": (lambda: surrogates(len, SharedPhase()).__enter__(), "no fourierqk Attention"),
        "periods of no attention": (lambda: learned_periods(nn.Linear(2, 2)), "learn=True"),
        "periods of fixed filters": (lambda: learned_periods(build("base-dot", CFG)), "learn=True"),
        "a class for an object": (lambda: surrogates(model, SharedPhase).__enter__(), "SharedPhase(seed=0)"),
        "a name for an object": (lambda: surrogates(model, "shared").__enter__(), "got 'shared'"),
        "negative seed": (lambda: SharedPhase(-1), "seed = -1"),
        "fractional seed": (lambda: IndependentPhase(0.5), "seed = 0.5"),
        "no seed": (lambda: SharedPhase(None), "seed = None"),
        "infinite angle": (lambda: ConstantShift(math.inf), "angle inf"),
        "angle NaN": (lambda: ConstantShift(math.nan), "angle nan"),
        "coverage over nothing": (lambda: coverage(band, 0), "n = 0"),
        "reach over nothing": (lambda: reach(band, 0), "n = 0"),
        "future over half a token": (lambda: future_share(band, 1.5), "n = 1.5"),
        "no share": (lambda: reach(band, 8, 0.0), "share = 0.0"),
        "all": (lambda: reach(band, 8, 1.0), "share = 1.0"),
        "share NaN": (lambda: reach(band, 8, math.nan), "share = nan"),
        "coverage of a model": (lambda: coverage(model, 8), "expected a Filter along time, got GPT"),
        "reach of a model": (lambda: reach(model, 8), "got GPT"),
        "reach of a channel map": (lambda: reach(RandomRotation(4), 8), "got RandomRotation"),
        "periods over channels": (lambda: learned_periods(GPT(CFG, ChannelFilter(Gaussian(learn=True)))), "learn=True"),
        "coverage of silence": (lambda: coverage(MexicanHat(), 1), "passes nothing"),
        "reach of silence": (lambda: reach(MexicanHat(), 1), "passes nothing"),
        "future of silence": (lambda: future_share(Boxcar(9, 9, 8), 8), "passes nothing"),
        "two axes": (lambda: SharedPhase()(torch.zeros(5, 3)), "(batch, heads, time, d)"),
        "token ids": (lambda: AmplitudeOnly()(torch.zeros(1, 2, 5, 3, dtype=torch.long)), "(batch, heads, time, d)"),
    }


@pytest.mark.parametrize("case", complain())
def test_bad_arguments_are_explained(case):
    act, words = complain()[case]
    with pytest.raises(ValueError) as error:
        act()
    assert words in str(error.value)


def test_an_abstract_surrogate_promises_only():
    with pytest.raises(NotImplementedError):
        Surrogate()(torch.zeros(1, 1, 4, 1))
