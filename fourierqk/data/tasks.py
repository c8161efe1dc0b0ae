"""Texts of random letters with one rule each, to see what a filter along time can and cannot learn.

Each rule is a generator that writes a text token by token, and says with what probability it wrote each. That is the
best possible predictor, since no other knows more than the rule and all tokens so far; so the floor is exact.

- ``echo``: a letter repeats the one `lag` tokens before it, three times in four. Asked is *where*, at one distance.
- ``beat``: every `period`-th token is a bar. Asked is *when*: nothing but a count tells it.
- ``recall``: keys and their values in pairs, drawn anew after each stop; a key that comes again has its value again.
  Asked is *what came after the last token like this one* (Olsson et al. 2022; Arora et al. 2023, MQAR).
- ``select``: letters scattered among blanks, then the letters alone, in order (selective copying, Gu
  and Dao 2023). Asked is *which comes next*, at distances that vary.
"""
import itertools
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from fourierqk.checks import unknown_name
from fourierqk.data import words
from fourierqk.data.corpus import Corpus

__all__ = ["TASKS", "Task", "task"]

LETTERS, KEYS = "abcdefghijklmnop", "ABCDEFGHIJKLMNOP"
KEPT = 0.75  # of the letters of an echo; the others are any letter, perhaps the same
BLANKS = 3  # among which each letter is scattered
DRAWN = 3  # times that a key is drawn, on average, before all values change
LENGTHS = {"train": 400_000, "val": 100_000}  # tokens

Written = Iterator[tuple[str, float]]  # tokens, each with the probability that it had
Chance = Callable[[], float]  # a number drawn from [0, 1): `random.Random(seed).random`, which Python promises to keep


@dataclass(frozen=True)
class Task:
    """A rule with one number n: who writes by it, the exact entropy in nats per token, and the tokens that it uses."""

    write: Callable[[Chance, int], Written]
    entropy_rate: Callable[[int], float]
    vocab: str
    most: int  # that n may be


def _any(u: Chance, tokens: Sequence[str]) -> str:
    return tokens[int(u() * len(tokens))]


def _echo(u: Chance, lag: int) -> Written:
    past: list[str] = []
    other = (1 - KEPT) / len(LETTERS)
    while True:
        if len(past) < lag:
            token, p = _any(u, LETTERS), 1 / len(LETTERS)
        else:
            before = past[-lag]
            token = before if u() < KEPT else _any(u, LETTERS)
            p = other + KEPT * (token == before)
        past.append(token)
        yield token, p


def _echo_rate(lag: int) -> float:
    other = (1 - KEPT) / len(LETTERS)
    same = KEPT + other
    return -same * math.log(same) - (len(LETTERS) - 1) * other * math.log(other)


def _beat(u: Chance, period: int) -> Written:
    while True:
        for _ in range(period - 1):
            yield _any(u, LETTERS), 1 / len(LETTERS)
        yield "|", 1.0


def _beat_rate(period: int) -> float:
    return (period - 1) / period * math.log(len(LETTERS))


def _recall(u: Chance, keys: int) -> Written:
    while True:
        values: dict[str, str] = {}
        for _ in range(DRAWN * keys):
            key = _any(u, KEYS[:keys])
            yield key, 1 / keys
            p = 1.0 if key in values else 1 / len(LETTERS)
            yield values.setdefault(key, _any(u, LETTERS)), p
        yield ".", 1.0


def _recall_rate(keys: int) -> float:
    pairs = DRAWN * keys
    seen = keys * (1 - (1 - 1 / keys) ** pairs)  # expected number of different keys
    return (pairs * math.log(keys) + seen * math.log(len(LETTERS))) / (2 * pairs + 1)


def _select(u: Chance, count: int) -> Written:
    while True:
        places = (1 + BLANKS) * count
        letters: list[str] = []
        for place in range(places):
            p = (count - len(letters)) / (places - place)
            if u() < p:
                letters.append(_any(u, LETTERS))
                yield letters[-1], p / len(LETTERS)
            else:
                yield " ", 1 - p
        yield "|", 1.0
        yield from ((letter, 1.0) for letter in letters)


def _select_rate(count: int) -> float:
    places = (1 + BLANKS) * count
    return (math.log(math.comb(places, count)) + count * math.log(len(LETTERS))) / (places + 1 + count)


TASKS = {
    "echo": Task(_echo, _echo_rate, LETTERS, 10_000),
    "beat": Task(_beat, _beat_rate, "|" + LETTERS, 10_000),
    "recall": Task(_recall, _recall_rate, "." + KEYS + LETTERS, len(KEYS)),
    "select": Task(_select, _select_rate, " |" + LETTERS, 1000),
}


def task(name: str, seed: int = 0) -> Corpus:
    """The text of a task: "echo-12" is the echo of lag 12, "beat-24" the beat of period 24; so recall-8, select-4.

    400,000 tokens to learn from, 100,000 to be judged on, the same on every machine; the seed picks another text.
    ValueError for another name, or a number out of range. A window may begin anywhere, so at its first positions no
    model knows what the oracle knows: judge by the loss at the last position of windows that are long enough.
    """
    found = re.fullmatch(r"([a-z]+)-([1-9]\d*)", name)
    if not found or found[1] not in TASKS:
        raise ValueError(f"{unknown_name('task', name.partition('-')[0], TASKS)}, each with a number: echo-12, say")
    rule, n = TASKS[found[1]], int(found[2])
    if n > rule.most:
        raise ValueError(f"{name}: the number must be at most {rule.most}")
    (train, _), (val, p) = (_text(rule, n, f"{name} {part} {seed}", length) for part, length in LENGTHS.items())
    vocab = tuple(rule.vocab)
    oracle = -torch.tensor(p, dtype=torch.float64).log()
    return Corpus(
        name, words.encode(train, vocab, name), words.encode(val, vocab, name), vocab, rule.entropy_rate(n), oracle
    )


def _text(rule: Task, n: int, seed: str, length: int) -> tuple[str, list[float]]:
    """So many tokens, and the probability of each."""
    tokens, p = zip(*itertools.islice(rule.write(random.Random(seed).random, n), length), strict=True)
    return "".join(tokens), [*p]
