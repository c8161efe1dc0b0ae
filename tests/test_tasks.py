"""Tasks with known answers: the oracle read off the text by other code, the exact entropy, the errors."""
import math
import re

import pytest
import torch

from fourierqk.data.tasks import DRAWN, KEPT, LENGTHS, TASKS, task

NAMES = ["echo-1", "echo-12", "beat-1", "beat-24", "recall-1", "recall-8", "select-1", "select-4"]


@pytest.fixture(scope="module", params=NAMES)
def corpus(request):
    return task(request.param)


def echo(text, lag):
    """P(token | all before it), from the characters alone; so below, each in its own way."""
    for i, c in enumerate(text):
        yield 1 / 16 if i < lag else (1 - KEPT) / 16 + (KEPT if c == text[i - lag] else 0)


def beat(text, period):
    for i, c in enumerate(text):
        assert (c == "|") == (i % period == period - 1)
        yield 1 if c == "|" else 1 / 16


def recall(text, keys):
    known = {}
    for i, c in enumerate(text):
        place = i % (2 * DRAWN * keys + 1)
        if place == 2 * DRAWN * keys:
            assert c == "."
            known = {}
            yield 1
        elif place % 2 == 0:
            assert c in "ABCDEFGHIJKLMNOP"[:keys]
            yield 1 / keys
        else:
            yield 1 if text[i - 1] in known else 1 / 16
            assert known.setdefault(text[i - 1], c) == c


def select(text, count):
    for i, c in enumerate(text):
        begin, place = i - i % (5 * count + 1), i % (5 * count + 1)
        letters = text[begin : begin + place].replace(" ", "")
        if place < 4 * count:
            odds = (count - len(letters)) / (4 * count - place)
            yield 1 - odds if c == " " else odds / 16
        else:
            assert c == ("|" if place == 4 * count else letters[place - 4 * count - 1])
            yield 1


READERS = {"echo": echo, "beat": beat, "recall": recall, "select": select}


def test_the_oracle_is_what_other_code_reads_off_the_text(corpus):
    kind, n = corpus.name.split("-")
    expected = torch.tensor([*READERS[kind](corpus.decode(corpus.val), int(n))], dtype=torch.float64)
    torch.testing.assert_close(corpus.oracle, -expected.log(), rtol=1e-12, atol=1e-12)


def test_the_rate_is_what_the_oracle_pays_on_average(corpus):
    """Blocks of 1000 tokens are nearly independent; 5 standard errors are passed by chance once in a million."""
    blocks = corpus.oracle.unflatten(0, (-1, 1000)).mean(1)
    margin = 5 * blocks.std().item() / math.sqrt(len(blocks))
    assert abs(blocks.mean().item() - corpus.entropy_rate) < margin + 1e-3


def test_no_token_is_likelier_than_it_was_called(corpus):
    """The mean of 1/p is the mean number of tokens that were possible: a whole number at each place."""
    kind, n = corpus.name.split("-")
    possible = {"echo": 16, "beat": 16 - 15 / int(n)}
    if kind in possible:
        inverse = corpus.oracle.exp()
        assert abs(inverse.mean() - possible[kind]) < 5 * inverse.std() / math.sqrt(len(inverse)) + 1e-3


def test_texts_are_the_same_each_time_and_change_with_seed_split_and_name():
    a = task("echo-3")
    assert a.sha256 == task("echo-3").sha256
    assert a.sha256 != task("echo-3", seed=1).sha256
    assert not torch.equal(a.train[:1000], a.val[:1000])
    assert (len(a.train), len(a.val)) == (LENGTHS["train"], LENGTHS["val"])


@pytest.mark.parametrize("name", ["echo", "echo-0", "echo--1", "beet-24", "recall-17", "echo-10001", "", "-3"])
def test_a_name_that_is_none_is_refused_with_what_to_write(name):
    with pytest.raises(ValueError, match=re.escape("echo-12, say") + "|must be at most"):
        task(name)


def test_every_task_has_a_reader_here():
    assert {*READERS} == {*TASKS}
