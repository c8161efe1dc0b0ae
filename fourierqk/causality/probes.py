"""Probes of the future: pairs of texts that agree before a cut, and how far a model's outputs move before it.

The texts keep their length; only tokens from the cut on are drawn anew. Whatever moves before the cut is either the
future or round-off. Both texts of a pair sit in the same row of batches of the same shape, since kernels may round
differently from row to row; the dice of a model that throws them are re-seeded before every call.
"""
import copy
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import torch
from torch import Tensor, nn

from fourierqk.adapter import Model, at_rest, device_of, logits, modules_of
from fourierqk.causality.rounding import Rounding, grain, shake

__all__ = [
    "Bench", "Movement", "Pair", "Plan", "Subject", "alike", "change", "cuts", "kept", "measure", "plan_edits",
    "plan_redraws",
]  # fmt: skip

KINDS = ("uniform", "unigram", "constant", "permuted", "edit at the cut", "edit at the end")


@contextmanager
def kept(model: Model) -> Iterator[None]:
    """At rest, with weights, buffers and every random generator put back afterwards."""
    state = [(held, name, t, t.detach().clone()) for m in modules_of(model) for held in (m._parameters, m._buffers)
             for name, t in held.items() if t is not None]  # fmt: skip
    devices = [device_of(model)] if device_of(model).type == "cuda" else []
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices), at_rest(model):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        for held, name, t, value in state:
            held[name] = t
            if not torch.equal(t, value):
                t.data.copy_(value)


