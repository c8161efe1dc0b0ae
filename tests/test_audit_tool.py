"""The audit as a tool: what it takes, what it leaves alone, what it says, and what it does with odd models."""
import functools
import json
import random
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from leak_zoo import CLEAN, LEAKS, Along, Attend, C, Do, Net, V, mixed, prefix_mean
from torch import Tensor, nn

from fourierqk import adapter
from fourierqk.adapter import Adapter
from fourierqk.causality.probes import KINDS, cuts, plan_redraws
from fourierqk.causality.procedure import assert_causal, audit
from fourierqk.model import GPT, GPTConfig
from fourierqk.zoo import build

pytestmark = pytest.mark.usefixtures("one_thread")


def told(answer: object) -> str:
    """What an answer or an error says, on one line."""
    return " ".join(str(answer).split())


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
    assert a.verdict == "causal" and "half-precision" in told(a)
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


class Locked(Remembering):
    """Keeps state and cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Alone(nn.Embedding):
    """Reads one text at a time."""

    def __init__(self) -> None:
        super().__init__(V, V)

    def forward(self, ids: Tensor) -> Tensor:
        if len(ids) > 1:
            raise RuntimeError("one text, please")
        return super().forward(ids)


class Together(nn.Embedding):
    """Loses the axis of the batch where there is one text only."""

    def __init__(self) -> None:
        super().__init__(V, V)

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids.squeeze())


@pytest.mark.parametrize("make, verdict, says", [
    (Noisy, "inconclusive", "different outputs"),
    (Locked, "inconclusive", "cannot be copied"),
    (Alone, "causal", "one at a time"),
    (Together, "causal", "no dependence"),
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
    assert a.verdict == verdict and says.lower() in told(a).lower(), str(a)


@pytest.mark.parametrize("model, how, says", [
    (lambda ids: ids.float(), {}, "expected logits"),
    (lambda ids: F.one_hot(ids, V), {}, "expected logits"),
    (lambda ids: F.one_hot(ids[:, 1:], V).float(), {}, "expected logits"),
    (lambda ids: "no", {}, "expected logits"),
    (lambda ids: torch.full((*ids.shape, V), torch.nan), {}, "NaN at every position"),
    (lambda ids: torch.full((*ids.shape, V), -torch.inf), {}, "infinity at every position"),
    (lambda ids: torch.zeros(*ids.shape, 0), {}, "expected logits"),
    (lambda ids: torch.zeros(*ids.shape, int(ids.sum()) % 3 + 2), {}, "change their shape"),
    (nn.Embedding(V - 3, 4), {}, "vocab_size"),
    (Net(nn.LayerNorm([9, C])), {}, "length"),
    (Net(nn.Identity()), {"vocab_size": 1}, "vocab_size = 1"),
    (Net(nn.Identity()), {"length": 1}, "at least 2"),
    (Net(nn.Identity()), {"draws": 0}, "draws = 0"),
    (Net(nn.Identity()), {"draws": 2.5}, "draws = 2.5"),
    (Net(nn.Identity()), {"length": 16.0}, "length = 16.0"),
    (Net(nn.Identity()), {"seed": "x"}, "seed = 'x'"),
    (Net(nn.Identity()), {"positions": 0}, "positions = 0"),
    (Net(nn.Identity()), {"lengths": [1]}, "length = 1"),
    (Net(nn.Identity()), {"axes": ["time"]}, "unknown axis 'time': there are train, batch"),
    (Net(nn.Identity()), {"axes": ["trian"]}, "did you mean train?"),
    (Net(nn.Identity()), {"axes": "train"}, "axes = 'train' must be a list"),
    (Net(nn.Identity()), {"text": [1, 2, 3]}, "text must be"),
    (Net(nn.Identity()), {"text": torch.rand(50)}, "text must be"),
    (Net(nn.Identity()), {"text": torch.arange(5)}, "text must be"),
    (Net(nn.Identity()), {"text": torch.tensor([1, 2, 99] * 10)}, "text must be"),
    (GPT(GPTConfig(V, block_size=8, n_layer=1, n_head=1, n_embd=4)), {}, "reads at most 8 tokens"),
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


@pytest.mark.parametrize("draws", [3, 6, 20])
@pytest.mark.parametrize("vocab_size", [7, 40, 60, 65])
def test_every_token_gets_its_turn(vocab_size: int, draws: int) -> None:
    """Whatever factors the number of tokens shares with that of the draws: a leak may wait for one token."""
    plan = plan_redraws(vocab_size, 128, draws, seed=3)
    constant = [i for i, kind in enumerate(plan.kind) if kind == "constant"]
    assert len({int(plan.ids[i, -1]) for i in constant}) >= min(vocab_size, len(constant)) - 1  # one may equal its base


def test_every_token_stands_alone_in_a_long_suffix() -> None:
    plan = plan_redraws(60, 128, 20, seed=0)
    last = {int(y[-1]) for y, cut in zip(plan.ids, plan.cut, strict=True) if (y[cut:] == y[-1]).all() and cut < 120}
    assert last == {*range(60)}


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
    assert "LEAKS" in str(leak) and "enters in mix" in told(leak) and "honest loss" in told(leak)
    assert "CAUSAL" in str(clean) and f"in {clean.probes} probes" in told(clean) and "not a proof" in told(clean)
    opaque = audit(lambda ids: F.one_hot(ids, V).float(), V, 8)
    assert "<strong" in leak._repr_html_() and "&lt;lambda&gt;" in opaque._repr_html_()
    assert len(repr(leak)) < 1500 and max(map(len, str(leak).splitlines())) <= 88


def test_modules_are_found_wherever_a_callable_keeps_them() -> None:
    inner = nn.Linear(2, 2)
    outer = nn.Sequential(inner, nn.Dropout())

    class Slotted:
        __slots__ = ("held",)

        def __init__(self) -> None:
            self.held = outer

        def __call__(self, ids: Tensor) -> Tensor:
            return self.held(ids)

    kept = {"models": [outer]}
    second = lambda ids: kept["models"][0](ids)  # noqa: E731
    unregistered = Do(len)
    unregistered.list = [outer]
    for model in (outer, outer.forward, second, lambda ids: second(ids), functools.partial(second), Slotted(),
                  lambda ids, m=outer: m(ids), functools.partial(outer)):  # fmt: skip
        assert Adapter(model).roots == [outer] and set(Adapter(model).modules) == {outer, inner, outer[1]}
    assert set(Adapter(unregistered).modules) >= {unregistered, outer, inner}
    assert Adapter(len).roots == Adapter(3).roots == []


def test_modules_are_looked_for_once_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    searches, search = [], adapter.roots
    monkeypatch.setattr(adapter, "roots", lambda model: searches.append(model) or search(model))
    torch.manual_seed(0)
    for model in (LEAKS["unpadded FFT"].make(16), CLEAN["padded FFT"].make(16)):
        searches.clear()
        audit(model, V, 16)
        twice = len(searches) - len({id(model) for model in searches})
        assert twice <= 2 and len(searches) < 30, "beside the check of lengths and the look after the first call"


def test_a_hidden_model_is_put_to_rest() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(V, C), nn.Dropout(0.5), nn.Linear(C, V)).train()
    kept = {"models": [model]}
    a = audit(lambda ids: kept["models"][0](ids), V, 12)
    assert a.verdict == "causal" and "dice" not in told(a) and all(m.training for m in model.modules())


class Itself(nn.Embedding):
    """A model whose copy is itself: re-randomising it would destroy it."""

    def __deepcopy__(self, memo: dict) -> "Itself":
        return self


def test_a_model_that_copies_to_itself_keeps_its_weights() -> None:
    model = Itself(V, V)
    before = model.weight.detach().clone()
    assert audit(model, V, 12).verdict == "causal" and torch.equal(model.weight, before)


def test_empty_parameters_do_no_harm() -> None:
    model = Net(nn.Identity())
    model.empty, model.hollow = nn.Parameter(torch.zeros(0, 5)), nn.Parameter(torch.zeros(3, 0))
    assert audit(model, V, 12).verdict == "causal"


def test_training_mode_is_another_question() -> None:
    torch.manual_seed(0)
    model = Net(nn.Sequential(Attend(), Along(nn.BatchNorm1d(C)), nn.Dropout(0.2)))
    assert audit(model, V, 16).verdict == "causal"
    a = audit(model, V, 16, axes=["train"])
    assert a.verdict == "leaks" and a.axes == {"train": "leaks"} and "in training mode: leaks" in told(a)
    assert audit(Net(nn.Sequential(Attend(), nn.Dropout(0.2))), V, 16, axes=["train"]).verdict == "causal"


def test_rows_of_a_batch_are_another_question() -> None:
    torch.manual_seed(0)
    a = audit(Coupled(), V, 16, axes=["batch"])
    assert a.verdict == "leaks" and a.axes == {"batch": "leaks"} and audit(Coupled(), V, 16).verdict == "causal"
    assert audit(Net(Attend()), V, 16, axes=["batch", "train"]).axes == {"batch": "causal", "train": "causal"}


@pytest.mark.parametrize("name, consistent", [
    ("causal attention", True), ("LSTM", True), ("log-length scaling", False), ("unpadded FFT", False),
])  # fmt: skip
def test_prefixes(name: str, consistent: bool) -> None:
    torch.manual_seed(0)
    assert audit({**LEAKS, **CLEAN}[name].make(24), V, 24).prefix_consistent is consistent
    assert audit(LEAKS["LayerNorm over time"].make(24), V, 24).prefix_consistent is None  # it takes one length only


def test_assert_causal_names_module_cut_and_size() -> None:
    torch.manual_seed(0)
    assert assert_causal(CLEAN["causal attention"].make(16), V, 16, draws=4).verdict == "causal"
    with pytest.raises(AssertionError) as e:
        assert_causal(LEAKS["second layer"].make(16), V, 16)
    for said in ("enters in mix.2", "tokens from position", "of what moved after it"):
        assert said in told(e.value)
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        assert_causal(Noisy(), V, 16)


def test_the_answer_as_json() -> None:
    torch.manual_seed(0)
    a = audit(mixed(lambda x: x.flip(1))(16), V, 16, axes=["batch"], lengths=[20])
    told = json.loads(json.dumps(a.as_dict(), allow_nan=False))
    assert set(told) == {
        "schema", "verdict", "name", "length", "probes", "realised", "structural", "rel", "cut", "reach", "first_leak",
        "prefix_consistent", "evidence", "axes", "lengths", "leaking", "way",
    }  # fmt: skip
    assert told["schema"] == 1 and told["verdict"] == "leaks" and told["first_leak"] == "mix"
    assert told["lengths"] == {"16": "leaks", "20": "leaks"} and told["axes"] == {"batch": "causal"}


class FloatMask(nn.Module):
    """nn.MultiheadAttention as its documentation has it: torch itself misreads this mask beside float64 queries."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(C, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.inner(x, x, x, attn_mask=hidden, need_weights=False)[0]


