"""Texts to token ids: a character a token, or words, with the rare ones spelt out.

A vocabulary is a list of tokens, and every character of its text is one of them. A text is cut into words (letters,
with apostrophes between letters) and single other characters: spaces, line ends, punctuation, digits. A word that the
vocabulary does not have is spelt, a token a character. So every text over these characters has one coding, and the
coding gives the text back, character by character.
"""
import re
from collections import Counter

import numpy as np
import torch
from torch import Tensor

__all__ = ["SIZE", "cut", "encode", "vocabulary"]

SIZE = 4000  # words: in the training part of tiny Shakespeare these are the ones seen four times or more, 92 % of it
UNIT = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|.", re.DOTALL)


def cut(text: str) -> list[str]:
    """The words of a text and the single characters between them, in order; joined they are the text."""
    return UNIT.findall(text)


def vocabulary(text: str, learnt_from: str, size: int = SIZE) -> tuple[str, ...]:
    """All characters of `text` in code order, then the words of `learnt_from`, the most frequent first.

    At most `size` words of two letters or more, none that is seen only once; of equally frequent ones the first in
    code order.
    """
    counts = Counter(unit for unit in cut(learnt_from) if len(unit) > 1)
    words = sorted((w for w, n in counts.items() if n > 1), key=lambda w: (-counts[w], w))
    return (*sorted({*text}), *words[:size])


def encode(text: str, vocab: tuple[str, ...], name: str) -> Tensor:
    """The ids of a text over a vocabulary of characters, or of characters and words; ValueError for any other."""
    if all(len(token) == 1 for token in vocab):
        return _characters(text, vocab, name)
    ids = {token: i for i, token in enumerate(vocab)}
    for i, character in enumerate(text):
        if character not in ids:
            raise _unknown(text, i, name)
    found: list[int] = []
    for unit in cut(text):
        found += [ids[unit]] if unit in ids else [ids[character] for character in unit]
    return torch.tensor(found, dtype=torch.int64)


def _characters(text: str, vocab: tuple[str, ...], name: str) -> Tensor:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    known = np.array([ord(c) for c in vocab], dtype="<u4")
    order = known.argsort()
    at = order[np.searchsorted(known, codes, sorter=order).clip(max=len(known) - 1)]
    if (bad := (known[at] != codes).nonzero()[0]).size:
        raise _unknown(text, int(bad[0]), name)
    return torch.from_numpy(at.astype(np.int64))


def _unknown(text: str, i: int, name: str) -> ValueError:
    return ValueError(f"the vocabulary of {name} has no {text[i]!r} (position {i} of the text)")
