"""The audit against models whose dependence on the future is known."""
import functools
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from leak_zoo import CLEAN, DORMANT, LEAKS, C, Case, Net, V, prefix_mean
from torch import Tensor, nn

from fourierqk.leakage import audit
from fourierqk.model import GPT, GPTConfig
from fourierqk.probes import KINDS, cuts, plan_redraws
from fourierqk.zoo import build

SETTINGS = [(torch.float32, 24, 0), (torch.float64, 33, 1), (torch.float32, 31, 2)]  # precision, length, seed


@pytest.fixture(autouse=True)
def one_thread():
    """Models this small spend their time waiting for a second thread, above all on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def made(case: Case, dtype: torch.dtype, length: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    model = case.make(length)
    return model.double() if dtype == torch.float64 else model


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("name", LEAKS)
def test_leaks_are_found_and_placed(name: str, setting: tuple) -> None:
    a = audit(made(LEAKS[name], *setting), V, setting[1], seed=setting[2])
    assert (a.verdict, a.realised, a.first_leak) == ("leaks", True, LEAKS[name].where), str(a)
    assert a.reach >= 1 and a.rel > 0


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("name", DORMANT)
def test_dormant_leaks_are_structural(name: str, setting: tuple) -> None:
    a = audit(made(DORMANT[name], *setting), V, setting[1], seed=setting[2])
    assert a.verdict == "leaks" and a.structural and not a.realised, str(a)
    assert a.first_leak == DORMANT[name].where and a.reach >= 1


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("name", CLEAN)
def test_clean_models_pass(name: str, setting: tuple) -> None:
    a = audit(made(CLEAN[name], *setting), V, setting[1], seed=setting[2])
    assert (a.verdict, a.structural, a.reach, a.first_leak) == ("causal", False, 0, None), str(a)


@pytest.mark.parametrize("length", [32, 45])
@pytest.mark.parametrize("name, verdict", [
    ("base-dot", "causal"), ("sliding-fourier-qk", "causal"), ("causal-morlet", "causal"),
    ("random-qk", "leaks"), ("fourier-qk", "leaks"), ("multifourier-qk", "leaks"),
])  # fmt: skip
def test_untrained_systems(name: str, verdict: str, length: int) -> None:
    torch.manual_seed(length)
    a = audit(build(name, GPTConfig(20, block_size=48, n_layer=2, n_head=2, n_embd=16)), 20, length)
    assert a.verdict == verdict, str(a)
    assert a.first_leak == ("blocks.0.mixer.filter.inner" if verdict == "leaks" else None)


class Ahead(nn.Module):
    """Logits at t are a function of tokens t and t + lag (silence beyond the end), and of nothing else."""

    def __init__(self, lag: int) -> None:
        super().__init__()
        self.lag, self.now, self.then = lag, nn.Embedding(V, V), nn.Embedding(V + 1, V)

    def forward(self, ids: Tensor) -> Tensor:
        return self.now(ids) + self.then(F.pad(ids[:, self.lag :], (0, self.lag), value=V))


@pytest.mark.parametrize("lag", [1, 2, 7])
def test_map_reach_and_lags_are_those_of_the_model(lag: int) -> None:
    torch.manual_seed(0)
    a = audit(Ahead(lag), V, 16)
    t, s = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
    assert a.verdict == "leaks" and a.reach == lag
    assert torch.equal(a.influence > 0, (s == t) | (s == t + lag))
    lags, influence = a.lag_profile
    assert lags[influence > 0].tolist() == [-lag, 0]


def test_a_limited_map_is_unknown_elsewhere() -> None:
    a = audit(Ahead(1), V, 40, positions=10)
    edited = ~a.influence.isnan().all(0)
    assert a.verdict == "leaks" and 10 <= edited.sum() < 40 and edited[0] and edited[-1]
    assert not a.influence[:, edited].isnan().any()


def test_the_model_is_left_as_it_was() -> None:
    torch.manual_seed(0)
    model = Net(nn.Sequential(nn.Dropout(0.5), nn.Linear(C, C)))
    model.mix[1].eval()  # modes differ from module to module
    model.register_buffer("count", torch.zeros(3))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    modes = [m.training for m in model.modules()]
    dice = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    for subject in (model, lambda ids: model(ids), model.forward):
        audit(subject, V, 12)
        assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
        assert [m.training for m in model.modules()] == modes
        assert torch.equal(torch.get_rng_state(), dice[0]) and random.getstate() == dice[1]
        assert (np.random.get_state()[1] == dice[2]).all()
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_buffers_of_a_function_s_model_are_put_back() -> None:
    model = nn.Sequential(nn.Embedding(V, V))
    model.register_buffer("calls", torch.zeros(()))

    def count(ids: Tensor) -> Tensor:
        model.calls += 1
        return model(ids)

    assert audit(count, V, 8).verdict == "causal" and model.calls == 0


class Holder:
    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


@pytest.mark.parametrize("leaky", [True, False])
@pytest.mark.parametrize("dress", [
    lambda m: lambda ids: m(ids), lambda m: lambda ids: (m(ids), None), lambda m: lambda ids: {"logits": m(ids)},
    lambda m: lambda ids: Holder(m(ids)), lambda m: m.forward, lambda m: functools.partial(m),
])  # fmt: skip
def test_any_callable(dress, leaky: bool) -> None:  # noqa: ANN001
    torch.manual_seed(0)
    a = audit(dress(LEAKS["unpadded FFT"].make(16) if leaky else CLEAN["padded FFT"].make(16)), V, 16)
    assert a.verdict == ("leaks" if leaky else "causal"), str(a)
    assert a.first_leak == ("mix" if leaky else None) and a.structural in (True if leaky else None,)


class LastOnly(nn.Module):
    """nanoGPT's habit: without targets, the logits of the last position alone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        z = self.inner(idx)
        return (z[:, [-1]], None) if targets is None else (z, F.cross_entropy(z.flatten(0, 1), targets.flatten()))


