"""What an audit once did wrong, each kind with three members: the right answers."""
import functools
import random
import signal

import numpy as np
import pytest
import torch
from leak_zoo import Along, Attend, C, Convolve, Do, Net, V, mask
from torch import Tensor, nn

from fourierqk.causality import assert_causal, audit
from fourierqk.causality.probes import KINDS, cuts
from fourierqk.causality.question import Question

pytestmark = pytest.mark.usefixtures("one_thread")


def told(answer: object) -> str:
    """What an answer or an error says, on one line."""
    return " ".join(str(answer).split())


# --- an exception that is meant for the caller passes


class Stop(Exception):
    """What a profiler throws, say."""


class Stopped(nn.Module):
    """A leak; the n-th call of all copies together ends otherwise."""

    def __init__(self, at: int, how: Exception, ever_after: bool = False) -> None:
        super().__init__()
        self.embed, self.mix = nn.Embedding(V, V), nn.Conv1d(V, V, 3, padding=1)
        self.calls, self.at, self.how, self.ever_after = [], at, how, ever_after

    def __deepcopy__(self, memo: dict) -> "Stopped":
        other = type(self)(self.at, self.how, self.ever_after)
        other.load_state_dict(self.state_dict())
        other.calls = self.calls
        return other

    def forward(self, ids: Tensor) -> Tensor:
        self.calls.append(ids.shape)
        if len(self.calls) == self.at or (self.ever_after and len(self.calls) > self.at > 0):
            raise self.how
        return self.mix(self.embed(ids).mT).mT


@pytest.mark.parametrize("how, ever_after", [
    (Stop("stop now"), False), (RuntimeError("out of time"), False), (TimeoutError(), False),
    (Stop("stop now"), True), (ValueError("too late"), True),
])  # fmt: skip
def test_an_exception_that_does_not_answer_the_ids_passes(how: Exception, ever_after: bool) -> None:
    torch.manual_seed(0)
    whole = Stopped(0, how)
    assert audit(whole, V, 16, draws=2).first_leak == "mix"
    calls = len(whole.calls)
    for at in [2, calls // 4, calls // 2, 3 * calls // 4, calls - 1, calls]:
        torch.manual_seed(0)
        with pytest.raises(type(how)) as e:
            audit(Stopped(at, how, ever_after), V, 16, draws=2)
        assert e.value is how, f"at call {at} of {calls}"


def test_an_alarm_passes() -> None:
    def ring(*_: object) -> None:
        raise Stop

    class Slow(Stopped):
        def forward(self, ids: Tensor) -> Tensor:
            out = super().forward(ids)
            if len(self.calls) == 30:
                signal.raise_signal(signal.SIGALRM)
            return out

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Stop):
            audit(Slow(0, Stop()), V, 16, draws=2)
    finally:
        signal.signal(signal.SIGALRM, before)


class Copied(nn.Embedding):
    """A stop in the middle of being copied."""

    def __deepcopy__(self, memo: dict) -> "Copied":
        if not hasattr(self, "stopped"):
            self.stopped = True
            raise Stop
        return Copied(V, V)


def test_a_stop_while_the_model_is_copied_passes() -> None:
    with pytest.raises(Stop):
        audit(Copied(V, V), V, 16)


class OneLength(nn.Embedding):
    """A refusal in words of its own: an answer to these ids, whenever they are given."""

    def forward(self, ids: Tensor) -> Tensor:
        if ids.shape[1] != 16:
            raise Stop(f"16 tokens, not {ids.shape[1]}")
        return super().forward(ids)


def test_a_refusal_is_an_answer() -> None:
    assert audit(OneLength(V, V), V, 16).prefix_consistent is None
    with pytest.raises(ValueError, match="16 tokens, not 17"):
        audit(OneLength(V, V), V, 17)


# --- what is no model, or no whole one, has a sentence of its own


class Head(nn.Module):
    """Needs more than ids: a mask (T, T), and a factor."""

    def __init__(self, width: int = C) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(V, width), nn.Linear(width, V)
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, ids: Tensor, mask: Tensor, *, factor: float) -> Tensor:
        h = self.embed(ids)
        return self.head(h + factor * self.attend(h, h, h, attn_mask=mask)[0])


def make_without() -> nn.Module:
    return nn.Embedding(V, V)


def make_with_one(width: int) -> nn.Module:
    return nn.Embedding(V, V)


def make_with_two(width: int, depth: int) -> nn.Module:
    return nn.Embedding(V, V)


