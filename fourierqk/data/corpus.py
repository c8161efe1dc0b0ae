"""Texts as token ids: a Corpus, and where to get one.

- ``shakespeare``: the paper's text, a megabyte of plays, from a file, a cache or the network;
- ``verse``: written on the spot by a small grammar, so that its entropy is known exactly; needs no file; in strict
  ``metre`` every word, line and speech of it has one length;
- ``text``: a file of your own.

The tokens of a corpus are characters (level "char"), or words, spaces and punctuation (level "word", see words.py).
"""
import codecs
import hashlib
import itertools
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fourierqk.checks import check_count, unknown_name
from fourierqk.data import tinyshakespeare, words
from fourierqk.data.grammar import METRE, VERSE, Grammar, Oracle, entropy_rate, write
from fourierqk.data.inference import Chain

__all__ = ["Corpus", "check_corpus", "metre", "shakespeare", "text", "verse"]

HIDDEN, IGNORED = "▒", -100  # what stands in a text for a hidden token, and in y for one that nobody asks for
LEVELS, SPLITS = ("char", "word"), ("train", "val", "test")
NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # control characters, but for white space and colours (escape)


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as token ids, split once into a part to learn from and a part to be judged on.

    test: a second part to be judged on, which nothing was chosen by; None where there is none (see `halved`).

    hidden: the share of the tokens of every window that are hidden and asked for, 0 where the next token is (see
    `masked`). grammar: what wrote the text, where a grammar did.

    entropy_rate: nats per token of the source, exact, where known. oracle: for each token of val the nats that the
    best possible predictor pays, given everything before it; None where nobody knows.

    A token is a character or a word, so losses in nats per token compare only within a level. Divided by
    `chars_per_token` they are nats per character of the same text, whatever the level. (On words this is what the
    model pays for *our* coding of the text: an upper bound, since it may also have spelt out a word it knows.)
    """

    name: str
    train: Tensor  # (N,) int64
    val: Tensor  # (M,) int64
    vocab: tuple[str, ...]  # id -> token
    entropy_rate: float | None = None
    oracle: Tensor | None = None  # (M,) float64
    test: Tensor | None = None  # (L,) int64
    hidden: float = 0.0
    grammar: Grammar | None = None

    def __post_init__(self) -> None:
        if len({*self.vocab} - {""}) < len(self.vocab):
            raise ValueError(f"the vocabulary of {self.name} names a token twice, or one of no characters")
        for split in self.splits:
            ids, which = getattr(self, split), f"the {split} split of {self.name}"
            if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.ndim != 1:
                got = f"{ids.dtype} {tuple(ids.shape)}" if isinstance(ids, Tensor) else type(ids).__name__
                raise ValueError(f"{which} must be a tensor of int64 ids, of shape (N,), not {got}")
            if not len(ids):
                raise ValueError(f"{which} is empty: a corpus needs text in both")
            _check_ids(ids, len(self.vocab), f" in {which}")
        if not 0 <= self.hidden < 1:
            raise ValueError(f"hidden = {self.hidden} must be a share of the tokens, in [0, 1)")
        if self.oracle is not None and self.oracle.shape != self.val.shape:
            raise ValueError(f"the oracle judges {len(self.oracle)} tokens, the val split has {len(self.val)}")

    @property
    def splits(self) -> tuple[str, ...]:
        """The parts that there are: train, val, and test if there is one."""
        return SPLITS if self.test is not None else SPLITS[:2]

    def _split(self, split: str, length: int) -> Tensor:
        """The ids of a split, once it is known to hold a window of `length` tokens and the one after it."""
        if split not in self.splits:
            raise ValueError(unknown_name("split", split, self.splits))
        ids = getattr(self, split)
        check_count(length, "length")
        if len(ids) < length + 1:
            raise ValueError(
                f"the {split} split has {len(ids)} tokens, a window needs {length + 1}: {length} to read and the next "
                "to predict. Use a longer text or a shorter window."
            )
        return ids

    def check_window(self, length: int) -> None:
        """ValueError where a split does not hold a window of `length` tokens and the one after it."""
        for split in self.splits:
            self._split(split, length)

    def batches(self, split: str, size: int, length: int, seed: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """An endless supply of (x, y), each (size, length): windows from anywhere, y one token ahead of x.

        Of a masked corpus y is what stands at the hidden tokens of x, and `IGNORED` elsewhere.

        Batch i depends on (seed, i) alone, so that start=i resumes there, whatever else drew random numbers.
        """
        ids = self._split(split, length)
        check_count(size, "size")
        check_count(start, "start", least=0)
        return self._batches(ids, size, length, seed, start)

    def _batches(self, ids: Tensor, size: int, length: int, seed: int, start: int) -> Iterator[tuple[Tensor, Tensor]]:
        for i in itertools.count(start):
            x, y = _cut(ids, _starts(f"batch {i} of {seed}", size, len(ids) - length), length)
            yield self._asked(x, y, f"hidden in batch {i} of {seed}")

    def windows(self, split: str, count: int, length: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """A fixed list of windows for evaluation -> starts (count,), x (count, length), y as for `batches`.

        starts index the split, uniformly; the same for every model. x[i, t] is split[starts[i] + t], or
        hidden.
        """
        ids = self._split(split, length)
        check_count(count, "count")
        starts = _starts(f"windows of {seed}", count, len(ids) - length)
        return starts, *self._asked(*_cut(ids, starts, length), f"hidden in windows of {seed}")

    def _asked(self, x: Tensor, y: Tensor, seed: str) -> tuple[Tensor, Tensor]:
        """What is read and what is asked: in a masked corpus the same number of hidden tokens in every window."""
        if not self.hidden:
            return x, y
        u, many = random.Random(seed).random, max(1, round(self.hidden * x.shape[1]))
        order = torch.tensor([u() for _ in range(x.numel())], dtype=torch.float64).reshape(x.shape).argsort(1)
        shown = torch.ones_like(x, dtype=torch.bool).scatter_(1, order[:, :many], False)
        return x.where(shown, self.vocab.index(HIDDEN)), x.masked_fill(shown, IGNORED)

    def shuffled(self, seed: int) -> "Corpus":
        """The same corpus with val under one random permutation of all its tokens: same counts, no order."""
        u = random.Random(f"shuffle of {seed}").random
        order = torch.tensor([u() for _ in range(len(self.val))], dtype=torch.float64).argsort()
        name = f"{self.name}, shuffled"
        return replace(self, name=name, val=self.val[order], entropy_rate=None, oracle=None, grammar=None)

    def halved(self) -> "Corpus":
        """The same corpus with val cut in two: its first half to choose by, its second half as test, to report on."""
        half = len(self.val) // 2
        oracle = None if self.oracle is None else self.oracle[:half]
        return replace(self, name=f"{self.name}-halves", val=self.val[:half], oracle=oracle, test=self.val[half:])

    def masked(self, share: float = 0.15) -> "Corpus":
        """The same text, asked otherwise: in every window this share of the tokens is hidden, and to be told.

        For models that hear both sides (`GPTConfig.causal=False`; Devlin et al. 2019, with every chosen token hidden).
        The answers are not in the window, so no model can read them: every loss is honest.
        """
        if self.hidden or not 0 < share < 1:
            raise ValueError(f"share = {share} must lie inside (0, 1), and {self.name} must not be masked yet")
        return replace(
            self, name=f"{self.name}-masked", vocab=(*self.vocab, HIDDEN), hidden=share, entropy_rate=None, oracle=None
        )

    def judged(self) -> "Corpus":
        """The corpus with test in the place of val, of which all losses speak. ValueError where there is no test."""
        if self.test is None:
            raise ValueError(f"{self.name} has no test split: halved() makes one")
        return replace(self, name=f"{self.name}, test", val=self.test, oracle=None, test=None)

    def encode(self, text: str) -> Tensor:
        """The ids of a text, (N,). ValueError names a character that the corpus does not have, and where it stands."""
        return words.encode(text, self.vocab, self.name)

    def decode(self, ids: Tensor | Sequence[int]) -> str:
        """The text of ids (N,). ValueError for an id that stands for nothing."""
        ids = torch.as_tensor(ids, dtype=torch.int64)
        _check_ids(ids, len(self.vocab))
        return "".join(self.vocab[i] for i in ids.tolist())

    def characters(self, ids: Tensor) -> Tensor:
        """How many characters each token spells, in the shape of ids: 1 everywhere at level "char".

        Exact on given windows (x, y): nats per character = all nats of y / characters(y).sum().
        """
        _check_ids(ids, len(self.vocab))
        return torch.tensor([len(token) for token in self.vocab])[ids]

    @property
    def chars_per_token(self) -> float:
        """Characters of val over tokens of val: nats per token divided by it are nats per character.

        Right in expectation for any loss over windows with uniform starts: `ordered_loss` and `honest_loss` alike.
        """
        return self.characters(self.val).double().mean().item()

    @property
    def has_floor(self) -> bool:
        """Whether the best possible loss is known: of a masked text by its grammar, of another by its oracle."""
        return (self.grammar if self.hidden else self.oracle) is not None

    def best(self, starts: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """What the best possible predictor pays on `windows` of val, in nats at each position -> (count, T) float64.

        It knows what wrote the text, and all that stands before a token, also before the window; of a masked text
        all that is shown in the window. 0 where nothing is asked. ValueError where nobody knows.
        """
        if self.hidden and self.grammar is not None:
            return Chain(self.grammar, [token for token in self.vocab if token != HIDDEN]).nats(x, y)
        if self.oracle is None:
            raise ValueError(f"nobody knows the best possible loss on {self.name}: use verse(), metre() or a task()")
        return self.oracle[starts[:, None] + 1 + torch.arange(x.shape[1])]  # y is x shifted by one

    def oracle_loss(self, start: int, stop: int) -> float:
        """Mean nats per token of the best possible predictor over val[start:stop]."""
        if self.oracle is None:
            raise ValueError(f"nobody knows the best possible loss on {self.name}: use verse(), metre() or a task()")
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
        """A fingerprint of all splits and the vocabulary, for records."""
        h = hashlib.sha256("\0".join(self.vocab).encode())
        for ids in (getattr(self, split) for split in self.splits):
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


def _check_ids(ids: Tensor, size: int, where: str = "") -> None:
    if len(ids) and not (0 <= ids.min() and ids.max() < size):
        raise ValueError(f"ids{where} must lie between 0 and {size - 1}, got {ids.min()} to {ids.max()}")


def check_corpus(given: object) -> None:
    """ValueError unless it is a corpus: a name or a path stands for one, and is none."""
    if not isinstance(given, Corpus):
        raise ValueError(f"expected a Corpus, got {given!r:.40}: write verse(), shakespeare() or text(path)")


def text(path: str | os.PathLike, level: str = "char") -> Corpus:
    """A text file of your own, UTF-8: the first 90 % of its characters to learn from, the rest to be judged on.

    A byte-order mark is no part of the text, and every end of a line is one character, however the file writes it.
    level: "char", or "word" as for `shakespeare`. Raises FileNotFoundError, and ValueError for a file that is empty,
    not UTF-8, or holds control characters, as numbers and UTF-16 do. A text too short for the window that a model
    reads is refused where the windows are cut.
    """
    path = Path(path)
    return _corpus(path.name, _decoded(tinyshakespeare.read_file(path), path), level)


def _decoded(raw: bytes, path: Path) -> str:
    """The text of a file, with a newline at each end of a line. ValueError where it is no UTF-8 text."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{path} is UTF-16, or UTF-32: save it as UTF-8 first")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as e:
        raise ValueError(f"{path} is not UTF-8 text (byte {e.start}): save it as UTF-8 first") from None
    if found := NO_TEXT.search(text):
        what, way_out = f"{found[0]!r} at character {found.start()}", "Save UTF-16 as UTF-8; of token ids give the text"
        raise ValueError(f"{path} is not text: it has {what}. {way_out}")
    return text


