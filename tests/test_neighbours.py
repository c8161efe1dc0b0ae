"""The field's short filters against scipy and recurrences written out, and the places a filter can have."""
import math

import numpy as np
import pytest
import scipy.signal
import torch

from fourierqk import audit
from fourierqk.combinators import Bank, PhaseRandomised, Unit
from fourierqk.filters import AllPass, Gaussian, Morlet
from fourierqk.model import Attention, GPTConfig, filter_parameters
from fourierqk.neighbours import Dealt, Resonator, Separate, ShortConvolution, Taps, TokenShift
from fourierqk.training import TrainConfig, optimiser
from fourierqk.zoo import ENTRANTS, SYSTEMS, VARIANTS, build

BOTH = pytest.mark.parametrize(("dtype", "tol"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
CFG = GPTConfig(vocab_size=11, block_size=24, n_layer=2, n_head=2, n_embd=16, dropout=0.0)


def signal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def close(found: torch.Tensor, wanted: np.ndarray, tol: float) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted, atol=tol, rtol=tol)


# filters


@BOTH
@pytest.mark.parametrize("taps", [1, 2, 5, 40])
def test_free_taps_are_a_fir_filter(taps, dtype, tol):
    filter, x = Taps(signal(taps).tolist(), heads=2).to(dtype), signal(3, 2, 30, 4, dtype=dtype)
    with torch.no_grad():
        filter.taps[1] *= -0.5  # each head its own
    for head in range(2):
        wanted = scipy.signal.lfilter(filter.taps[head].detach().numpy(), [1.0], x[:, head].numpy(), axis=1)
        close(filter(x)[:, head], wanted, tol)


def test_two_taps_are_kv_shift():
    x = signal(1, 1, 6, 2)
    y = Taps((0.7, 0.3)).double()(x)
    torch.testing.assert_close(y[..., 1:, :], 0.7 * x[..., 1:, :] + 0.3 * x[..., :-1, :], atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize(("freq", "decay", "gain"), [(1 / 8, 3.0, 1.0), (0.4, 5.0, -0.3), (1 / 50, 8.0, 0.1)])
def test_a_resonator_is_the_real_part_of_a_linear_recurrent_unit(freq, decay, gain):
    filter, x = Resonator(freq, decay, gain, taps=400).double(), signal(1, 1, 300, 3)
    rate, f = filter.log_decay.exp().reciprocal().item(), filter.centre().item()
    turn = np.exp(-rate + 2j * np.pi * f)
    state, wanted = np.zeros(3, complex), []
    for now in x[0, 0].numpy():
        state = turn * state + math.sqrt(1 - abs(turn) ** 2) * now
        wanted.append(filter.gain.item() * state.real)
    close(filter(x)[0, 0], np.stack(wanted), 1e-10)


def test_a_resonator_learns_frequency_decay_and_gain():
    filter = Resonator([1 / 8, 1 / 5], decay=[4.0, 9.0], gain=0.1, heads=2)
    filter(signal(1, 2, 20, 3, dtype=torch.float32)).square().sum().backward()
    assert [n for n, p in filter.named_parameters() if p.grad is not None and (p.grad != 0).all()] == [
        "log_decay", "gain", "centre.logit",
    ]  # fmt: skip


@BOTH
@pytest.mark.parametrize("taps", [1, 4, 9])
def test_a_short_convolution_filters_every_channel_by_itself(taps, dtype, tol):
    filter, x = ShortConvolution(3, taps, heads=2).to(dtype), signal(2, 2, 7, 3, dtype=dtype)
    assert torch.equal(filter(x), x)  # at first
    with torch.no_grad():
        filter.taps.copy_(signal(2, 3, taps))
    for head, c in np.ndindex(2, 3):
        wanted = scipy.signal.lfilter(filter.taps[head, c].detach().numpy(), [1.0], x[:, head, :, c].numpy(), axis=-1)
        close(filter(x)[:, head, :, c] - x[:, head, :, c], wanted, tol)


def test_a_token_shift_delays_half_of_the_channels():
    x = signal(1, 2, 5, 5)
    y = TokenShift()(x)
    assert torch.equal(y[..., 2:], x[..., 2:]) and torch.equal(y[..., 1:, :2], x[..., :-1, :2])
    assert (y[..., 0, :2] == 0).all()


def test_channels_are_dealt_out_in_groups_of_neighbours():
    band, x = Unit(Morlet(8.0)), signal(1, 2, 9, 7)
    with pytest.raises(ValueError, match="must keep their number"):
        Dealt(AllPass(), band)(x)
    y = Dealt(AllPass(), Taps((0.0, 1.0)), Taps((2.0,))).double()(x)
    assert torch.equal(y[..., :3], x[..., :3]) and torch.equal(y[..., 5:], 2 * x[..., 5:])
    torch.testing.assert_close(y[..., 1:, 3:5], x[..., :-1, 3:5])


# places


def test_separate_filters_do_not_share_what_they_learn():
    filter = Separate(Taps((1.0,)), 3)
    for own, a in zip(filter.maps, (1.0, 2.0, 3.0), strict=True):
        own.taps.data.fill_(a)
    x = signal(1, 1, 4, 2, dtype=torch.float32)
    for y, a in zip(filter.together(x, x, x), (1, 2, 3), strict=True):
        torch.testing.assert_close(y, a * x)
    with pytest.raises(ValueError, match="3 separate filters for 2 signals: give copies=2"):
        filter.together(x, x)


@pytest.mark.parametrize("on", ["q", "k", "v", "qk", "qv", "kv", "qkv"])
def test_a_filter_serves_the_projections_that_it_is_for(on):
    torch.manual_seed(0)
    layer, x = Attention(CFG, Taps((0.5, -1.0)), on).double(), signal(1, 9, 16)
    parts = dict(zip("qkv", (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in layer.qkv(x).chunk(3, -1)), strict=True))
    q, k, v = (0.5 * t - torch.nn.functional.pad(t, (0, 0, 1, -1)) if n in on else t for n, t in parts.items())
    scores = (q @ k.mT / 8**0.5).masked_fill(torch.ones(9, 9).triu(1).bool(), -math.inf)
    wanted = layer.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(x), wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("filter", "on"), [(Bank(AllPass(), AllPass()), "k"), (Morlet(8.0), "v"), (Morlet(8.0), "qkv")]
)
def test_a_filter_that_widens_needs_queries_and_keys(filter, on):
    with pytest.raises(ValueError, match="one that widens needs on='qk'"):
        Attention(CFG, filter, on)(signal(1, 9, 16, dtype=torch.float32))


def test_one_draw_serves_all_signals_of_a_layer():
    filter, x = PhaseRandomised(Gaussian(0.1, 0.05)).train(), signal(1, 1, 32, 2)
    a, b, c = filter.together(x, x, x)
    assert torch.equal(a, b) and torch.equal(b, c) and not torch.equal(a, filter.together(x)[0])


# entrants


def test_names_are_of_one_system_each():
    assert not {*ENTRANTS} & {*SYSTEMS, *VARIANTS}
    assert all(s.verdict == "causal" for s in ENTRANTS.values())


@pytest.mark.parametrize("name", ENTRANTS)
def test_an_entrant_is_causal_and_learns(name):
    torch.manual_seed(0)
    model = build(name, CFG)
    assert audit(model, 11, 24, draws=2).verdict == "causal"
    x = torch.randint(11, (4, 24), generator=torch.Generator().manual_seed(0))
    model.train()(x, x)[1].backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in filter_parameters(model))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRANTS)