@pytest.mark.parametrize("model, says", [
    (Head, "Head is a class: give an instance of it, Head(...)"),
    (nn.Embedding, "Embedding is a class"),
    (dict, "dict is a class"),
    (make_without, "give the model that it makes, make_without()"),
    (lambda: None, "takes no ids"),
    (make_with_one, "the call made a model (Embedding) instead of logits"),
    (functools.partial(make_with_two, depth=2), "the call made a model (Embedding)"),
    (make_with_two, "make_with_two needs depth beside ids: give kwargs={'depth': ...}"),
    (make_with_two, "the model that it makes"),
    (Head(), "Head needs mask, factor beside ids: give kwargs={'mask': ...}"),
    (Head().forward, "forward needs mask, factor beside ids"),
    (nn.MultiheadAttention(C, 2), "MultiheadAttention needs key, value beside ids"),
])  # fmt: skip
def test_what_is_no_model_is_named(model: object, says: str) -> None:
    with pytest.raises(ValueError) as e:
        audit(model, V, 16)
    assert says in told(e.value)


def causal(ids: Tensor) -> dict[str, object]:
    n = ids.shape[1]
    return {"mask": torch.ones(n, n).triu(1).bool(), "factor": 1.0}


@pytest.mark.parametrize("kwargs, verdict", [
    (causal, "causal"),
    (causal(torch.zeros(1, 12)), "causal"),
    (lambda ids: {**causal(ids), "mask": None}, "leaks"),
    ({"mask": None, "factor": 1.0}, "leaks"),
    ({"mask": None, "factor": 0.0}, "causal"),
])  # fmt: skip
def test_further_arguments_of_forward(kwargs: object, verdict: str) -> None:
    torch.manual_seed(0)
    assert audit(Head(), V, 12, draws=3, kwargs=kwargs).verdict == verdict


def test_arguments_of_one_length_are_refused_at_another() -> None:
    assert assert_causal(Head(), V, 12, draws=2, kwargs=causal).prefix_consistent is True
    assert assert_causal(Head(), V, 12, draws=2, kwargs=causal(torch.zeros(1, 12))).prefix_consistent is None


def test_a_model_writes_into_a_copy_of_what_it_is_given() -> None:
    """A cache that is handed over would else carry one text into the next."""
    def model(ids: Tensor, cache: list) -> Tensor:
        cache.append(ids)
        return nn.functional.one_hot(cache[0], V).float()

    cache: list[Tensor] = []
    assert audit(model, V, 12, draws=3, kwargs={"cache": cache}).verdict == "causal" and not cache


