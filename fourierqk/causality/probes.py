"""Probes of the future: pairs of texts of one length that agree before a cut, and differ from there on."""
import itertools
import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["KINDS", "Pair", "Plan", "cuts", "plan_edits", "plan_redraws"]

KINDS = ("uniform", "unigram", "constant", "permuted", "edit at the cut", "edit at the end")


@dataclass(frozen=True)
class Pair:
    """One probe: a text (T,) that agrees with its base (T,) before the cut.

    Or a batch of texts (B, T) that agrees with its base in the rows before the cut.
    """

    base: Tensor
    text: Tensor
    cut: int
    kind: str

    @property
    def extent(self) -> int:
        """The size of the axis that is cut."""
        return len(self.base)


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
    deck = torch.randperm(vocab_size, generator=rng).tolist()
    turns = {kind: itertools.cycle(deck) for kind in KINDS}  # so that every token gets its turn, in every kind
    ids: list[Tensor] = []
    cut, kind = [], []
    for c in cuts(length, seed):
        for j in range(draws):
            x = bases[len(ids) % len(bases)]
            y, name = x.clone(), KINDS[j % len(KINDS)]
            if name == "uniform":
                y[c:] = torch.randint(vocab_size, (length - c,), generator=rng)
            elif name == "unigram":
                y[c:] = torch.multinomial(weights, length - c, replacement=True, generator=rng)
            elif name == "constant":
                y[c:] = next(turns[name])
            elif name == "permuted":
                y[c:] = x[c:][torch.randperm(length - c, generator=rng)]
            if torch.equal(x, y):  # an edit, or a draw that came out the same
                at = length - 1 if name == "edit at the end" else c
                y[at] = _another(int(x[at]), next(turns[name]), vocab_size)
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
