"""Each system's formula restated in numpy: its scores for random queries and keys, and what the audit says of it."""
import copy
import json
import math

import numpy as np
import pytest
import torch

from fourierqk.causality.procedure import audit
from fourierqk.channels import ChannelFilter, ChannelMap
from fourierqk.combinators import PhaseRandomised, Unit
from fourierqk.data.corpus import Corpus
from fourierqk.filters import AllPass, FeatureMap, Filter, Gaussian
from fourierqk.model import GPT, Attention, FNet, GPTConfig, LanguageModel
from fourierqk.training.checkpoint import identity
from fourierqk.zoo import SYSTEMS, System, build, system

pytestmark = pytest.mark.usefixtures("one_thread")
HEADS, D = 6, 10
CFG = GPTConfig(vocab_size=5, block_size=256, n_layer=1, n_head=HEADS, n_embd=HEADS * D, dropout=0.0)
LEARNED = {  # centres a head
    "fourier-qk": 1, "multifourier-qk": 4, "multifourier-summed": 4, "causal-morlet-learned": 1, "collapse-real": 1,
    "collapse-analytic": 1, "collapse-channels": 1, "sliding-fourier-qk": 1, "phase-randomised": 1, "gauss-narrow": 1,
    "gauss-wide": 1, "mexican-hat-bank": 4,
}  # fmt: skip
FILTERED = [name for name in SYSTEMS if name != "fnet"]
ALONG_TIME = [name for name in FILTERED if name not in ("collapse-channels", "random-rotation", "random-projection")]