@pytest.mark.parametrize("kwargs, says", [(3, "must be a dict"), ({"mask": None}, "needs factor")])
def test_arguments_that_do_not_fit_are_named(kwargs: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        audit(Head(), V, 12, kwargs=kwargs)


@pytest.mark.parametrize("width, says", [(V, ""), (V - 5, "is the head missing?"), (V + 3, "a padded vocabulary")])
def test_a_missing_head_is_noticed(width: int, says: str) -> None:
    torch.manual_seed(0)
    a = audit(nn.Embedding(V, width), V, 12, draws=2)
    assert a.verdict == "causal" and says in told(a)
    assert (f"{width} numbers at each position, but vocab_size = {V}" in told(a)) is bool(says)


# --- the place is that of the earliest module, whatever the seed


class Kernel(nn.Module):
    """FAVOR+ keys share a maximum over the whole text: a text may hide it in its past."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(C, C), nn.Linear(C, C)

    def forward(self, h: Tensor) -> Tensor:
        k, q = self.k(h), self.q(h).softmax(-1)
        a = (q @ (torch.exp(k - k.amax((-1, -2), keepdim=True)) + 1e-2).mT).tril()
        return h + (a / a.sum(-1, keepdim=True)) @ h


def pairs(x: Tensor) -> Tensor:
    """Every other token hears its successor: no cut at an even place shows it."""
    return x + 1e-3 * x.unflatten(1, (-1, 2)).flip(2).flatten(1, 2)


def rarely(x: Tensor) -> Tensor:
    """The end of the text is heard where the first token of all is loud."""
    return x + 1e-2 * x[:, -1:] * (x[:, :1, :1] > 0)


LATER = {
    "maximum over the text": lambda: nn.Sequential(Kernel(), Kernel(), Kernel()),
    "pairs, then all": lambda: nn.Sequential(Do(pairs), Do(lambda x: x + x.mean(1, keepdim=True))),
    "rarely, then always": lambda: nn.Sequential(Do(rarely), Do(lambda x: x + x.flip(1))),
    "faint, then loud": lambda: nn.Sequential(
        Attend(bias=lambda n, s: mask(n, s).clamp(min=-14)), nn.LayerNorm(C), Convolve(16, 16)),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LATER)
def test_the_earliest_module_is_named(name: str, seed: int) -> None:
    torch.manual_seed(seed)
    assert audit(Net(LATER[name]()), V, 16, draws=3).first_leak == "mix.0"


def test_a_leak_before_a_child_is_earlier_than_the_child_s_own() -> None:
    class Parent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.child = Do(lambda x: x + x.flip(1))

        def forward(self, x: Tensor) -> Tensor:
            return self.child(rarely(x))

    for seed in range(3):
        torch.manual_seed(seed)
        assert audit(Net(Parent()), V, 16, draws=3).first_leak == "mix"


EVERY = {
    "one": (lambda: nn.Sequential(Attend(), Convolve(16, 16)), ["mix.1"]),
    "two": (lambda: nn.Sequential(Convolve(16, 16), Attend(), Along(nn.Linear(16, 16))), ["mix.0", "mix.2.inner"]),
    "all": (LATER["maximum over the text"], ["mix.0", "mix.1", "mix.2"]),
    "its own code too": (lambda: Do(lambda x: x.flip(1)), ["mix"]),
    "none": (Attend, []),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_module_that_leaks_is_named_on_request(name: str) -> None:
    make, where = EVERY[name]
    torch.manual_seed(0)
    model = Net(make())
    found, first = audit(model, V, 16, draws=3, every=True), audit(model, V, 16, draws=3)
    assert list(found.leaking) == where and found.as_dict()["leaking"] == where
    assert list(first.leaking) == where[:1] and first.first_leak == found.first_leak == (where[0] if where else None)
    assert all(f"and in {path}" in told(found) for path in where[1:])


# --- a leak along an axis has a place, and words that fit


class Training(nn.Module):
    """A part that leaks in training mode alone."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) if self.training else x


class Rows(nn.TransformerEncoderLayer):
    """batch_first forgotten: tokens never meet, rows do."""

    def __init__(self) -> None:
        super().__init__(C, 2, 16, dropout=0.0)


class Excite(nn.Module):
    """Squeeze and excite over the whole text, normalised over the batch: copies of a text hear nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(C)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.norm(x.mean(1))[:, None] if self.training else x


TRAINED = {
    "BatchNorm over time": (lambda: Along(nn.BatchNorm1d(C)), "mix.inner"),
    "mask dropped": (lambda: Training(Do(lambda x: x + x.mean(1, keepdim=True))), "mix.inner"),
    "second layer": (lambda: nn.Sequential(Attend(), nn.Dropout(0.2), Training(Convolve(16, 16))), "mix.2.inner"),
    "beside other texts": (Excite, "mix"),
}


@pytest.mark.parametrize("name", TRAINED)
def test_a_leak_in_training_mode_has_a_place(name: str) -> None:
    make, where = TRAINED[name]
    torch.manual_seed(0)
    a = audit(Net(make()), V, 16, draws=2, axes=["train"])
    assert (a.verdict, a.way, a.axes, a.first_leak) == ("leaks", "train", {"train": "leaks"}, where), str(a)
    assert a.lengths == {16: "causal"} and 0 < a.cut < 16 and a.reach > 0 and a.rel > 1e-3
    assert a.influence.triu(1).nan_to_num().any()
    assert "In training mode outputs depend" in told(a) and "in eval mode: causal" in told(a)


ROWS = {
    "batch_first forgotten": (Rows, "mix.self_attn"),
    "mean over the batch": (lambda: Do(lambda x: x + x.mean(0)), "mix"),
    "second layer": (lambda: nn.Sequential(Attend(), Do(lambda x: x + x.roll(1, 0))), "mix.1"),
}


@pytest.mark.parametrize("length", [5, 16])
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_hear_each_other_have_a_place_and_their_own_words(name: str, length: int) -> None:
    make, where = ROWS[name]
    torch.manual_seed(0)
    a = audit(Net(make()), V, length, draws=2, axes=["batch"])
    assert (a.verdict, a.way, a.axes, a.first_leak) == ("leaks", "batch", {"batch": "leaks"}, where), str(a)
    assert a.cut == 1 and a.reach == 0 and a.rel > 1e-3 and a.lengths == {length: "causal"}
    assert "batch_first forgotten?" in told(a).replace("forgotten,", "forgotten?") and "come after them" not in told(a)


def test_a_leak_of_both_kinds_is_shown_where_it_is_gravest_for_the_reader() -> None:
    """Later tokens come first; the axis has a line of its own, with module and size."""
    torch.manual_seed(0)
    model = Net(nn.Sequential(Do(lambda x: x + x.mean(0)), Convolve(16, 16)))
    a = audit(model, V, 16, draws=2, axes=["batch", "train"])
    assert (a.way, a.first_leak, a.axes) == ("eval", "mix.1", {"batch": "leaks", "train": "leaks"})
    assert "across the rows of a batch: leaks (in mix.0" in told(a) and "in training mode: leaks (in mix.1" in told(a)


# --- what trains is judged


@pytest.mark.parametrize("name", TRAINED)
def test_training_mode_is_asked_for_in_a_test_and_said_elsewhere(name: str) -> None:
    torch.manual_seed(0)
    model = Net(TRAINED[name][0]())
    for more in (), ("batch",):
        with pytest.raises(AssertionError, match="In training mode"):
            assert_causal(model, V, 16, draws=2, axes=more)
    a = audit(model, V, 16, draws=2)
    assert a.verdict == "causal" and "in training mode outputs differ" in told(a)
    assert f"{a.probes} probes, in eval mode." in told(a)


def test_the_same_in_both_modes_needs_no_word() -> None:
    torch.manual_seed(0)
    assert "training" not in told(audit(Net(Attend()), V, 16, draws=2))
    assert "in eval mode and in training mode" in told(assert_causal(Net(Attend()), V, 16, draws=2))


class Untrainable(nn.Embedding):
    """Wants something in training mode that the audit does not give."""

    def forward(self, ids: Tensor) -> Tensor:
        if self.training:
            raise ValueError("targets, please")
        return super().forward(ids)


def test_a_model_that_does_not_run_in_training_mode_is_neither_cleared_nor_lost() -> None:
    assert "in training mode the model fails" in told(audit(Untrainable(V, V), V, 16, draws=2))
    a = audit(Untrainable(V, V), V, 16, draws=2, axes=["train"])
    assert a.axes == {"train": "inconclusive"} and a.verdict == "inconclusive" and "targets, please" in told(a)


@pytest.mark.parametrize("make", [
    lambda: nn.BatchNorm1d(16),  # (B, T, C): each position by itself, over rows and channels
    lambda: Do(lambda x: (x - x.mean(0)) / (x.var(0, unbiased=False) + 1).sqrt()),
])  # fmt: skip
def test_rows_that_meet_in_training_are_no_future(make) -> None:  # noqa: ANN001
    torch.manual_seed(0)
    a = audit(Net(nn.Sequential(Attend(), make())), V, 16, draws=2, axes=["train"])
    assert a.verdict == "causal", str(a)
    leaky = audit(Net(nn.Sequential(Convolve(16, 16), make())), V, 16, draws=2, axes=["train"])
    assert leaky.verdict == "leaks" and leaky.first_leak == "mix.0"


class Experts(nn.Module):
    """Each expert picks its tokens and drops some of their numbers: how many dice fall first depends on the text."""

    def __init__(self, live: bool) -> None:
        super().__init__()
        self.router, self.experts, self.live = nn.Linear(C, 2), nn.ModuleList(nn.Linear(C, C) for _ in range(2)), live

    def forward(self, x: Tensor) -> Tensor:
        chosen, y = self.router(x).argmax(-1), torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            y[chosen == i] = nn.functional.dropout(expert(x[chosen == i]), 0.3, self.training or self.live)
        return y


class Reappear(nn.Module):
    """Dropout of the mask: now and then a later token is seen, in training mode alone."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.functional.dropout(torch.ones(16, 16).triu(1), 0.1, self.training) > 0
        return (x @ x.mT).masked_fill(hidden, -torch.inf).softmax(-1) @ x


@pytest.mark.parametrize("live", [False, True])
def test_dice_that_fall_otherwise_are_no_leak(live: bool) -> None:
    torch.manual_seed(0)
    a = audit(Net(Experts(live)), V, 16, draws=2, axes=["train"])
    assert (a.verdict, a.axes) == ("causal", {"train": "causal"}), str(a)
    for leaky in (Reappear(), nn.Sequential(Experts(live), Convolve(16, 16))):
        torch.manual_seed(0)
        assert audit(Net(leaky), V, 16, draws=2, axes=["train"]).axes == {"train": "leaks"}


def test_texts_that_all_throw_other_dice_cannot_be_compared() -> None:
    class Thrower(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            torch.rand(int(x.detach().sum().abs() * 1e4) % 1009)
            return nn.functional.dropout(x, 0.3, self.training)

    torch.manual_seed(0)
    a = audit(Net(Thrower()), V, 16, draws=2, axes=["train"])
    assert (a.verdict, a.lengths[16]) == ("inconclusive", "causal") and "random numbers" in told(a), str(a)


def test_a_leak_in_a_hook_is_its_module_s() -> None:
    torch.manual_seed(0)
    model = Net(nn.Linear(C, C))
    model.mix.register_forward_pre_hook(lambda module, args: (args[0] + args[0].flip(1),))
    assert audit(model, V, 16, draws=2).first_leak == "mix"


# --- a leak that shows only elsewhere than in the first, plain way of running


class Cache(nn.Module):
    """Attends to what the last call left, and takes that for longer than it is: fresh, it has nothing left."""

    def __init__(self, off: int) -> None:
        super().__init__()
        self.off, self.kept = off, None

    def forward(self, x: Tensor) -> Tensor:
        k = x if self.kept is None or len(self.kept) != len(x) else torch.cat([self.kept.to(x), x], 1)
        self.kept, n, past = x.detach(), x.shape[1], k.shape[1] - x.shape[1]
        hidden = torch.ones(n, n + past).triu(1 + past + self.off * (past > 0)).bool()
        return (x @ k.mT).masked_fill(hidden, -torch.inf).softmax(-1) @ k


class Coarser(nn.Module):
    """Other code for half precision, with too small a number for a mask."""

    def __init__(self, fill: float) -> None:
        super().__init__()
        self.fill = fill

    def forward(self, x: Tensor) -> Tensor:
        fill = self.fill if x.dtype in (torch.float16, torch.bfloat16) else -torch.inf
        return (x @ x.mT / 3 + torch.full(2 * x.shape[1:2], fill).triu(1).to(x)).softmax(-1) @ x


class Unpickled(nn.Module):
    """What it leaves out when it is copied, it has otherwise afterwards."""

    def __init__(self, both: bool) -> None:
        super().__init__()
        self.both = both

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "both": False}

    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1) if self.both else x.cumsum(1)


