"""Masked texts: what is hidden, what is asked, and the exact floor, against the enumeration of every text."""
import math
from collections import defaultdict

import pytest
import torch
from torch.nn import functional as F

from fourierqk.data.corpus import HIDDEN, IGNORED, Corpus, text, verse
from fourierqk.data.grammar import METRE, VERSE, Choice, Grammar, entropy_rate, shares
from fourierqk.data.inference import Chain
from fourierqk.losses import excess, honest_loss, loss_by_position, ordered_loss, shuffled_gap, truncated_loss
from fourierqk.model import GPT, GPTConfig
from fourierqk.studies import measure, open_corpus, summary
from fourierqk.training import TrainConfig, train

LINE = Grammar("line", {
    "line": [Choice("a", 0.5, "noun"), Choice("ab", 0.3, "noun"), Choice("b", 0.2, "verb")],
    "noun": [Choice("ca", 0.6, "line"), Choice("c", 0.4, "verb")],
    "verb": [Choice("bb", 0.7, "line"), Choice("bac", 0.3, "noun")],
})  # fmt: skip
AMBIGUOUS = Grammar("s", {
    "s": [Choice("a", 0.5, "s"), Choice("ab", 0.2, "t"), Choice("b", 0.3, "t")],
    "t": [Choice("a", 0.4, "s"), Choice("ba", 0.35, "t"), Choice("b", 0.25, "s")],
})  # fmt: skip
ALTERNATES = Grammar("x", {"x": [Choice("a", 1.0, "y")], "y": [Choice("b", 1.0, "x")]})


def texts(g: Grammar, length: int) -> dict[str, float]:
    """P(text) of every text of a length that is cut anywhere from a long one, by enumeration of choices."""
    found: dict[str, float] = defaultdict(float)
    letters = math.fsum(w * c.p * len(c.text) for s, w in shares(g).items() for c in g.rules[s])
    todo = [
        (c.text[start:], c.next, w * c.p / letters)
        for s, w in shares(g).items() for c in g.rules[s] for start in range(len(c.text))
    ]  # fmt: skip
    while todo:
        made, state, p = todo.pop()
        if len(made) >= length:
            found[made[:length]] += p
        else:
            todo += [(made + c.text, c.next, p * c.p) for c in g.rules[state]]
    return found


@pytest.mark.parametrize("g", [LINE, AMBIGUOUS, ALTERNATES], ids=["line", "ambiguous", "alternates"])
@pytest.mark.parametrize("seed", range(4))
def test_hidden_letters_have_the_probability_that_enumeration_gives(g, seed):
    known, vocab = texts(g, 7), g.vocab
    assert math.fsum(known.values()) == pytest.approx(1)
    rng = torch.Generator().manual_seed(seed)
    shown = [[*known][i] for i in torch.randint(len(known), (6,), generator=rng)]
    masks = torch.rand(6, 7, generator=rng) < (0.2, 0.5, 0.9, 1.0)[seed]
    ids = torch.tensor([[vocab.index(c) for c in t] for t in shown]).masked_fill(masks, len(vocab))
    found = Chain(g, vocab).probabilities(ids)
    for row, (t, mask) in enumerate(zip(shown, masks.tolist(), strict=True)):
        for place in range(7):
            fits = lambda other: all(h or i == place or a == b for i, (h, a, b) in enumerate(zip(mask, t, other)))  # noqa: B023,B905,E731
            by_letter = torch.zeros(len(vocab), dtype=torch.float64)
            for other, p in known.items():
                if fits(other):
                    by_letter[vocab.index(other[place])] += p
            torch.testing.assert_close(found[row, place], by_letter / by_letter.sum(), rtol=1e-9, atol=1e-12)


def test_a_text_that_the_grammar_cannot_write_is_refused():
    with pytest.raises(ValueError, match="cannot have written"):
        Chain(ALTERNATES, "ab").probabilities(torch.tensor([[0, 0]]))


@pytest.mark.parametrize("g", [VERSE, METRE], ids=["verse", "metre"])
def test_shares_make_the_rate_and_sum_to_one(g):
    assert math.fsum(shares(g).values()) == pytest.approx(1) and 0.7 < entropy_rate(g) < 0.8


@pytest.fixture(scope="module")
def masked() -> Corpus:
    return verse().masked()


