"""Texts as token ids: a Corpus, and where to get one.

- ``shakespeare``: the paper's text, a megabyte of plays, from a file, a cache or the network;
- ``verse``: written on the spot by a small grammar, so that its entropy is known exactly; needs no file;
- ``text``: a file of your own.
"""
import hashlib
import http.client
import itertools
import os
import random
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fourierqk.verse import VERSE, Oracle, entropy_rate, write

__all__ = ["Corpus", "shakespeare", "text", "verse"]

FILE = "tinyshakespeare.txt"  # 40,000 lines of plays as Andrej Karpathy joined them for char-rnn (2015)
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
MIRRORS = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    "https://storage.googleapis.com/download.tensorflow.org/data/shakespeare.txt",
)
PAUSES = (0, 1, 4)  # seconds before each round of the mirrors: a refusal (429, or 403 for Colab) may pass


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
        if self.oracle is not None and self.oracle.shape != self.val.shape:
            raise ValueError(f"the oracle judges {len(self.oracle)} tokens, the val split has {len(self.val)}")

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

    def decode(self, ids: Tensor | Sequence[int]) -> str:
        """The text of ids (N,). ValueError for an id that stands for nothing."""
        ids = torch.as_tensor(ids, dtype=torch.int64)
        if len(ids) and not (0 <= ids.min() and ids.max() < len(self.vocab)):
            raise ValueError(f"ids must lie between 0 and {len(self.vocab) - 1}, got {ids.min()} to {ids.max()}")
        return "".join(self.vocab[i] for i in ids.tolist())

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


def text(path: str | os.PathLike) -> Corpus:
    """A text file of your own, UTF-8, character by character: the first 90 % to learn from, the rest to be judged on.

    Raises FileNotFoundError, and ValueError for a file that is empty or not UTF-8. A text too short for the window
    that a model reads is refused where the windows are cut.
    """
    path = Path(path)
    try:
        return _characters(path.name, _read(path).decode("utf-8"))
    except UnicodeDecodeError as e:
        raise ValueError(f"{path} is not UTF-8 text (byte {e.start}): save it as UTF-8 first") from None


def shakespeare(path: str | os.PathLike | None = None, level: str = "char") -> Corpus:
    """The paper's text, tiny Shakespeare: 1,115,394 characters, 65 different ones, split 90/10.

    Looked for in turn: `path`, the folder or file named by FOURIERQK_DATA, the cache (~/.cache/fourierqk), the
    network. The bytes must be the known ones wherever they come from. Raises FileNotFoundError or ValueError for a
    file that you named, ConnectionError when there is none and no mirror answers.
    """
    if level != "char":
        raise ValueError(f"unknown level {level!r}: there is 'char'")
    named = path or os.environ.get("FOURIERQK_DATA")
    if named:
        file = Path(named).expanduser()
        file = file / FILE if file.is_dir() else file
        raw = _read(file, "" if path else " (FOURIERQK_DATA names it)")
        if not _genuine(raw):
            raise ValueError(
                f"{file} is not tiny Shakespeare (sha256 {_digest(raw)}, expected {SHA256}). "
                "Use text(path) to train on a file of your own."
            )
    else:
        raw = _cached()
    return _characters("shakespeare", raw.decode("ascii"))


def _read(file: Path, who: str = "") -> bytes:
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}{who}")
    return file.read_bytes()


def _characters(name: str, text: str) -> Corpus:
    """A corpus of characters: vocabulary in code order, split 90/10."""
    if len(text) < 10:
        raise ValueError(f"{name} is {'too short' if text else 'empty'}: {len(text)} characters, at least 10 needed")
    vocab = tuple(sorted(set(text)))
    ids = _encode(text, vocab, name)
    cut = len(ids) * 9 // 10
    return Corpus(name, ids[:cut], ids[cut:], vocab)


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _genuine(raw: bytes) -> bool:
    return _digest(raw) == SHA256


def _cached() -> bytes:
    """Tiny Shakespeare from the cache; if it is not there, or damaged, from a mirror and into the cache."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fourierqk"
    file = folder / FILE
    if file.is_file():
        raw = file.read_bytes()
        if _genuine(raw):
            return raw
        warnings.warn(f"{file} is damaged ({len(raw)} bytes, sha256 {_digest(raw)}): fetching it anew", stacklevel=3)
    raw = _download()
    try:
        _write(file, raw)
    except OSError as e:  # a read-only home need not stop anybody who has the text in hand
        warnings.warn(f"cannot keep the text in {folder} ({e}): it will be fetched again next time", stacklevel=3)
    return raw


def _write(file: Path, raw: bytes) -> None:
    """Whole or not at all: written beside its place, then moved there in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=file.name, delete=False) as f:
        try:
            f.write(raw)
            f.close()
            os.replace(f.name, file)
        except BaseException:
            os.unlink(f.name)
            raise


def _download() -> bytes:
    """The right bytes from the first mirror that has them; ConnectionError with each one's answer, and the ways out."""
    answers: dict[str, str] = {}
    for pause in PAUSES:
        time.sleep(pause)
        for url in MIRRORS:
            request = urllib.request.Request(url, headers={"User-Agent": "fourierqk"})
            try:
                with urllib.request.urlopen(request, timeout=20) as reply:
                    raw = reply.read()
            except (OSError, http.client.HTTPException) as e:  # HTTP errors, no network, time-outs, broken transfers
                answers[url] = str(e) or type(e).__name__
                continue
            if _genuine(raw):
                return raw
            answers[url] = f"sent {len(raw)} bytes that are not the text"
    tried = "\n".join(f"  {url}: {answer}" for url, answer in answers.items())
    raise ConnectionError(
        f"could not fetch {FILE}:\n{tried}\nThree ways out: set FOURIERQK_DATA to a folder that holds {FILE}, pass "
        "shakespeare(path=...), or use verse(), which needs no file and no network."
    )


def verse(seed: int = 0) -> Corpus:
    """Verse of known entropy, written now: about 1,000,000 characters to learn from and 100,000 to be judged on.

    Source: the grammar in verse.py. The same text on every machine; seed picks another text of the same grammar.
    """
    parts = {"train": 10**6, "val": 10**5}
    train, val = ("".join(c.text for c in write(VERSE, n, f"{part} {seed}")) for part, n in parts.items())
    ids = [_encode(t, VERSE.vocab, "verse") for t in (train, val)]
    return Corpus("verse", *ids, VERSE.vocab, entropy_rate(VERSE), Oracle(VERSE).nats(val))
