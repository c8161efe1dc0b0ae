"""Texts as token ids: a Corpus, and where to get one.

- ``shakespeare``: the paper's text, a megabyte of plays, from a file, a cache or the network;
- ``verse``: written on the spot by a small grammar, so that its entropy is known exactly; needs no file;
- ``text``: a file of your own.
"""
import hashlib
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from fourierqk.verse import VERSE, Oracle, entropy_rate, write

__all__ = ["Corpus", "verse"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as token ids, split once into a part to learn from and a part to be judged on.

    entropy_rate: nats per token of the source, exact, where known. oracle: for each token of val the nats that the
    best possible predictor pays, given everything before it; None where nobody knows.
    """

    name: str
    train: Tensor  # (N,) int64
    val: Tensor  # (M,) int64
    vocab: tuple[str, ...]  # id -> token
    entropy_rate: float | None = None
    oracle: Tensor | None = None  # (M,) float64

    def __post_init__(self) -> None:
        for split in ("train", "val"):
            if not len(getattr(self, split)):
                raise ValueError(f"the {split} split of {self.name} is empty: a corpus needs text in both")

    def _split(self, split: str, length: int) -> Tensor:
        """The ids of a split, once it is known to hold a window of `length` tokens and the one after it."""
        if split not in ("train", "val"):
            raise ValueError(f"unknown split {split!r}: a corpus has 'train' and 'val'")
        ids = getattr(self, split)
        if length < 1:
            raise ValueError(f"a window of {length} tokens is not a window: length must be at least 1")
        if len(ids) < length + 1:
            raise ValueError(
                f"the {split} split has {len(ids)} tokens, a window needs {length + 1}: {length} to read and the next "
                "to predict. Use a longer text or a shorter window."
            )
        return ids

    def batches(self, split: str, size: int, length: int, seed: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """An endless supply of (x, y), each (size, length): windows from anywhere, y one token ahead of x.

        Batch i depends on (seed, i) alone, so that start=i resumes there, whatever else drew random numbers.
        """
        ids = self._split(split, length)
        if size < 1 or start < 0:
            raise ValueError(f"need size >= 1 windows a batch and start >= 0, got {size=} and {start=}")
        return self._batches(ids, size, length, seed, start)

    def _batches(self, ids: Tensor, size: int, length: int, seed: int, start: int) -> Iterator[tuple[Tensor, Tensor]]:
        for i in itertools.count(start):
            yield _cut(ids, _starts(f"batch {i} of {seed}", size, len(ids) - length), length)

    def windows(self, split: str, count: int, length: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """A fixed list of windows for evaluation -> starts (count,), x (count, length), y one token ahead of x.

        starts index the split, uniformly; the same for every model. x[i, t] is split[starts[i] + t].
        """
        ids = self._split(split, length)
        if count < 1:
            raise ValueError(f"count = {count}: ask for at least one window")
        starts = _starts(f"windows of {seed}", count, len(ids) - length)
        return starts, *_cut(ids, starts, length)

    def shuffled(self, seed: int) -> "Corpus":
        """The same corpus with val under one random permutation of all its tokens: same counts, no order."""
        u = random.Random(f"shuffle of {seed}").random
        order = torch.tensor([u() for _ in range(len(self.val))], dtype=torch.float64).argsort()
        return replace(self, name=f"{self.name}, shuffled", val=self.val[order], entropy_rate=None, oracle=None)

    def encode(self, text: str) -> Tensor:
        """The ids of a text, (len(text),). ValueError names a character that the corpus does not have, and where."""
        return _encode(text, self.vocab, self.name)

    def decode(self, ids: Tensor) -> str:
        """The text of ids (N,)."""
        return "".join(self.vocab[i] for i in torch.as_tensor(ids).tolist())

    def oracle_loss(self, start: int, stop: int) -> float:
        """Mean nats per token of the best possible predictor over val[start:stop]."""
        if self.oracle is None:
            raise ValueError(f"nobody knows the best possible loss on {self.name}: only verse() has an oracle")
        if not 0 <= start < stop <= len(self.val):
            raise ValueError(f"val[{start}:{stop}] is empty or out of range: val has {len(self.val)} tokens")
        return self.oracle[start:stop].mean().item()

    @property
    def unigram_entropy(self) -> float:
        """Nats per token of val for a predictor that knows how often each token occurs, and no more."""
        p = torch.bincount(self.val).double() / len(self.val)
        return -torch.special.xlogy(p, p).sum().item()

    @property
    def sha256(self) -> str:
        """A fingerprint of both splits and the vocabulary, for records."""
        h = hashlib.sha256("\0".join(self.vocab).encode())
        for ids in (self.train, self.val):
            h.update(np.int64(len(ids)).tobytes() + ids.numpy().astype("<i8").tobytes())
        return h.hexdigest()


def _starts(seed: str, count: int, n: int) -> Tensor:
    """`count` numbers below n, the same on every machine: Python promises to keep `random()`, seeds included."""
    u = random.Random(seed).random
    return torch.tensor([int(u() * n) for _ in range(count)])


def _cut(ids: Tensor, starts: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The windows that start there, and the same one token on."""
    w = ids[starts[:, None] + torch.arange(length + 1)]  # (count, length + 1)
    return w[:, :-1], w[:, 1:]


def _encode(text: str, vocab: tuple[str, ...], name: str) -> Tensor:
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    known = np.array([ord(c) for c in vocab], dtype="<u4")
    order = known.argsort()
    at = order[np.searchsorted(known, codes, sorter=order).clip(max=len(known) - 1)]
    if (bad := (known[at] != codes).nonzero()[0]).size:
        raise ValueError(f"the vocabulary of {name} has no {text[bad[0]]!r} (position {bad[0]} of the text)")
    return torch.from_numpy(at.astype(np.int64))


def verse(seed: int = 0) -> Corpus:
    """Verse of known entropy, written now: about 1,000,000 characters to learn from and 100,000 to be judged on.

    Source: the grammar in verse.py. The same text on every machine; seed picks another text of the same grammar.
    """
    train, val = ("".join(c.text for c in write(VERSE, n, f"{part} {seed}")) for part, n in (("train", 10**6), ("val", 10**5)))
    ids = [_encode(t, VERSE.vocab, "verse") for t in (train, val)]
    return Corpus("verse", *ids, VERSE.vocab, entropy_rate(VERSE), Oracle(VERSE).nats(val))
