"""What an audit once did wrong, each kind with three members: the right answers."""
import functools
import signal

import pytest
import torch
from leak_zoo import C, V
from torch import Tensor, nn

from fourierqk.causality import assert_causal, audit

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