def test_a_float64_copy_that_computes_something_else_is_no_witness() -> None:
    torch.manual_seed(0)
    a = audit(Net(FloatMask()), V, 32)
    assert a.verdict == "causal", str(a)


@pytest.mark.parametrize("leaky", [True, False])
def test_an_output_whose_memory_is_used_again(leaky: bool) -> None:
    torch.manual_seed(0)
    inner, memory = Net(Do(lambda x: x.flip(1) if leaky else x)), {}

    def model(ids: Tensor) -> Tensor:
        out = memory.setdefault(ids.shape, torch.empty(*ids.shape, V))
        return out.copy_(inner(ids))

    assert audit(model, V, 16).verdict == ("leaks" if leaky else "causal")


class Flipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(V, C), nn.Linear(C, V)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.embed(ids).flip(1))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scripts_are_audited_as_they_are() -> None:
    torch.manual_seed(0)
    for model in (torch.jit.script(Flipped()), torch.jit.freeze(torch.jit.script(Flipped().eval()))):
        assert audit(model, V, 16, draws=4).verdict == "leaks"
    assert audit(torch.jit.script(nn.Sequential(nn.Embedding(V, C), nn.Linear(C, V))), V, 16).verdict == "causal"


@pytest.mark.parametrize("opens", [
    lambda self: torch.is_grad_enabled(), lambda self: self.training and bool(torch.rand(()) < 0.5),
    lambda self: self.training and np.random.rand() < 0.5,
])  # fmt: skip
def test_training_mode_has_gradients_and_several_throws_of_the_dice(opens) -> None:  # noqa: ANN001
    class Sometimes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.flip(1) if opens(self) else x

    torch.manual_seed(0)
    model = Net(Sometimes())
    assert audit(model, V, 16).verdict == "causal"
    assert audit(model, V, 16, axes=["train"]).axes == {"train": "leaks"}


def test_a_model_that_ends_the_program_does_not() -> None:
    with pytest.raises(ValueError, match="SystemExit"):
        audit(lambda ids: exit(0), V, 16)


class Scores(nn.Module):
    """The scores of all pairs of tokens, (B, T, T): what is masked later is no leak."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ x.mT


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scores = Scores()

    def forward(self, x: Tensor) -> Tensor:
        s = self.scores(x)
        return s.masked_fill(torch.ones_like(s).triu(1).bool(), -torch.inf).softmax(-1) @ x


def test_scores_before_their_mask_are_not_blamed() -> None:
    torch.manual_seed(0)
    a = audit(Net(nn.Sequential(Masked(), Do(lambda x: x + x.mean(1, keepdim=True)))), V, 16)
    assert (a.verdict, a.first_leak) == ("leaks", "mix.1"), str(a)