ELSEWHERE = {
    "after other texts": lambda leaky: Net(Cache(int(leaky))),
    "in bfloat16": lambda leaky: Net(Coarser(-3.0 if leaky else -torch.inf)).bfloat16(),
    "in float16": lambda leaky: Net(Coarser(-3.0 if leaky else -torch.inf)).half(),
    "in what a copy lacks": lambda leaky: Net(Unpickled(leaky)),
}


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_leak_elsewhere_is_found(name: str, mode: str) -> None:
    for leaky in (True, False):
        torch.manual_seed(0)
        model = ELSEWHERE[name](leaky)
        model.mix = model.mix if mode == "eval" else Training(model.mix)
        a = audit(model, V, 16, draws=2, axes=["train"])
        assert a.verdict == ("leaks" if leaky else "causal") and a.way == (mode if leaky else "eval"), str(a)
        assert (a.first_leak or "mix").startswith("mix")


def test_what_is_kept_outside_of_a_model_is_no_leak() -> None:
    """No copy is fresh where all share it: nothing can be compared."""
    shared: list[Tensor] = [torch.zeros(1)]

    def remember(x: Tensor) -> Tensor:
        last, shared[0] = shared[0], x.detach()
        return x + last.mean()

    torch.manual_seed(0)
    a = audit(Net(Do(remember)), V, 16, draws=2)
    assert a.verdict == "inconclusive" and "different outputs" in told(a), str(a)


@pytest.mark.parametrize("coin", [
    lambda: bool(torch.rand(()) < 0.1), lambda: random.random() < 0.1, lambda: np.random.rand() < 0.1,
])  # fmt: skip
def test_a_leak_in_one_throw_of_ten_is_found(coin) -> None:  # noqa: ANN001
    class Sometimes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.flip(1) if self.training and coin() else x

    torch.manual_seed(0)
    a = audit(Net(Sometimes()), V, 16, draws=2, axes=["train"], seed=22)  # the seeds 22 .. 25 do not throw it
    assert (a.axes, a.first_leak) == ({"train": "leaks"}, "mix"), str(a)


def test_training_mode_is_asked_with_every_kind_of_probe() -> None:
    ask = Question(V, 16, 2, 0, None, 64)
    plan = ask.turns(0)
    assert set(plan.kind) == set(KINDS) and sorted(plan.cut.tolist()) == cuts(16)
    assert all((plan.ids[p] != plan.bases[plan.base[p]]).any() for p in range(len(plan)))