@pytest.fixture
def float64():
    """Everything is built in float64, so that 1e-6 tests the formulas and not the rounding of stored frequencies."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def make(name: str, cfg: GPTConfig = CFG) -> FeatureMap:
    return system(name).filter(cfg).eval()


# The formulas: a signal (T, D) of head h -> its features. They share no code with the library.


def by_dft(x, weights):
    """Multiply bin k of the DFT along time by weights[k]."""
    return np.fft.ifft(np.fft.fft(x, axis=0) * weights[:, None], axis=0)


def size(kernel):
    return np.sqrt((np.abs(kernel) ** 2).sum())


def gaussian(n, centre, width):
    return np.exp(-((np.abs(np.fft.fftfreq(n)) - centre) ** 2) / (2 * width**2))


def banded(response, *others):
    """Bands side by side, without cross terms; the whole has norm 1 on 1024 tokens."""
    responses = (response, *others)
    norm = np.sqrt(sum(size(np.fft.ifft(r(1024))) ** 2 for r in responses))
    return lambda x, h: np.concatenate([by_dft(x, r(len(x))).real for r in responses], 1) / norm


def paper_band(width=2):
    return lambda n: gaussian(n, 4 / 256, width / 256)


def summed(x, h):
    response = lambda n: sum(gaussian(n, 1 / p, 2 / 256) for p in (50, 26, 10, 5))  # noqa: E731
    return banded(response)(x, h)


def random_qk(x, h):
    u = torch.rand(HEADS, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float32).double().numpy()[h, 0]
    c = 1 / 128 + u * (0.26 - 1 / 128)
    return banded(lambda n: gaussian(n, c, 0.15 * c + 1 / 128))(x, h)


def hat(p):
    return lambda n: (np.fft.fftfreq(n) * p) ** 2 * np.exp(1 - (np.fft.fftfreq(n) * p) ** 2)


def scale(h):
    return (2, 4, 8, 16, 32, 2)[h]


def one_sided(x, kernel):
    """Convolve with lags 0 .. 127, silence before the first token; complex: real part, then imaginary."""
    kernel = kernel / size(kernel)
    y = np.stack([np.convolve(c, kernel)[: len(x)] for c in x.T], 1)
    return np.concatenate([y.real, y.imag], 1) if np.iscomplexobj(y) else y


def wavelet(a):
    t = np.arange(128)
    return np.exp(-(t**2) / (2 * a**2)) * np.exp(6j * t / a)


def bell(x, h):
    t = np.arange(128)
    return one_sided(x, np.exp(-(t**2) / (2 * scale(h) ** 2)))


def half_hat(x, h):
    u = np.arange(128) / scale(h)
    return one_sided(x, (1 - u**2) * np.exp(-(u**2) / 2))


def beside_identity(x, h):
    return np.concatenate([x, one_sided(x, wavelet(scale(h)))], 1) / math.sqrt(2)


def morlet_correlation(x, h):
    return banded(lambda n: np.exp(-((2 * np.pi * scale(h) * np.abs(np.fft.fftfreq(n)) - 6) ** 2) / 2))(x, h)


def collapse_over_frequencies(x, h):
    """S9a to the letter: at each position one weighted sum over the frequencies. No inverse DFT."""
    n, t = len(x), np.arange(len(x))
    waves = np.exp(2j * np.pi * np.outer(t, t) / n)  # row t: every frequency's arrow at position t
    y = (waves * gaussian(n, 4 / 256, 2 / 256)) @ np.fft.fft(x, axis=0) / n
    return y.real / size(np.fft.ifft(gaussian(1024, 4 / 256, 2 / 256)))


def one_sided_spectrum(n):
    w, k = gaussian(n, 4 / 256, 2 / 256), np.arange(n)
    return w * np.where((k == 0) | (2 * k == n), 1, np.where(2 * k < n, 2, 0))


def collapse_analytic(x, h):
    y = by_dft(x, one_sided_spectrum(len(x))) / size(np.fft.ifft(one_sided_spectrum(1024)))
    return np.concatenate([y.real, y.imag], 1)


def collapse_channels(x, h):
    """One number a token: the DFT over its channels, weighed and summed; scores vary as those of D channels."""
    w = gaussian(D, 4 / 32, 2 / 32)
    direction = np.fft.ifft(w).real * D
    return (np.fft.fft(x, axis=1) @ w).real[:, None] / size(direction) * D**0.25


def sliding(x, h):
    """At each token: the DFT of the last 128, silence first, weighed, back, the last sample kept."""
    w, y = gaussian(128, 4 / 256, 2 / 256), np.zeros_like(x)
    past = np.concatenate([np.zeros((128, x.shape[1])), x])
    for t in range(len(x)):
        y[t] = by_dft(past[t + 1 : t + 129], w).real[-1]
    return y / size(np.fft.ifft(w))


def phase_randomised(x, h):
    n = len(x)
    turns = torch.rand(HEADS, 513, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()[h]
    k = np.arange(n // 2 + 1)
    angle = np.where((k == 0) | (2 * k == n), 0, 2 * np.pi * turns[np.round(k / n * 1024).astype(int)])
    z = np.fft.rfft(x, axis=0) * (gaussian(n, 4 / 256, 2 / 256)[k] * np.exp(1j * angle))[:, None]
    return np.fft.irfft(z, n=n, axis=0) / size(np.fft.ifft(gaussian(1024, 4 / 256, 2 / 256)))


def random_projection(x, h):
    m = torch.randn(HEADS, D // 2, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64).numpy()[h]
    return x @ m.T * math.sqrt(math.sqrt(D) / np.linalg.norm(m.T @ m))


def dc(x, h):
    return np.ones((len(x), 1)) * x.mean(0) * math.sqrt(len(x))


def nyquist(x, h):
    """The highest bin that n tokens have, and its mirror image, which at even n it is itself."""
    n = len(x)
    w = np.zeros(n)
    w[[n // 2, -(n // 2)]] = 1
    return by_dft(x, w).real * math.sqrt(n / w.sum())


FORMULAS = {
    "base-dot": lambda x, h: x, "random-qk": random_qk, "fourier-qk": banded(paper_band()),
    "multifourier-qk": banded(*(lambda n, p=p: gaussian(n, 1 / p, 2 / 256) for p in (50, 26, 10, 5))),
    "multifourier-summed": summed, "causal-gaussian": bell, "causal-mexican-hat": half_hat,
    "causal-morlet": lambda x, h: one_sided(x, wavelet(scale(h))),
    "causal-morlet-learned": lambda x, h: one_sided(x, wavelet(8)), "causal-morlet-identity": beside_identity,
    "morlet-correlation": morlet_correlation, "collapse-real": collapse_over_frequencies,
    "collapse-analytic": collapse_analytic, "collapse-channels": collapse_channels, "sliding-fourier-qk": sliding,
    "phase-randomised": phase_randomised,
    "random-rotation": lambda x, h: x,  # it cancels
    "random-projection": random_projection, "dc": dc, "nyquist": nyquist, "gauss-narrow": banded(paper_band(0.5)),
    "gauss-wide": banded(paper_band(16)), "mexican-hat-bank": banded(*map(hat, (50, 26, 10, 5))),
}  # fmt: skip


def noise(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_every_system_with_queries_and_keys_has_a_formula_here():
    assert set(FORMULAS) == set(FILTERED)


@pytest.mark.parametrize("name", FILTERED)
@pytest.mark.parametrize("n", [1, 2, 33, 255, 256])  # odd, even, shorter and longer than the taps
def test_scores_are_those_of_the_formula(name, n, float64):
    """Within 1e-6 of the largest."""
    q, k = noise(0, 1, HEADS, n, D), noise(1, 1, HEADS, n, D)
    by_hand, filter = FORMULAS[name], make(name)
    got = (filter(q) @ filter(k).mT).detach().numpy()
    assert got.dtype == np.float64
    for h in range(HEADS):
        expected = by_hand(q[0, h].numpy(), h) @ by_hand(k[0, h].numpy(), h).T
        np.testing.assert_allclose(got[0, h], expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", FILTERED)
@pytest.mark.parametrize("n", [1, 8, 9])
def test_attention_is_a_masked_softmax_of_those_scores(name, n, float64):
    torch.manual_seed(0)
    layer, x = Attention(CFG, make(name)).eval(), noise(0, 1, n, HEADS * D)
    q, k, v = (x[0] @ layer.qkv.weight.T * 1.0).detach().numpy().reshape(n, 3, HEADS, D).transpose(1, 2, 0, 3)
    heads = []
    for h in range(HEADS):
        scores = FORMULAS[name](q[h], h) @ FORMULAS[name](k[h], h).T / math.sqrt(D)
        weights = np.exp(scores - scores.max()) * np.tri(n)
        heads.append(weights / weights.sum(1, keepdims=True) @ v[h])
    expected = np.concatenate(heads, 1) @ layer.proj.weight.T.detach().numpy()
    np.testing.assert_allclose(layer(x)[0].detach(), expected, rtol=0, atol=1e-6 * np.abs(expected).max())


# Algebra: what follows from the formulas without a run


def test_a_collapse_over_frequencies_is_the_inverse_dft(float64):
    q = noise(0, 1, HEADS, 33, D)
    assert torch.equal(make("collapse-real")(q), make("fourier-qk")(q))


def test_the_real_part_of_the_analytic_collapse_is_the_real_one(float64):
    q = noise(0, 1, HEADS, 33, D)
    pair, real = make("collapse-analytic")(q), make("collapse-real")(q)
    h, f = HEADS // 2, 0  # up to its gain
    a, b = pair[0, h, :, f], real[0, h, :, f]
    torch.testing.assert_close(a * (b.norm() / a.norm()), b)


def test_a_collapse_without_the_wave_is_one_number_a_text_and_attention_is_uniform():
    """The sum over frequencies of the weighted DFT has no position in it: every score of a head is the same."""
    x = noise(0, 16, 3).numpy()
    collapsed = (np.fft.fft(x, axis=0) * gaussian(16, 4 / 256, 2 / 256)[:, None]).sum(0).real
    q = np.tile(collapsed, (16, 1))
    assert np.ptp(q @ q.T) == 0
    np.testing.assert_allclose(collapsed / 16, by_dft(x, gaussian(16, 4 / 256, 2 / 256)).real[0])  # its value at 0


@pytest.mark.parametrize("n", [16, 17])
def test_dc_is_uniform_attention(n, float64):
    torch.manual_seed(0)
    layer, x = Attention(CFG, make("dc")), noise(0, 1, n, HEADS * D)
    v = (x @ layer.qkv.weight.T).chunk(3, -1)[2]
    mean = v.cumsum(1) / torch.arange(1, n + 1)[:, None]
    torch.testing.assert_close(layer(x), mean @ layer.proj.weight.T)


def test_channel_scores_have_rank_one_and_the_inverted_reading_is_absorbed_by_w_q(float64):
    q, k = noise(0, 1, HEADS, 33, D), noise(1, 1, HEADS, 33, D)
    scalar = make("collapse-channels")
    assert torch.linalg.matrix_rank((scalar(q) @ scalar(k).mT).detach(), rtol=1e-9).unique().tolist() == [1]
    torch.manual_seed(0)
    inverted = GPT(CFG, ChannelFilter(Gaussian(4 / 32, 2 / 32, heads=HEADS))).eval()
    assert_equals_base_dot_after(inverted, inverted.blocks[0].mixer.filter.scaled(D))


def assert_equals_base_dot_after(model: GPT, m: torch.Tensor) -> None:
    """base-dot whose W_q is multiplied, head by head, by M^T M gives the logits of the model with the map M."""
    plain = build("base-dot", model.cfg).eval()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if ".filter." not in k})
    w = plain.blocks[0].mixer.qkv.weight.detach()
    w_q = w[: HEADS * D].view(HEADS, D, -1)
    w_q.copy_((m.mT @ m).detach() @ w_q)
    x = torch.arange(20)[None] % 5
    torch.testing.assert_close(plain(x)[0], model(x)[0])


@pytest.mark.parametrize("name", ["random-rotation", "random-projection"])
def test_rotation_and_projection_are_base_dot_with_other_weights(name, float64):
    torch.manual_seed(0)
    model = build(name, CFG).eval()
    m = model.blocks[0].mixer.filter.scaled(D)
    assert_equals_base_dot_after(model, m if name == "random-projection" else torch.eye(D).expand(HEADS, D, D))


def test_two_rotations_are_absorbed_by_w_q():
    """(R q) . (S k) = (S^T R q) . k: with a rotation each, W_q turned by S^T R says the same."""
    rng = np.random.default_rng(0)
    (r, _), (s, _), q, k = *(np.linalg.qr(rng.normal(size=(D, D))) for _ in "rs"), *rng.normal(size=(2, 9, D))
    np.testing.assert_allclose((q @ r.T) @ (k @ s.T).T, (q @ (s.T @ r).T) @ k.T, atol=1e-12)
    assert np.abs((q @ r.T) @ (k @ s.T).T - q @ k.T).max() > 0.1


def test_the_projection_halves_the_rank(float64):
    q, k, halved = noise(0, 1, HEADS, 33, D), noise(1, 1, HEADS, 33, D), make("random-projection")
    assert torch.linalg.matrix_rank(halved(q) @ halved(k).mT, rtol=1e-9).unique().tolist() == [D // 2]
    assert [make("random-projection", cfg).rank for cfg in (shape(1), shape(2), shape(3))] == [1, 1, 1]


def shape(d: int, heads: int = 2) -> GPTConfig:
    return GPTConfig(vocab_size=5, block_size=16, n_layer=2, n_head=heads, n_embd=heads * d)


def test_the_sum_has_the_cross_terms_that_the_bank_has_not(float64):
    q, k = noise(0, 1, HEADS, 64, D), noise(1, 1, HEADS, 64, D)
    apart, one = (make(name) for name in ("multifourier-qk", "multifourier-summed"))
    assert apart(q).shape[-1] == 4 * D and one(q).shape[-1] == D
    assert ((apart(q) @ apart(k).mT) - (one(q) @ one(k).mT)).abs().max() > 0.1


# Gains


@pytest.mark.parametrize("name", ALONG_TIME)
@pytest.mark.parametrize("n", [1024, 1023])
def test_the_gain_is_one(name, n):
    """Stated in zoo.py, and true: an impulse leaves with the energy it came with."""
    filter = make(name).double()
    h = filter.impulse(n).abs().square().sum(-1)
    assert h.reshape(-1, h.shape[-1]).sum(0).tolist() == pytest.approx([1] * h.shape[-1], rel=1e-3)
    inner = filter.inner if isinstance(filter, PhaseRandomised) else filter
    assert isinstance(inner, AllPass) or isinstance(inner, Unit) and inner.gain == 1


@pytest.mark.parametrize("name", ["dc", "nyquist"])
@pytest.mark.parametrize("n", [1, 2, 16, 33, 128, 255])
def test_the_gain_of_a_tone_is_one_at_any_length(name, n):
    assert make(name).double().impulse(n).square().sum().item() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("name", FILTERED)
def test_no_system_starts_with_louder_scores_than_dot_product(name):
    """By their mean square over 60 texts; half a bin of 256 on a bin is louder than half a bin of 1024 by 1.37."""
    filter = make(name).double()
    gram_q, gram_k = (f.mT @ f for f in (filter(noise(seed, 60, HEADS, 256, D)) for seed in (0, 1)))
    loudness = (gram_q * gram_k).sum((2, 3)).mean() / 256**2 / D
    assert 0.05 < loudness < (1.5 if name == "gauss-narrow" else 1.3)


# What models are made of


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_build_for_any_number_and_size_of_heads(name):
    for cfg in (shape(2, 1), shape(1, 2), shape(3, 7)):
        model = build(name, cfg)
        assert isinstance(model, FNet if name == "fnet" else GPT) and model.cfg == cfg
        logits, loss = model(torch.zeros(1, 16, dtype=torch.long), torch.zeros(1, 16, dtype=torch.long))
        assert logits.shape == (1, 16, 5) and loss.isfinite()


def test_what_is_learned():
    """Some frequencies a head in the learned systems, none in the others; all systems else weigh the same."""
    sizes = {name: sum(p.numel() for p in build(name, CFG).parameters() if p.requires_grad) for name in FILTERED}
    more = {name: size - sizes["base-dot"] for name, size in sizes.items()}
    assert more == {**dict.fromkeys(FILTERED, 0), **{name: HEADS * k for name, k in LEARNED.items()}}


@pytest.mark.parametrize("name", LEARNED)
def test_gradients_reach_every_learned_frequency(name):
    torch.manual_seed(0)
    model, x = build(name, CFG), torch.randint(5, (2, 200), generator=torch.Generator().manual_seed(0))
    for p in model.parameters():
        if p.dim() > 1 and p.shape[0] > HEADS:
            torch.nn.init.normal_(p, std=0.2)
    model(x, x.roll(-1, 1))[1].backward()
    found = [p for n, p in model.named_parameters() if ".filter." in n and p.requires_grad]
    assert len(found) == LEARNED[name]
    for p in found:
        assert p.shape == (HEADS, 1) and p.grad.isfinite().all() and (p.grad != 0).all()


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_copied_model_shares_nothing(name):
    model = build(name, shape(4)).eval()
    twin, x = copy.deepcopy(model), torch.arange(16)[None] % 5
    mine, other = ({t.data_ptr() for t in (*m.parameters(), *m.buffers()) if t.numel()} for m in (model, twin))
    assert not mine & other
    before = model(x)[0]
    assert torch.equal(before, twin(x)[0])
    with torch.no_grad():
        for p in twin.parameters():
            p.add_(1)
    assert torch.equal(model(x)[0], before)


@pytest.mark.parametrize("name", FILTERED)
def test_layers_share_nothing_either(name):
    a, b = (block.mixer.filter for block in build(name, shape(4)).blocks)
    assert not {id(t) for t in (*a.parameters(), *a.buffers())} & {id(t) for t in (*b.parameters(), *b.buffers())}


def test_learned_frequencies_start_where_the_paper_starts_them():
    filters = {name: build(name, CFG).blocks[0].mixer.filter for name in LEARNED}
    bin4 = [4 / 256] * HEADS
    for name in ("fourier-qk", "gauss-narrow", "gauss-wide"):
        assert filters[name].inner.centre().flatten().tolist() == pytest.approx(bin4, rel=1e-5)
    for name in ("multifourier-qk", "multifourier-summed", "mexican-hat-bank"):
        periods = [1 / f.centre()[0].item() for f in filters[name].inner.filters]
        assert periods == pytest.approx([50, 26, 10, 5], rel=1e-5)


def test_all_systems_but_fnet_share_one_attention():
    for name in SYSTEMS:
        layers = [m for m in build(name, CFG).modules() if isinstance(m, Attention)]
        assert [type(layer) for layer in layers] == [Attention] * (name != "fnet")


def test_systems_are_described():
    for name, s in SYSTEMS.items():
        assert isinstance(s, System) and s.name == name and s.summary and s.verdict in ("causal", "leaks")
        assert isinstance(build(name, shape(2)), LanguageModel)
        assert s.filter is None or isinstance(s.filter(CFG), Filter | ChannelMap)
    assert len({s.summary for s in SYSTEMS.values()}) == len(SYSTEMS)
    assert "algebra" in SYSTEMS["dc"].summary


@pytest.mark.parametrize("name", FILTERED)
def test_the_filter_of_a_system_prints_itself_in_one_line(name):
    """And says whether it learns."""
    line = repr(make(name, GPTConfig(vocab_size=5)))
    assert len(line) < 120 and "\n" not in line and ("learned" in line) == (name in LEARNED)


# What the audit says


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_audit_finds_what_the_list_of_systems_says(name):
    torch.manual_seed(0)
    model = build(name, GPTConfig(20, block_size=48, n_layer=1, n_head=2, n_embd=16))
    assert audit(model, 20, 33, draws=2).verdict == SYSTEMS[name].verdict


def test_causal_are_the_baseline_what_is_one_sided_the_maps_of_channels_and_dc():
    assert {name for name, s in SYSTEMS.items() if s.verdict == "causal"} == {
        "base-dot", "causal-gaussian", "causal-mexican-hat", "causal-morlet", "causal-morlet-learned",
        "causal-morlet-identity", "sliding-fourier-qk", "collapse-channels", "random-rotation", "random-projection",
        "dc",
    }  # fmt: skip


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_leaks_moves_and_what_is_causal_does_not(name):
    """Beside the audit, and without it: change the second half of a text, and look at the first."""
    torch.manual_seed(0)
    model = build(name, CFG).double().eval()
    for p in model.parameters():
        if p.dim() > 1 and p.requires_grad and p.shape[0] > HEADS:
            torch.nn.init.normal_(p, std=0.2)
    x = torch.randint(5, (1, 60), generator=torch.Generator().manual_seed(0))
    other = torch.cat([x[:, :30], (x[:, 30:] + 1) % 5], 1)
    moved = (model(x)[0] - model(other)[0])[:, :30].abs().max()
    assert moved > 1e-6 if SYSTEMS[name].verdict == "leaks" else moved < 1e-12 if name == "dc" else moved == 0


@pytest.mark.parametrize(
    "wrong, suggestion", [("fourier", "fourier-qk"), ("base_dot", "base-dot"), ("causal-morlett", "causal-morlet")]
)
def test_an_unknown_name_is_answered_with_near_ones(wrong, suggestion):
    for act in (system, lambda name: build(name, CFG)):
        with pytest.raises(ValueError, match=f"unknown system '{wrong}': did you mean .*{suggestion}"):
            act(wrong)


def test_a_name_like_none_is_answered_with_all():
    with pytest.raises(ValueError) as error:
        system("xyzzy")
    assert all(name in str(error.value) for name in SYSTEMS)


def test_a_checkpoint_tells_all_systems_apart_but_the_two_that_are_one():
    corpus = Corpus("none", torch.zeros(9, dtype=torch.int64), torch.zeros(9, dtype=torch.int64), tuple("abcde"))
    runs = {name: json.dumps(identity(build(name, CFG), corpus, {}), sort_keys=True) for name in SYSTEMS}
    assert runs.pop("collapse-real") == runs["fourier-qk"]
    assert len(set(runs.values())) == len(runs)