@dataclass(frozen=True)
class Subject:
    """A model as it is probed: re-seeded before each call, and copied anew where it keeps state between calls."""

    model: Model
    seed: int = 0
    forgetful: bool = False  # a copy that has seen nothing for every call
    training: bool = False  # in training mode instead of eval mode
    copies: int = 1  # of each text in a batch: some models behave otherwise in a batch of one
    key: int = 0  # of the rounding (see `rounding`); 0 is the machine's own
    grain: float = 0.0  # the precision that the weights were given in, before any cast of ours

    @cached_property
    def device(self) -> torch.device:
        return device_of(self.model)

    def instance(self) -> Model:
        _reseed_torch(self.seed)
        random.seed(self.seed)
        np.random.seed(self.seed % 2**32)
        return copy.deepcopy(self.model) if self.forgetful else self.model

    def arithmetic(self) -> Rounding | nullcontext:
        return Rounding(self.key) if self.key else nullcontext()

    def __call__(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> logits (B, T, V), in float32 at least, detached, still on the model's device."""
        model, ids = self.instance(), ids.to(self.device).repeat_interleave(self.copies, 0)
        with at_rest(model, self.training), self.arithmetic():
            z = logits(model, ids)[:: self.copies].detach().clone()  # a model may use its output's memory again
        return z if z.dtype == torch.float64 else z.float()

    def copied(self, dtype: torch.dtype | None = None) -> "Subject | None":
        """A copy, in float32 or float64 if given; None where the model is no module or refuses to be copied.

        Complex weights stay as they are: a spectrum rounded to complex64 does not get finer by being cast.
        """
        if not isinstance(self.model, nn.Module):
            return None
        try:
            model = copy.deepcopy(self.model)
        except Exception:  # whatever a stranger's class objects to
            return None
        if {id(m) for m in modules_of(model)} & {id(m) for m in modules_of(self.model)}:
            return None  # a copy that shares its parts is none
        coarse = self.grain or grain(*_weights(model))
        if dtype:
            model = model.double() if dtype == torch.float64 else model.float()  # .to(dtype) would drop imaginary parts
        return replace(self, model=model, grain=coarse)

    def rounded(self, key: int) -> "Subject":
        """The same computation in other roundings, its weights moved by the precision that they were given in."""
        own = self.copied() if key else None
        if own is None:
            return replace(self, key=key)
        for t in _weights(own.model):
            shake(t.data, min(own.grain, torch.finfo(torch.float32).eps), key)
        return replace(own, key=key)


def _reseed_torch(seed: int) -> None:
    """As torch.manual_seed, which also leaves word for every absent device: dear in a loop over small models."""
    if _only_a_cpu():
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@cache
def _only_a_cpu() -> bool:
    """Whether no device beside it throws dice."""
    return not any(device.is_available() for device in (torch.cuda, torch.backends.mps, torch.xpu))


def _weights(model: nn.Module) -> list[Tensor]:
    """Floating-point parameters and buffers, each once."""
    held = {id(t): t for m in modules_of(model) for t in (*m._parameters.values(), *m._buffers.values())
            if t is not None and t.numel() and (t.is_floating_point() or t.is_complex())}  # fmt: skip
    return list(held.values())


@dataclass(frozen=True)
class Pair:
    """One probe: a text (T,) that agrees with its base (T,) before the cut."""

    base: Tensor
    text: Tensor
    cut: int
    kind: str


@dataclass(frozen=True)
class Plan:
    """Probes: text `ids[p]` agrees with `bases[base[p]]` before `cut[p]`."""

    bases: Tensor  # (K, T)
    ids: Tensor  # (P, T)
    base: Tensor  # (P,)
    cut: Tensor  # (P,)
    kind: tuple[str, ...]  # of length P

    def __len__(self) -> int:
        return len(self.ids)

    def pair(self, p: int) -> Pair:
        return Pair(self.bases[self.base[p]], self.ids[p], int(self.cut[p]), self.kind[p])

    def some(self, count: int) -> "Plan":
        """About so many of the probes, evenly spread."""
        return self.take(list(range(0, len(self), math.ceil(len(self) / count))))

    def take(self, index: list[int]) -> "Plan":
        return Plan(self.bases, self.ids[index], self.base[index], self.cut[index], tuple(self.kind[i] for i in index))


def cuts(length: int, seed: int = 0) -> list[int]:
    """Where to cut: 1 .. 8, the powers of two and their neighbours, some random places, the last token."""
    powers = {2**k + d for k in range(3, length.bit_length() + 1) for d in (-1, 0, 1)}
    rng = random.Random(seed)
    found = {*range(1, 9), *powers, *(rng.randint(1, length) for _ in range(3)), length // 2, length - 1}
    return sorted(c for c in found if 1 <= c < length)


def _bases(vocab_size: int, length: int, text: Tensor | None, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Five texts of different kinds (K, T), and the token frequencies (V,) of which the unigram draws are made."""
    zipf = 1 / torch.arange(1, vocab_size + 1, dtype=torch.float64)
    weights = zipf[torch.randperm(vocab_size, generator=rng)]
    uniform = torch.randint(vocab_size, (2, length), generator=rng)
    natural = torch.multinomial(weights, length, replacement=True, generator=rng)
    constant = torch.randint(vocab_size, (1,), generator=rng).expand(length)
    few = torch.randint(vocab_size, (3,), generator=rng)[torch.randint(3, (length,), generator=rng)]
    bases = torch.stack([uniform[0], natural, constant, few, uniform[1]])
    if text is not None:
        starts = torch.randint(len(text) - length + 1, (2,), generator=rng)
        bases[:2] = text[starts[:, None] + torch.arange(length)]
        weights = torch.bincount(text, minlength=vocab_size).double()
    return bases, weights


def plan_redraws(vocab_size: int, length: int, draws: int, seed: int, text: Tensor | None = None) -> Plan:
    """`draws` re-drawn suffixes at each cut, of every kind, on five kinds of text."""
    rng = torch.Generator().manual_seed(seed)
    bases, weights = _bases(vocab_size, length, text, rng)
    deck = torch.randperm(vocab_size, generator=rng).tolist()  # so that every token gets its turn
    ids, cut, kind = [], [], []
    for c in cuts(length, seed):
        for j in range(draws):
            x, p = bases[len(ids) % len(bases)], len(ids)
            y, name = x.clone(), KINDS[j % len(KINDS)]
            if name == "uniform":
                y[c:] = torch.randint(vocab_size, (length - c,), generator=rng)
            elif name == "unigram":
                y[c:] = torch.multinomial(weights, length - c, replacement=True, generator=rng)
            elif name == "constant":
                y[c:] = deck[p % vocab_size]
            elif name == "permuted":
                y[c:] = x[c:][torch.randperm(length - c, generator=rng)]
            if torch.equal(x, y):  # an edit, or a draw that came out the same
                at = length - 1 if name == "edit at the end" else c
                y[at] = _another(int(x[at]), deck[p % vocab_size], vocab_size)
            ids.append(y)
            cut.append(c)
            kind.append(name)
    return Plan(bases, torch.stack(ids), torch.arange(len(ids)) % len(bases), torch.tensor(cut), tuple(kind))


def _another(old: int, new: int, vocab_size: int) -> int:
    return new if new != old else (new + 1) % vocab_size


def plan_edits(base: Tensor, vocab_size: int, positions: list[int], edits: int, seed: int) -> Plan:
    """At each position in turn, `edits` times, one token of a text (T,) replaced by another: probes of the map."""
    rng = torch.Generator().manual_seed(seed)
    cut = torch.tensor([s for s in positions for _ in range(edits)])
    ids = base.repeat(len(cut), 1)
    shift = torch.randint(1, vocab_size, (len(cut),), generator=rng)  # never 0: always another token
    rows = torch.arange(len(cut))
    ids[rows, cut] = (ids[rows, cut] + shift) % vocab_size
    return Plan(base[None], ids, torch.zeros_like(cut), cut, ("one edit",) * len(cut))


@dataclass(frozen=True)
class Bench:
    """How probes are run: rows in a batch, what to divide each logit's movement by, and whom to tell of progress."""

    rows: int = 1
    unit: Tensor | float = 1.0  # (V,): above 1 for logits that move out of all proportion to the others
    tick: Callable[[int], object] = lambda rows: None


@dataclass(frozen=True)
class Movement:
    """How far each position's logits moved, (P, T) float64: the largest change over the vocabulary, in each probe."""

    size: Tensor
    cut: Tensor  # (P,)

    @property
    def before(self) -> Tensor:
        """The largest movement before the cut of each probe, (P,)."""
        return self.size.masked_fill(torch.arange(self.size.shape[1]) >= self.cut[:, None], 0).amax(1)

    @property
    def after(self) -> Tensor:
        """What a probe's movement is measured by, (P,): the largest finite one at or after its cut.

        Taken over all probes at the same cut, and at least a tenth of the median over cuts: one edit that hardly
        matters must not make much of a little.
        """
        own = self.size.masked_fill(torch.arange(self.size.shape[1]) < self.cut[:, None], 0)
        own = own.masked_fill(~own.isfinite(), 0).amax(1)
        best = own.new_zeros(self.size.shape[1] + 1).scatter_reduce(0, self.cut, own, "amax")
        alive = best[best > 0]
        return best[self.cut].clamp(min=0.1 * alive.median().item() if len(alive) else 0)

    @property
    def rel(self) -> Tensor:
        """Movement before the cut relative to the movement after it, (P,); infinite where nothing moved after."""
        return torch.where(self.before == 0, 0, self.before / self.after)


def change(a: Tensor, b: Tensor) -> Tensor:
    """b - a, but 0 between equal infinities or NaNs, and infinite where a number turned into one of them."""
    if a.shape != b.shape:
        raise ValueError(f"the logits change their shape from call to call, {tuple(a.shape)} and {tuple(b.shape)}")
    d = b - a
    if not d.isfinite().all():
        d = torch.where((a == b) | (a.isnan() & b.isnan()), 0, d).nan_to_num(nan=torch.inf, posinf=torch.inf)
    return d


def alike(a: Tensor, b: Tensor, slack: float) -> bool:
    """Equal up to a share `slack` of each number and of the median logit of its position."""
    size = a.abs().nan_to_num(posinf=0)
    return bool((change(a, b).abs() <= slack * (size + size.median(-1, keepdim=True).values)).all())


def measure(subject: Subject, plan: Plan, bench: Bench) -> Movement:
    """Run every probe beside its base, some rows at a time, in batches of one shape."""
    k, rows = len(plan.bases), min(bench.rows, len(plan))
    rows = rows // k * k if rows >= k else rows  # whole rounds of bases: every batch has the same base rows, run once
    order = torch.arange(len(plan)) if rows >= k else plan.base.argsort(stable=True)
    size = torch.empty(len(plan), plan.bases.shape[1], dtype=torch.float64)
    known, reference = None, None
    for part in order.split(rows):
        padded = torch.cat([part, part[-1:].expand(rows - len(part))])
        base = plan.base[padded]
        if len(part) < rows and known is not None and torch.equal(base[: len(part)], known[: len(part)]):
            base = known
        if known is None or not torch.equal(base, known):
            known, reference = base, subject(plan.bases[base])
        moved = change(reference, subject(plan.ids[padded])).abs() / bench.unit
        size[part] = moved.amax(-1).double().cpu()[: len(part)]
        bench.tick(len(part))
    return Movement(size, plan.cut)