@pytest.mark.parametrize("name, verdict", [("causal attention", "causal"), ("unpadded FFT", "leaks")])
def test_nanogpt_style(name: str, verdict: str) -> None:
    torch.manual_seed(0)
    assert audit(LastOnly({**LEAKS, **CLEAN}[name].make(16)), V, 16).verdict == verdict


def test_half_precision_weights_are_judged_in_float32() -> None:
    torch.manual_seed(0)
    cfg = GPTConfig(V, block_size=16, n_layer=1, n_head=2, n_embd=16)
    a = audit(GPT(cfg).bfloat16(), V, 16)
    assert a.verdict == "causal" and "half-precision" in str(a)
    assert audit(build("random-qk", cfg).bfloat16(), V, 16).verdict == "leaks"


class Noisy(nn.Module):
    """Noise that no seed of ours controls."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(V, V)

    def forward(self, ids: Tensor) -> Tensor:
        own = torch.Generator()
        own.seed()
        return self.embed(ids) + torch.randn(V, generator=own)


class Remembering(nn.Module):
    """Adds what it saw in its last call: state between calls, not a leak within one."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.last = nn.Embedding(V, V), None

    def forward(self, ids: Tensor) -> Tensor:
        x = prefix_mean(self.embed(ids))
        y = x if self.last is None else x + self.last.mean()
        self.last = x.detach()
        return y


