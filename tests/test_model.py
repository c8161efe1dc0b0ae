"""The model against an independent transformer in numpy, with its weights copied."""
import copy
import math
import re

import numpy as np
import pytest
import scipy.special
import torch
import torch.nn.functional as F

from fourierqk.combinators import Analytic, Bank, Causal, PhaseRandomised, SlidingDFT, Unit
from fourierqk.filters import AllPass, Filter, Gaussian, Morlet
from fourierqk.model import GPT, Attention, FNet, FourierMixing, GPTConfig, filter_parameters, generate
from fourierqk.training.presets import PRESETS
from fourierqk.zoo import build

CFG = GPTConfig(vocab_size=11, block_size=24, n_layer=2, n_head=3, n_embd=12, dropout=0.0)


def make(filter: Filter | None = None, cfg: GPTConfig = CFG, seed: int = 0) -> GPT:
    """A model in float64 whose weights are large enough for attention to matter."""
    torch.manual_seed(seed)
    model = GPT(cfg, filter).double()
    for p in model.parameters():
        if p.dim() > 1 and p.requires_grad:
            torch.nn.init.normal_(p, std=0.5)
    return model.eval()


def ids(b: int, n: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(11, (b, n), generator=torch.Generator().manual_seed(seed))


# The oracle, in numpy


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(x, w_qkv, w_out, heads, causal=True, filtered=lambda z: z):
    """One sequence (T, C), one head after the other; filtered: (T, d) of one head -> (T, d')."""
    q, k, v = np.split(x @ w_qkv.T, 3, -1)
    d, out = q.shape[1] // heads, []
    for h in range(heads):
        mine = slice(h * d, (h + 1) * d)
        scores = filtered(q[:, mine]) @ filtered(k[:, mine]).T / math.sqrt(d)
        if causal:
            scores = np.where(np.tri(len(x)), scores, -np.inf)
        out.append(softmax(scores) @ v[:, mine])
    return np.concatenate(out, -1) @ w_out.T


def fourier_mixing(x):
    """Real part of the DFT over time and channels of one sequence (T, C), of norm 1: by two matrices, no FFT."""
    dft_t, dft_c = (np.exp(-2j * np.pi * np.outer(r := np.arange(n), r) / n) / math.sqrt(n) for n in x.shape)
    return (dft_t @ x @ dft_c).real


def transformer(w, ids, cfg, filtered=lambda z: z):
    def norm(x, name):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(var + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["tokens.weight"][ids] + w["positions.weight"][: len(ids)]
    for i in range(cfg.n_layer):
        b, y = f"blocks.{i}", norm(x, f"blocks.{i}.norm1")
        if filtered is None:
            x = x + fourier_mixing(y)
        else:
            maps = w[f"{b}.mixer.qkv.weight"], w[f"{b}.mixer.proj.weight"]
            x = x + attention(y, *maps, cfg.n_head, cfg.causal, filtered)
        up = norm(x, f"{b}.norm2") @ w[f"{b}.mlp.up.weight"].T
        x = x + (up * scipy.special.ndtr(up)) @ w[f"{b}.mlp.down.weight"].T  # GELU
    return norm(x, "norm") @ w["tokens.weight"].T


def band(z):
    """A Gaussian band at 0.1, of width 0.05 cycles per token."""
    weights = np.exp(-((np.abs(np.fft.fftfreq(len(z))) - 0.1) ** 2) / (2 * 0.05**2))
    return np.fft.ifft(np.fft.fft(z, axis=0) * weights[:, None], axis=0).real


def moving_pair(z):
    """A causal Morlet of scale 4 and 6 taps: real and imaginary part."""
    t = np.arange(6)
    h = np.exp(-(t**2) / 32 + 1.5j * t)
    y = np.stack([np.convolve(c, h)[: len(z)] for c in z.T], 1)
    return np.concatenate([y.real, y.imag], 1)


def exact(filter: Filter, freq: float) -> Filter:
    filter = filter.double()
    filter.centre.logit.data.fill_(math.log(2 * freq / (1 - 2 * freq)))
    return filter


FILTERS = {
    "none": (lambda: None, lambda z: z),
    "all-pass": (AllPass, lambda z: z),
    "band": (lambda: exact(Gaussian(0.1, 0.05), 0.1), band),
    "morlet": (lambda: exact(Morlet(4.0, taps=6), 6 / (8 * math.pi)), moving_pair),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("n", [1, 2, 7, 24])
def test_the_model_is_the_transformer_of_the_textbook(name, causal, n):
    filter, by_hand = FILTERS[name]
    cfg = GPTConfig(**{**vars(CFG), "causal": causal})
    model, x = make(filter(), cfg), ids(3, n)
    logits, loss = model(x)
    assert loss is None and logits.shape == (3, n, 11)
    w = {key: value.numpy() for key, value in model.state_dict().items()}
    expected = np.stack([transformer(w, row, cfg, by_hand) for row in x.numpy()])
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(logits.detach(), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("name", FILTERS)
def test_attention_alone_is_that_of_the_textbook(name):
    filter, by_hand = FILTERS[name]
    torch.manual_seed(0)
    layer = Attention(CFG, filter() or AllPass()).double()
    x = torch.randn(2, 9, 12, dtype=torch.float64)
    w, out = layer.qkv.weight.detach().numpy() * 5, layer.proj.weight.detach().numpy()
    layer.qkv.weight.data *= 5
    expected = np.stack([attention(row, w, out, 3, filtered=by_hand) for row in x.numpy()])
    np.testing.assert_allclose(layer(x).detach(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 24])
def test_fnet_is_a_transformer_with_a_dft_for_attention(n):
    torch.manual_seed(0)
    model, x = FNet(CFG).double(), ids(3, n)
    for p in model.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.5)
    logits, loss = model(x, x)
    w = {key: value.numpy() for key, value in model.state_dict().items()}
    expected = np.stack([transformer(w, row, CFG, None) for row in x.numpy()])
    np.testing.assert_allclose(logits.detach(), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert loss.isfinite() and not [name for name in w if "mixer" in name]


def test_fnet_has_no_mask_and_every_position_hears_every_other():
    torch.manual_seed(0)
    model, x = FNet(CFG).double().eval(), ids(1, 24)
    for t in (0, 12, 23):
        other = x.clone()
        other[:, t] = (x[:, t] + 1) % 11
        assert ((model(x)[0] - model(other)[0]).abs().amax((0, 2)) > 1e-9).all()


def test_fourier_mixing_computes_bfloat16_in_float32():
    x = torch.randn(2, 9, 12).bfloat16()
    y, expected = FourierMixing()(x), FourierMixing()(x.float())
    assert y.dtype == torch.bfloat16 and ((y - expected).abs() <= 2**-8 * expected.abs() + 1e-6).all()


def test_fnet_writes_too():
    torch.manual_seed(0)
    assert generate(FNet(CFG).eval(), ids(2, 20), 10).shape == (2, 30)


def test_attention_hands_queries_and_keys_over_together():
    """A filter that draws at random draws once for both."""
    torch.manual_seed(0)
    band = PhaseRandomised(AllPass(), heads=3)
    layer, x = Attention(CFG, band).double().train(), torch.randn(1, 24, 12, dtype=torch.float64)
    layer.qkv.weight.data[12:24] = layer.qkv.weight.data[:12]  # k = q
    seen = []
    layer.filter.register_forward_hook(lambda m, args, y: seen.append((args[0], y)))
    layer(x), layer(x)
    for both in seen[0]:
        q, k = both  # the rows of one batch
        torch.testing.assert_close(q, k, atol=1e-12, rtol=0)  # equal weights: a library may sum them in another order
    torch.testing.assert_close(seen[0][0], seen[1][0], atol=1e-12, rtol=0)
    assert (seen[0][1] - seen[1][1]).abs().max() > 0.1


def test_the_loss_is_the_mean_cross_entropy_in_nats():
    model, x, y = make(), ids(2, 9), ids(2, 9, seed=1)
    logits, loss = model(x, y)
    p = softmax(logits.detach().numpy())
    by_hand = -np.mean([np.log(p[b, t, y[b, t]]) for b, t in np.ndindex(2, 9)])
    assert loss.item() == pytest.approx(by_hand, rel=1e-12)
    assert loss == F.cross_entropy(logits.flatten(0, 1), y.flatten())


def test_the_loss_is_in_float32_under_autocast():
    model, x = make().float(), ids(2, 9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, loss = model(x, x)
    assert logits.dtype == torch.bfloat16 and loss.dtype == torch.float32


def moved(filter: Filter | None, causal: bool = True) -> torch.Tensor:
    """(T,): how far each position's logits move when the tokens from position 12 on change."""
    model, x = make(filter, GPTConfig(**{**vars(CFG), "causal": causal})), ids(1, 24)
    other = torch.cat([x[:, :12], (x[:, 12:] + 1) % 11], 1)
    return (model(x)[0] - model(other)[0]).detach().abs().amax((0, 2))


@pytest.mark.parametrize(
    "filter", [None, Morlet(4.0, taps=6), SlidingDFT(Gaussian(0.1, 0.05), 8), Unit(Causal(Gaussian(0.1, 0.05), 9))]
)
def test_the_mask_and_a_causal_filter_hide_the_future(filter):
    assert (moved(filter)[:12] == 0).all() and (moved(filter)[12:] > 0).all()


@pytest.mark.parametrize("filter", [Gaussian(0.1, 0.05), Analytic(Causal(Gaussian(0.1, 0.05)))])
def test_the_mask_does_not_hide_the_future_from_a_two_sided_filter(filter):
    assert (moved(filter)[1:] > 1e-6).all()  # position 0 sees one key alone, whatever its score
    assert (moved(None, causal=False) > 1e-6).all()


def test_head_and_embedding_share_their_weights():
    model = make()
    assert model.head.weight is model.tokens.weight
    assert sum(p.numel() for p in model.parameters()) == 11 * 12 + 24 * 12 + 2 * (12 * 12 * 12 + 4 * 12) + 2 * 12


def test_each_layer_has_a_filter_of_its_own():
    given = Gaussian([0.1, 0.2, 0.3], 0.05, learn=True)
    model = GPT(CFG, given)
    logits = [b.mixer.filter.centre.logit for b in model.blocks]
    assert len({id(p) for p in (*logits, given.centre.logit)}) == 3
    assert all(torch.equal(p, given.centre.logit) for p in logits)


def test_the_initial_loss_is_that_of_a_fair_die():
    torch.manual_seed(0)
    assert GPT(CFG)(ids(8, 24), ids(8, 24, seed=1))[1].item() == pytest.approx(math.log(11), abs=0.05)


def test_dropout_acts_in_training_alone():
    torch.manual_seed(0)
    model, x = GPT(GPTConfig(**{**vars(CFG), "dropout": 0.5})), ids(1, 9)
    assert not torch.equal(model(x)[0], model(x)[0])
    model.eval()
    assert torch.equal(model(x)[0], model(x)[0])


def test_gradients_reach_every_parameter():
    model = make(Unit(Gaussian([0.1, 0.2, 0.3], 0.05, learn=True)))
    model(ids(2, 24), ids(2, 24, seed=1))[1].backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.abs().max() > 0, name


# The filters' parameters


def test_filter_parameters_are_those_of_the_filters_and_no_others():
    fixed, learned = Gaussian(0.1, 0.05), Gaussian(0.1, 0.05, heads=3, learn=True)
    assert list(filter_parameters(GPT(CFG))) == []
    assert list(filter_parameters(GPT(CFG, Unit(fixed)))) == []
    twice, both = Bank(learned, learned), Unit(Bank(learned, fixed, Morlet(8.0, learn=True)))
    for filter, each in ((learned, 1), (both, 2), (twice, 1)):
        model = GPT(CFG, filter)
        found = list(filter_parameters(model))
        named = {id(p) for n, p in model.named_parameters() if ".filter." in n and p.requires_grad}
        assert {id(p) for p in found} == named and len(found) == 2 * each
    assert {id(p) for p in filter_parameters(copy.deepcopy(model))}.isdisjoint(named)


# Writing text


def test_a_seed_means_one_text():
    model, x = make(), ids(2, 5)
    a, b, c = (generate(model, x, 30, seed=s) for s in (1, 1, 2))
    assert a.shape == (2, 35) and torch.equal(a[:, :5], x) and ((a >= 0) & (a < 11)).all()
    assert torch.equal(a, b) and not torch.equal(a, c)
    torch.manual_seed(99)
    assert torch.equal(a, generate(model, x, 30, seed=1))  # whatever the global generator is up to


def test_writing_leaves_the_global_generator_alone():
    model, before = make(), torch.get_rng_state()
    generate(model, ids(1, 5), 10)
    assert torch.equal(before, torch.get_rng_state())


def test_temperature_zero_takes_the_likeliest_token_of_the_last_window():
    model, x = make(), ids(2, 20)
    for _ in range(10):  # past block_size = 24
        best = model(x[:, -24:])[0][:, -1].argmax(-1, keepdim=True)
        assert torch.equal(generate(model, x, 1, temperature=0), torch.cat([x, best], 1))
        x = torch.cat([x, best], 1)
    assert torch.equal(generate(model, ids(2, 20), 10, temperature=0), x)


def test_a_prompt_may_be_longer_than_the_block():
    model, x = make(), ids(1, 40)
    y = generate(model, x, 3, seed=1)
    assert torch.equal(y[:, :40], x) and torch.equal(y[:, 40:], generate(model, x[:, -24:], 3, seed=1)[:, 24:])


def test_tokens_come_with_the_models_probabilities():
    """2000 draws at temperature 2: chi-squared with 10 degrees of freedom stays below its 99.99 % point."""
    model, x = make(), ids(1, 5)
    p = softmax(model(x)[0][0, -1].detach().numpy() / 2)
    counts = np.bincount(generate(model, x.expand(2000, -1), 1, temperature=2.0)[:, -1], minlength=11)
    assert (((counts - 2000 * p) ** 2) / (2000 * p)).sum() < 35.6


@pytest.mark.parametrize("training", [True, False])
def test_writing_restores_the_mode_and_uses_no_dropout(training):
    torch.manual_seed(0)
    model = GPT(GPTConfig(**{**vars(CFG), "dropout": 0.5})).train(training)
    y = generate(model, ids(1, 5), 10, temperature=0)
    assert model.training is training and all(m.training is training for m in model.modules())
    assert torch.equal(y, generate(model.eval(), ids(1, 5), 10, temperature=0))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_seed_means_the_same_text_on_a_gpu():
    model, x = make(), ids(1, 5)
    y = generate(model, x, 30, seed=1)
    model.cuda()
    assert torch.equal(generate(model, x, 30, seed=1), y)
    assert torch.equal(generate(model, x.cuda(), 30, seed=1), y.cuda())


# Errors


@pytest.mark.parametrize(
    "change, words",
    [({"vocab_size": 0}, "vocab_size = 0"), ({"block_size": -1}, "block_size = -1"), ({"n_layer": 0}, "n_layer = 0"),
     ({"n_layer": 1.5}, "n_layer = 1.5"), ({"n_head": 5}, "n_embd = 12 cannot be split evenly among n_head = 5"),
     ({"dropout": 1.0}, "dropout = 1"), ({"dropout": -0.1}, "dropout = -0.1"), ({"dropout": math.nan}, "= nan")],
)  # fmt: skip
def test_a_bad_shape_is_explained(change, words):
    with pytest.raises(ValueError, match=words):
        GPTConfig(**{**vars(CFG), **change})


@pytest.mark.parametrize("given, says", [
    (torch.zeros(1, 25, dtype=torch.long), "block_size = 24, got (1, 25)"),
    (torch.zeros(1, 0, dtype=torch.long), "block_size = 24, got (1, 0)"),
    (torch.zeros(5, dtype=torch.long), "(B, T), got (5,): ids[None] is a batch of one text"),
    (torch.zeros(1, 2, 3, dtype=torch.long), "(B, T), got (1, 2, 3)"),
    (torch.zeros(1, 5), "whole numbers, got torch.float32: write ids.long()"),
    (torch.zeros(1, 5, dtype=torch.bool), "whole numbers, got torch.bool: write ids.long()"),
    (torch.zeros(1, 5, dtype=torch.uint8), "whole numbers, got torch.uint8: write ids.long()"),
    ([[1, 2]], "got a list: write torch.tensor(...)"),
])  # fmt: skip
def test_bad_ids_are_explained(given, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        make()(given)


@pytest.mark.parametrize("given", [PRESETS["tiny"], "base-dot", {"vocab_size": 9}, 65])
def test_what_is_no_shape_of_a_model_is_explained(given):
    for make_one in (GPT, FNet, lambda cfg: Attention(cfg, Gaussian()), lambda cfg: build("fourier-qk", cfg)):
        with pytest.raises(ValueError, match=f"expected a GPTConfig, .* got a {type(given).__name__}: write GPTConfig"):
            make_one(given)


def test_a_name_and_a_shape_the_wrong_way_round_are_explained():
    with pytest.raises(ValueError, match="takes a name, then a shape: the first given is a GPTConfig"):
        build(CFG, "fourier-qk")


@pytest.mark.parametrize(
    "prompt, n, temperature",
    [((1, 0), 1, 1.0), ((5,), 1, 1.0), ((1, 5), -1, 1.0), ((1, 5), 1, -0.5), ((1, 5), 1, math.nan)],
)
def test_bad_prompts_are_explained(prompt, n, temperature):
    with pytest.raises(ValueError, match="prompt"):
        generate(make(), torch.zeros(prompt, dtype=torch.long), n, temperature)


def test_a_filter_of_other_heads_is_explained():
    with pytest.raises(ValueError, match="build it with heads=3"):
        GPT(CFG, Gaussian([0.1, 0.2], 0.05))(ids(1, 5))


def test_a_prompt_outside_the_vocabulary_is_named_before_anything_runs():
    model = GPT(GPTConfig(vocab_size=5, block_size=8, n_layer=1, n_head=1, n_embd=4)).train()
    for prompt in (torch.tensor([[1, 5]]), torch.tensor([[-1]])):
        with pytest.raises(ValueError, match="the model knows 0 to 4"):
            generate(model, prompt, 2)
    with pytest.raises(ValueError, match="token ids"):
        generate(model, torch.tensor([[1.0]]), 2)
    assert model.training
