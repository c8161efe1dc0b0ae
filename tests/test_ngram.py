"""The table of counts, against a restatement with dictionaries."""
from collections import Counter

import pytest
import torch

from fourierqk.causality import audit
from fourierqk.data import verse
from fourierqk.losses import floor, ordered_loss
from fourierqk.ngram import NGram


def probability(text: list[int], context: list[int], token: int, v: int) -> float:
    """Witten and Bell's interpolation, straight from its definition."""
    n = len(context)
    after = Counter(text[i + n] for i in range(len(text) - n) if text[i : i + n] == context)
    lower = probability(text, context[1:], token, v) if context else 1 / v
    return (after[token] + len(after) * lower) / (after.total() + len(after)) if after else lower


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_interpolated_count(seed):
    rng = torch.Generator().manual_seed(seed)
    v, order = 2 + seed, 1 + seed % 4
    text = torch.randint(v, (40,), generator=rng)
    ids = torch.randint(v, (2, 1 + 2 * seed), generator=rng)
    model = NGram(text, v, order)
    found = model(ids).exp()
    assert found.shape == (*ids.shape, v) and torch.allclose(found.sum(-1), torch.ones(ids.shape, dtype=torch.float64))
    for row, answers in zip(ids.tolist(), found, strict=True):
        for t, answer in enumerate(answers):
            context = row[max(0, t + 2 - order) : t + 1]
            want = [probability(text.tolist(), context, x, v) for x in range(v)]
            assert torch.allclose(answer, torch.tensor(want, dtype=torch.float64), atol=1e-12)


def test_a_longer_memory_predicts_better_and_never_below_the_floor():
    corpus = verse()
    models = [NGram(corpus.train, len(corpus.vocab), order) for order in (1, 2, 3)]
    losses = [ordered_loss(m, corpus, length=64, windows=64).mean for m in models]
    assert losses == sorted(losses, reverse=True) and not floor(models[-1], corpus, length=64, windows=64).below
    assert losses[0] == pytest.approx(corpus.unigram_entropy, abs=0.1)


def test_it_is_causal():
    corpus = verse()
    assert audit(NGram(corpus.train, len(corpus.vocab)), len(corpus.vocab), 16, draws=2).verdict == "causal"


@pytest.mark.parametrize("ids, v, order, says", [
    (100, 65, 5, "lower the order"), (2, 5, 3, "do not hold one run of 3"),
    (9, 5, 0, "order = 0"), (9, 0, 1, "vocab_size = 0"),
])  # fmt: skip
def test_a_table_that_cannot_be_says_why(ids, v, order, says):
    with pytest.raises(ValueError, match=says):
        NGram(torch.zeros(ids, dtype=torch.int64), v, order)