def shakespeare(path: str | os.PathLike | None = None, level: str = "char") -> Corpus:
    """The paper's text, tiny Shakespeare: 1,115,394 characters, 65 different ones, split 90/10.

    level: "char", or "word": tokens are words, spaces and punctuation; the 4,000 words most frequent in the training
    part are tokens of their own, all others are spelt. Both levels hold the same text in train and in val.

    Looked for in turn: `path`, the folder or file named by FOURIERQK_DATA, the cache (~/.cache/fourierqk), the
    network. The bytes must be the known ones wherever they come from. Raises FileNotFoundError or ValueError for a
    file that you named, ConnectionError when there is none and no mirror answers.
    """
    _check_level(level)
    return _corpus("shakespeare", tinyshakespeare.read(path).decode("ascii"), level)


def _check_level(level: str) -> None:
    if level not in LEVELS:
        raise ValueError(unknown_name("level", level, LEVELS))


def _corpus(name: str, text: str, level: str) -> Corpus:
    """A corpus of a whole text: its first 90 % of characters is train. What is a word, train alone decides."""
    _check_level(level)
    if len(text) < 10:
        raise ValueError(f"{name} is {'too short' if text else 'empty'}: {len(text)} characters, at least 10 needed")
    cut = len(text) * 9 // 10
    train, val = text[:cut], text[cut:]
    if level == "word":
        vocab, name = words.vocabulary(text, train), f"{name}-words"
    else:
        vocab = tuple(sorted({*text}))
    return Corpus(name, words.encode(train, vocab, name), words.encode(val, vocab, name), vocab)


def verse(seed: int = 0) -> Corpus:
    """Verse of known entropy, written now: about 1,000,000 characters to learn from and 100,000 to be judged on.

    Source: the grammar in grammar.py. The same text on every machine; seed picks another text of the same grammar.
    """
    return _written("verse", VERSE, "", seed)


def metre(seed: int = 0) -> Corpus:
    """Verse in strict metre: as `verse`, but a word takes 7 characters, a line 21 and a speech 84, without exception.

    There these lengths are means. Here a filter finds its rhythm exact.
    """
    return _written("metre", METRE, "metre ", seed)


def _written(name: str, grammar: Grammar, salt: str, seed: int) -> Corpus:
    """A text of a grammar, with what its oracle pays. salt: what makes its random numbers its own."""

    def part(which: str, length: int) -> str:
        return "".join(choice.text for choice in write(grammar, length, f"{salt}{which} {seed}"))

    train, val = part("train", 10**6), part("val", 10**5)
    return Corpus(
        name, words.encode(train, grammar.vocab, name), words.encode(val, grammar.vocab, name), grammar.vocab,
        entropy_rate(grammar), Oracle(grammar).nats(val), grammar=grammar,
    )  # fmt: skip
