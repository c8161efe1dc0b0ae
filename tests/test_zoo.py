"""Each system's formula restated in numpy: its scores for random queries and keys."""
import numpy as np
import pytest
import torch

from fourierqk.filters import AllPass, Filter, Unit
from fourierqk.model import GPT, Attention, GPTConfig
from fourierqk.zoo import SYSTEMS, System, build, system

CFG = GPTConfig(vocab_size=5, block_size=256, n_layer=1, n_head=6, n_embd=24, dropout=0.0)
TWO_SIDED = "random-qk", "fourier-qk", "multifourier-qk"
ONE_SIDED = "base-dot", "sliding-fourier-qk", "causal-morlet"


# The formulas: a signal (T, d) of head h -> its features


def gaussian(n, centre, width):
    return np.exp(-((np.abs(np.fft.fftfreq(n)) - centre) ** 2) / (2 * width**2))


def band(x, centre, width):
    return np.fft.ifft(np.fft.fft(x, axis=0) * gaussian(len(x), centre, width)[:, None], axis=0).real


def norm(centre, width):
    """Of the band's impulse response, on 1024 tokens."""
    return np.linalg.norm(np.fft.ifft(gaussian(1024, centre, width)).real)


def random_qk(x, h):
    u = torch.rand(6, 1, generator=torch.Generator().manual_seed(0)).double().numpy()[h, 0]
    c = 1 / 128 + u * (0.26 - 1 / 128)
    w = 0.15 * c + 1 / 128
    return band(x, c, w) / norm(c, w)


def fourier_qk(x, h):
    return band(x, 4 / 256, 2 / 256) / norm(4 / 256, 2 / 256)


def multifourier_qk(x, h):
    """Four bands side by side, without cross terms; the whole has norm 1."""
    bands = [(1 / period, 2 / 256) for period in (50, 26, 10, 5)]
    return np.concatenate([band(x, *b) for b in bands], 1) / np.sqrt(sum(norm(*b) ** 2 for b in bands))


def sliding_fourier_qk(x, h):
    """At each token: the DFT of the last 128, silence first, weighed, back, the last sample kept."""
    weights, y = gaussian(128, 4 / 256, 2 / 256), np.zeros_like(x)
    past = np.concatenate([np.zeros((128, x.shape[1])), x])
    for t in range(len(x)):
        y[t] = np.fft.ifft(np.fft.fft(past[t + 1 : t + 129], axis=0) * weights[:, None], axis=0).real[-1]
    return y / np.linalg.norm(np.fft.ifft(weights).real)


def causal_morlet(x, h):
    a, t = (2, 4, 8, 16, 32, 2)[h], np.arange(128)
    kernel = np.exp(-(t**2) / (2 * a**2)) * np.exp(6j * t / a)
    y = np.stack([np.convolve(c, kernel)[: len(x)] for c in x.T], 1) / np.linalg.norm(kernel)
    return np.concatenate([y.real, y.imag], 1)


FORMULAS = {
    "base-dot": lambda x, h: x, "random-qk": random_qk, "fourier-qk": fourier_qk, "multifourier-qk": multifourier_qk,
    "sliding-fourier-qk": sliding_fourier_qk, "causal-morlet": causal_morlet,
}  # fmt: skip


def noise(seed: int, n: int) -> torch.Tensor:
    return torch.randn(2, 6, n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_every_system_has_a_formula_here():
    assert set(FORMULAS) == set(SYSTEMS) == {*TWO_SIDED, *ONE_SIDED}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("n", [1, 2, 7, 64, 255, 256])
def test_scores_are_those_of_the_formula(name, n):
    """Within 5e-6 of the largest: frequencies are stored in float32, and the far tail of a band feels it."""
    q, k = noise(0, n), noise(1, n)
    filter = system(name).filter(CFG).double()
    got = (filter(q) @ filter(k).mT).detach().numpy()
    by_hand = FORMULAS[name]
    for b, h in np.ndindex(2, 6):
        expected = by_hand(q[b, h].numpy(), h) @ by_hand(k[b, h].numpy(), h).T
        np.testing.assert_allclose(got[b, h], expected, rtol=0, atol=5e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_gain_is_one(name):
    """Stated in zoo.py, and true: an impulse leaves with the energy it came with."""
    filter = system(name).filter(CFG).double()
    h = filter.impulse(1024).abs().square().sum(-1)
    assert h.reshape(-1, h.shape[-1]).sum(0).tolist() == pytest.approx([1] * h.shape[-1], rel=1e-9)
    assert isinstance(filter, AllPass) or isinstance(filter, Unit) and filter.gain == 1


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_system_starts_with_louder_scores_than_dot_product(name):
    q, k = noise(0, 1024), noise(1, 1024)
    filter = system(name).filter(CFG).double()
    loudness = (filter(q) @ filter(k).mT).var((0, 2, 3)) / (q @ k.mT).var((0, 2, 3))
    assert (loudness < 1.3).all() and (loudness > 0.05).all()  # of a narrow band few values are independent


@pytest.mark.parametrize("name", SYSTEMS)
def test_only_two_sided_systems_hear_the_future(name):
    torch.manual_seed(0)
    model = build(name, CFG).double().eval()
    for p in model.parameters():
        if p.dim() > 1 and p.requires_grad and p.shape[0] > 6:
            torch.nn.init.normal_(p, std=0.5)
    x = torch.randint(5, (1, 60), generator=torch.Generator().manual_seed(0))
    other = torch.cat([x[:, :30], (x[:, 30:] + 1) % 5], 1)
    moved = (model(x)[0] - model(other)[0])[:, :30].abs().max()
    assert moved > 1e-6 if name in TWO_SIDED else moved == 0


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_build_for_any_number_of_heads(name):
    for heads in (1, 2, 7):
        cfg = GPTConfig(vocab_size=5, block_size=16, n_layer=2, n_head=heads, n_embd=heads * 2)
        model = build(name, cfg)
        assert isinstance(model, GPT) and model.cfg == cfg
        logits, loss = model(torch.zeros(1, 16, dtype=torch.long), torch.zeros(1, 16, dtype=torch.long))
        assert logits.shape == (1, 16, 5) and loss.isfinite()


def test_what_is_learned():
    """One frequency a head and band in the learned systems, none in the others; all systems else weigh the same."""
    sizes = {name: sum(p.numel() for p in build(name, CFG).parameters() if p.requires_grad) for name in SYSTEMS}
    more = {name: size - sizes["base-dot"] for name, size in sizes.items()}
    assert more == {**dict.fromkeys(SYSTEMS, 0), "fourier-qk": 6, "multifourier-qk": 24, "sliding-fourier-qk": 6}


def test_learned_frequencies_start_where_the_paper_starts_them():
    centre = build("fourier-qk", CFG).blocks[0].mixer.filter.inner.centre()
    assert centre.flatten().tolist() == pytest.approx([4 / 256] * 6, rel=1e-6)
    bank = build("multifourier-qk", CFG).blocks[0].mixer.filter.inner
    periods = [1 / f.centre()[0].item() for f in bank.filters]
    assert periods == pytest.approx([50, 26, 10, 5], rel=1e-5)


def test_all_systems_share_one_attention():
    for name in SYSTEMS:
        layers = [m for m in build(name, CFG).modules() if isinstance(m, Attention)]
        assert len(layers) == 1 and type(layers[0]) is Attention


def test_systems_are_described():
    for name, s in SYSTEMS.items():
        assert isinstance(s, System) and s.name == name and s.summary and isinstance(s.filter(CFG), Filter)


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