def test_an_entrant_is_causal_where_the_text_is_longer_than_its_window(name):
    torch.manual_seed(0)
    cfg = GPTConfig(vocab_size=11, block_size=320, n_layer=1, n_head=2, n_embd=16, dropout=0.0)
    assert audit(build(name, cfg), 11, 320, draws=1).verdict == "causal"


def test_taps_learn_at_the_rate_of_the_weights_and_centres_at_their_own_and_neither_decays():
    model = build("taps-resonator", CFG)
    groups = {id(p): g for g in optimiser(model, TrainConfig(lr=1e-3)).param_groups for p in g["params"]}
    assert len(groups) == len([*model.parameters()])
    for name, p in model.named_parameters():
        group = groups[id(p)]
        assert group["lr"] == (1e-2 if name.endswith("centre.logit") else 1e-3)
        assert (group["weight_decay"] > 0) == (p.dim() > 1 and ".filter." not in name)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Taps(()), "at least one"),
        (lambda: Taps((math.nan,)), "finite"),
        (lambda: Resonator(0.6), "must lie inside"),
        (lambda: Resonator(0.1, decay=0), "above 0"),
        (lambda: Dealt(), "at least one filter"),
        (lambda: Dealt(*[AllPass()] * 5)(signal(1, 1, 3, 4)), "5 filters cannot be dealt to 4 channels"),
        (lambda: ShortConvolution(4, heads=2)(signal(1, 2, 3, 5)), "2 heads of 4 channels"),
        (lambda: Separate(AllPass(), 0), "copies = 0"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()