def test_every_window_hides_the_same_number_of_tokens_and_asks_for_them(masked):
    plain, hidden = verse(), masked.vocab.index(HIDDEN)
    starts, x, y = masked.windows("val", 50, 40, seed=3)
    same, own, _ = plain.windows("val", 50, 40, seed=3)
    assert torch.equal(starts, same)
    assert ((y != IGNORED).sum(1) == 6).all() and torch.equal(x == hidden, y != IGNORED)
    assert torch.equal(torch.where(x == hidden, y, x), own)
    batches = masked.batches("train", 4, 40, 0)
    first, second = next(batches), next(batches)
    assert torch.equal(next(masked.batches("train", 4, 40, 0, start=1))[0], second[0])
    assert not torch.equal(first[0] == hidden, second[0] == hidden)
    counts = (masked.windows("val", 4000, 40)[2] != IGNORED).sum(0)
    assert counts.min() > 480 and counts.max() < 720  # 600 expected at each place, standard deviation 23


def test_the_loss_is_that_of_the_hidden_tokens_alone(masked):
    torch.manual_seed(0)
    model = GPT(GPTConfig(len(masked.vocab), 24, n_layer=1, n_head=2, n_embd=16, dropout=0.0, causal=False)).eval()
    _, x, y = masked.windows("val", 20, 24, seed=1)
    asked = y != IGNORED
    with torch.no_grad():
        nats = F.cross_entropy(model(x)[0][asked], y[asked], reduction="none").double().reshape(20, -1).mean(1)
    loss = ordered_loss(model, masked, windows=20)
    torch.testing.assert_close(loss.values, nats, rtol=1e-5, atol=1e-6)
    assert honest_loss(model, masked, windows=20).values.equal(loss.values)
    assert loss_by_position(model, masked, windows=400).isfinite().all()
    for other in (truncated_loss, lambda *a: excess(truncated_loss(*a), masked)):
        with pytest.raises(ValueError, match="is masked: its loss is ordered_loss"):
            other(model, masked)


class Knowing(GPT):
    """Answers with the exact probabilities."""

    def forward(self, idx, targets=None):
        chain = Chain(VERSE, VERSE.vocab)
        p = chain.probabilities(idx)
        return F.pad(p.clamp(min=1e-30).log(), (0, 1), value=-70.0), None


def test_who_knows_the_grammar_pays_the_floor_and_no_less(masked):
    model = Knowing(GPTConfig(len(masked.vocab), 32, n_layer=1, n_head=1, n_embd=4, causal=False))
    over = excess(ordered_loss(model, masked, windows=24), masked)
    assert abs(over.mean) < 1e-5 and not over.below
    lower = excess(ordered_loss(model, masked, windows=24), masked)
    assert lower.mean == over.mean


def test_what_cannot_be_masked_is_refused(masked):
    for wrong in (0, 1, -0.1, 1.5):
        with pytest.raises(ValueError, match="share"):
            verse().masked(wrong)
    with pytest.raises(ValueError, match="must not be masked yet"):
        masked.masked()
    with pytest.raises(ValueError, match="no known entropy"):
        excess(shuffled_gap(*small()).shuffled, small()[1].shuffled(1))


def small() -> tuple[GPT, Corpus]:
    corpus = open_corpus("metre-masked")
    torch.manual_seed(0)
    return GPT(GPTConfig(len(corpus.vocab), 16, n_layer=1, n_head=2, n_embd=8, dropout=0.0, causal=False)), corpus


def test_a_masked_run_is_trained_measured_and_told(tmp_path):
    model, corpus = small()
    history = train(model, corpus, TrainConfig(steps=3, batch=2, eval_every=2, eval_windows=8, device="cpu"), tmp_path)
    assert history.ordered == history.honest
    record = measure(model, corpus, history)
    floor = record["losses"]["floor"]
    assert not floor["below"] and floor["oracle"] < record["losses"]["ordered"]["mean"]
    told = summary(record | {"system": "base-dot", "corpus": {"name": corpus.name}, "preset": "tiny", "seed": 0})
    assert "masked" in told and "both sides" in told and "truncated" not in told


def test_a_file_can_be_masked_and_has_no_floor(tmp_path):
    path = tmp_path / "a-masked"
    path.write_text("to be or not to be, that is the question\n" * 20)
    assert not open_corpus(str(path)).hidden
    corpus = text(path).masked(0.5)
    model = GPT(GPTConfig(len(corpus.vocab), 8, n_layer=1, n_head=1, n_embd=4, causal=False))
    with pytest.raises(ValueError, match="no known entropy"):
        excess(ordered_loss(model, corpus, windows=4), corpus)