class Coupled(nn.Module):
    """Adds the mean over the batch, position by position: rows hear each other, not the future."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(V, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        return x + x.mean(0)


@pytest.mark.parametrize("make, verdict, says", [
    (Noisy, "inconclusive", "different outputs"),
    (Remembering, "causal", "state between calls"),
    (Coupled, "causal", "other rows"),
    (CLEAN["live dropout"].make, "causal", "dice"),
    (lambda n: lambda ids: torch.zeros(*ids.shape, V), "inconclusive", "vacuous"),
    (lambda n: lambda ids: torch.full((*ids.shape, V), -1.0).masked_fill(torch.arange(n)[:, None] == 3, torch.nan)
     + F.one_hot(ids, V), "inconclusive", "NaN at 1 of 16"),
    (CLEAN["zero-initialised head, clean"].make, "causal", "vacuous"),
])  # fmt: skip
def test_odd_behaviour_is_named(make, verdict: str, says: str) -> None:  # noqa: ANN001
    torch.manual_seed(0)
    a = audit(make() if isinstance(make, type) else make(16), V, 16)
    assert a.verdict == verdict and says in str(a), str(a)


@pytest.mark.parametrize("model, how, says", [
    (lambda ids: ids.float(), {}, "expected logits"),
    (lambda ids: F.one_hot(ids, V), {}, "expected logits"),
    (lambda ids: F.one_hot(ids[:, 1:], V).float(), {}, "expected logits"),
    (lambda ids: "no", {}, "expected logits"),
    (lambda ids: torch.full((*ids.shape, V), torch.nan), {}, "NaN at every position"),
    (nn.Embedding(V - 3, 4), {}, "vocab_size"),
    (Net(nn.LayerNorm([9, C])), {}, "length"),
    (Net(nn.Identity()), {"vocab_size": 1}, "vocab_size = 1"),
    (Net(nn.Identity()), {"length": 1}, "at least 2"),
    (Net(nn.Identity()), {"draws": 0}, "draws = 0"),
    (Net(nn.Identity()), {"text": torch.tensor([1, 2, 99] * 10)}, "text must be"),
    (GPT(GPTConfig(V, block_size=8, n_layer=1, n_head=1, n_embd=4)), {}, "block_size = 8"),
    (3, {}, "not int"),
])  # fmt: skip
def test_bad_input(model, how: dict, says: str) -> None:  # noqa: ANN001
    with pytest.raises(ValueError, match=says):
        audit(model, **{"vocab_size": V, "length": 16, **how})


@pytest.mark.parametrize("length", [2, 3, 17, 64])
@pytest.mark.parametrize("vocab_size", [2, 50])
def test_probes_agree_before_the_cut_and_differ_after(vocab_size: int, length: int) -> None:
    plan = plan_redraws(vocab_size, length, 20, seed=3)
    same = plan.ids == plan.bases[plan.base]
    before = torch.arange(length) < plan.cut[:, None]
    assert same[before].all() and not same.all(1).any()
    assert set(plan.kind) == set(KINDS) and 0 <= plan.ids.min() and plan.ids.max() < vocab_size
    assert torch.bincount(plan.cut)[1:].max() == 20 and int(plan.cut.max()) == length - 1


def test_cuts() -> None:
    found = cuts(256)
    assert {*range(1, 9), 15, 16, 17, 31, 32, 33, 127, 128, 129, 255} <= set(found) <= set(range(1, 256))
    assert cuts(2) == [1]


def test_real_text_opens_a_gate_that_random_text_does_not() -> None:
    def gate(ids: Tensor) -> Tensor:  # opens after a run of five zeros, then hears the last token
        run = (ids[:, :5] == 0).all(1)
        return F.one_hot(ids, V).float() + (run * ids[:, -1])[:, None, None]

    text = torch.zeros(200, dtype=torch.long)
    text[::7] = 5
    assert audit(gate, V, 16, text=text).verdict == "leaks"


def test_what_a_reader_sees() -> None:
    torch.manual_seed(0)
    leak, clean = (audit(g[n].make(16), V, 16) for g, n in ((LEAKS, "unpadded FFT"), (CLEAN, "causal attention")))
    assert "LEAKS" in str(leak) and "enters in mix" in str(leak) and "honest loss" in str(leak)
    assert "CAUSAL" in str(clean) and f"in {clean.probes} probes" in str(clean) and "not a proof" in str(clean)
    opaque = audit(lambda ids: F.one_hot(ids, V).float(), V, 8)
    assert "<strong" in leak._repr_html_() and "&lt;lambda&gt;" in opaque._repr_html_()
    assert len(repr(leak)) < 1500
