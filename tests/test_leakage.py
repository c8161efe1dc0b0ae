"""The losses against an independent restatement in numpy, and against models whose losses are known in closed form."""
import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.data.corpus import Corpus, verse
from fourierqk.losses import (
    Difference,
    Floor,
    Loss,
    ShuffledGap,
    excess,
    floor,
    floors,
    honest_loss,
    loss_by_position,
    ordered_loss,
    refilled_loss,
    shuffled_gap,
    truncated_loss,
)

V, T = 7, 16


def corpus(uniform: bool = True, seed: int = 0) -> Corpus:
    """Independent tokens: the best possible predictor pays their entropy, everywhere."""
    rng = torch.Generator().manual_seed(seed)
    p = torch.ones(V, dtype=torch.float64) if uniform else torch.arange(1, V + 1, dtype=torch.float64)
    p = p / p.sum()
    ids = torch.multinomial(p, 6000, replacement=True, generator=rng)
    vocab = tuple("abcdefg")
    return Corpus("dice", ids[:3000], ids[3000:], vocab, -(p * p.log()).sum().item(), -p.log()[ids[3000:]])


class Bigram(nn.Module):
    """Logits from the last token and the position: honest, different everywhere."""

    def __init__(self) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(5)
        self.w = nn.Parameter(torch.randn(V, V, generator=rng))
        self.p = nn.Parameter(torch.randn(T, V, generator=rng))
        self.drop = nn.Dropout(0.5)

    def forward(self, ids: Tensor) -> Tensor:
        return self.drop(self.w[ids] + self.p[: ids.shape[1]])


def copier(ids: Tensor) -> Tensor:
    """Certain of the next token where it can read it, uniform at the last position, where it cannot."""
    return 1e4 * F.pad(F.one_hot(ids[:, 1:], V), (0, 0, 0, 1)).float()


def uniform(ids: Tensor) -> Tensor:
    return torch.zeros(*ids.shape, V)


def by_hand(model: Bigram, windows: int, seed: int) -> np.ndarray:
    """The loss of each token, (windows, T), in numpy and float64."""
    starts, _, _ = corpus().windows("val", windows, T, seed)
    ids, w, p = corpus().val.numpy(), model.w.detach().double().numpy(), model.p.detach().double().numpy()
    out = np.zeros((windows, T))
    for i, s in enumerate(starts.tolist()):
        for t in range(T):
            z = w[ids[s + t]] + p[t]
            out[i, t] = np.log(np.exp(z).sum()) - z[ids[s + t + 1]]
    return out


def test_losses_are_those_by_hand() -> None:
    model, c = Bigram(), corpus()
    nats = by_hand(model, 70, 3)
    ordered = ordered_loss(model, c, T, windows=70, seed=3)
    np.testing.assert_allclose(ordered.values, nats.mean(1), rtol=1e-5)
    assert ordered.mean == pytest.approx(nats.mean(), rel=1e-5)
    assert ordered.se == pytest.approx(nats.mean(1).std(ddof=1) / 70**0.5, rel=1e-5)
    np.testing.assert_allclose(honest_loss(model, c, T, windows=70, seed=3).values, nats[:, -1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(loss_by_position(model, c, T, windows=70, seed=3), nats.mean(0), rtol=1e-5)
    truncated = truncated_loss(model, c, T, windows=70, seed=3).values
    at = [int(np.abs(row - v).argmin()) for row, v in zip(nats, truncated.numpy(), strict=True)]
    np.testing.assert_allclose(truncated, nats[range(70), at], rtol=1e-4, atol=1e-5)  # one position of each window
    assert min(at) < 3 and max(at) > T - 4  # from everywhere
    refilled = refilled_loss(model, c, T, windows=70, seed=3).values
    np.testing.assert_allclose(refilled, truncated, rtol=1e-5, atol=1e-6)  # an honest model feels no future


def test_a_copier_is_caught_by_the_last_position() -> None:
    c = corpus()
    assert honest_loss(copier, c, T).mean == pytest.approx(math.log(V), abs=1e-6)
    assert ordered_loss(copier, c, T).mean == pytest.approx(math.log(V) / T, abs=1e-6)
    positions = loss_by_position(copier, c, T)
    assert positions[:-1].max() < 1e-6 and positions[-1] == pytest.approx(math.log(V), abs=1e-6)
    assert truncated_loss(copier, c, T).mean == pytest.approx(math.log(V), abs=1e-6)  # every prefix ends there
    assert refilled_loss(copier, c, T).mean > 1000  # it believes the wrong future


def test_floor() -> None:
    c = corpus()
    assert floor(copier, c, T).below and floor(copier, c, T).mean == pytest.approx(math.log(V) * (1 / T - 1), abs=1e-6)
    even = floor(uniform, c, T)
    assert not even.below and even.mean == pytest.approx(0, abs=1e-6)
    skewed = corpus(uniform=False)
    _, _, y = skewed.windows("val", 512, T, 1)
    expected = math.log(V) + (torch.arange(1, V + 1) / 28).log().double()[y].mean()  # of exactly these tokens
    assert floor(uniform, skewed, T).mean == pytest.approx(expected.item(), abs=1e-6)
    with pytest.raises(ValueError, match="no known entropy"):
        floor(uniform, c.shuffled(0), T)


@pytest.mark.parametrize("kind", [ordered_loss, honest_loss, truncated_loss, refilled_loss])
def test_the_excess_of_the_true_chances_is_nothing(kind) -> None:
    c = corpus(uniform=False)
    p = torch.arange(1, V + 1) / 28

    def knows(ids: Tensor) -> Tensor:
        return p.log().expand(*ids.shape, V)

    loss, even = kind(knows, c, T, windows=64), kind(uniform, c, T, windows=64)
    assert excess(loss, c).mean == pytest.approx(0, abs=1e-6) and excess(loss, c).se < 1e-6 < loss.se
    assert excess(even, c).mean == pytest.approx(even.minus(loss).mean, abs=1e-6)
    for other, says in ((c.shuffled(0), "no known entropy"), (replace(c, name="other"), "no floor on 'other'")):
        with pytest.raises(ValueError, match=says):
            excess(loss, other)


@pytest.mark.parametrize(("kind", "last"), [(ordered_loss, False), (honest_loss, True)])
def test_the_excess_on_verse_is_that_by_hand(kind, last) -> None:
    """A table of pairs, on windows drawn anew: its nats minus the oracle's, at the tokens that are predicted."""
    c, length = verse(), 128
    train, val, oracle = c.train.numpy(), c.val.numpy(), c.oracle.numpy()
    counts = np.ones((len(c.vocab), len(c.vocab)))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    log = np.log(counts / counts.sum(1, keepdims=True))
    u = random.Random("windows of 1").random
    at = np.array([int(u() * (len(val) - length)) for _ in range(300)])[:, None] + np.arange(length)
    d = -log[val[at], val[at + 1]] - oracle[at + 1]
    d = d[:, -1] if last else d.mean(1)
    found = excess(kind(lambda ids: torch.from_numpy(log)[ids], c, length, windows=300), c)
    assert found.mean == pytest.approx(d.mean(), abs=1e-6)
    assert found.se == pytest.approx(d.std(ddof=1) / 300**0.5, abs=1e-6)


def test_losses_at_other_positions_are_not_paired() -> None:
    c = corpus()
    with pytest.raises(ValueError, match="same positions"):
        ordered_loss(uniform, c, T, windows=64).minus(honest_loss(uniform, c, T, windows=64))


def shortened(text: Corpus, size: int) -> Corpus:
    return replace(text, val=text.val[:size], oracle=text.oracle[:size])


def test_windows_side_by_side_are_counted_and_few_of_them_are_said() -> None:
    for size, length in (17, 16), (33, 16), (40, 7), (480, 16), (481, 16), (3000, 16):
        loss = ordered_loss(uniform, shortened(corpus(), size), length, windows=5)
        room = len(range(0, size - length, length))  # a window reads `length` tokens, and is judged by one more
        assert loss.as_dict()["side_by_side"] == room and loss.few == (room < 30)
        assert (f"too small an error: {room} side by side" in str(loss)) == loss.few
    few = shortened(corpus(uniform=False), 60)
    for found in (*floors(copier, few, T, windows=20), shuffled_gap(copier, few, T, windows=20)):
        assert not found.below and "on so little text" in str(found)


def test_an_error_over_few_windows_is_false_precision() -> None:
    """On texts of one source losses differ by their error; on short ones by many times the error that is said."""
    guess = torch.arange(1, V + 1).float().log()
    rng = torch.Generator().manual_seed(1)

    def understated(size: int) -> float:
        texts = (torch.multinomial(guess.exp(), size, replacement=True, generator=rng) for _ in range(40))
        found = [ordered_loss(lambda ids: guess.expand(*ids.shape, V), replace(corpus(), val=ids, oracle=None), T)
                 for ids in texts]  # fmt: skip
        return float(np.std([loss.mean for loss in found], ddof=1) / np.mean([loss.se for loss in found]))

    assert understated(40) > 5 and understated(3000) < 2.5


@pytest.mark.parametrize("score", [ordered_loss, honest_loss, shuffled_gap, floors, refilled_loss, truncated_loss])
def test_a_name_is_no_corpus_and_a_text_no_model(score) -> None:
    with pytest.raises(ValueError, match=r"expected a Corpus, got 'verse': write verse\(\), shakespeare\(\) or text"):
        score(uniform, "verse", T)
    with pytest.raises(ValueError, match="a model is a callable"):
        score(corpus(), uniform, T)


def test_shuffled_gap() -> None:
    c = corpus(uniform=False)
    p = torch.bincount(c.val, minlength=V).double() / len(c.val)

    def counts(ids: Tensor) -> Tensor:
        return p.log().float().expand(*ids.shape, V)

    leak, honest = shuffled_gap(copier, c, T), shuffled_gap(counts, c, T)
    assert honest.unigram == pytest.approx(-(p * p.log()).sum().item())
    assert leak.below and leak.shuffled.mean == pytest.approx(math.log(V) / T, abs=1e-6)
    assert not honest.below and abs(honest.shuffled.mean - honest.unigram) < 4 * honest.shuffled.se
    assert honest.gap == honest.shuffled.mean - honest.ordered.mean and "below it" in str(leak)


@pytest.mark.parametrize(
    ("mean", "se", "below"),
    [(-0.039, 0.01, False), (-0.041, 0.01, True), (0.041, 0.01, False), (-9e-6, 0.0, False), (-1.1e-5, 0.0, True),
     (-1.0, math.inf, False)],
)  # fmt: skip
def test_below_a_floor_is_by_four_standard_errors_and_more_than_rounding(mean: float, se: float, below: bool) -> None:
    shuffled = Loss(3 + mean, se, torch.tensor([]))
    difference = Difference(mean, se, mean, mean)
    for found in (difference, Floor("dice", shuffled, 3.0, difference), ShuffledGap(shuffled, shuffled, 3.0)):
        assert found.below is below
        if found is not difference:
            assert ("reads the future" in str(found)) is below and ("finds nothing" in str(found)) is not below


def test_differences_are_paired() -> None:
    c, model = corpus(), Bigram()
    a, b = ordered_loss(model, c, T), ordered_loss(uniform, c, T)
    d = a.minus(b)
    assert d.mean == pytest.approx(a.mean - b.mean) and d.low < d.mean < d.high
    assert d.high - d.low == pytest.approx(2 * 1.96 * d.se, rel=0.1)  # of 512 windows the bootstrap is near normal
    assert a.minus(a) == type(d)(0.0, 0.0, 0.0, 0.0)
    for other in ({"seed": 2}, {"windows": 9}, {"length": T - 1}):
        with pytest.raises(ValueError, match="same windows"):
            a.minus(ordered_loss(model, c, **{"length": T, **other}))


def test_the_bootstrap_covers() -> None:
    rng, hits = torch.Generator().manual_seed(0), 0
    for _ in range(200):
        v = torch.randn(60, generator=rng, dtype=torch.float64)
        d = Loss(0, 0, v).minus(Loss(0, 0, torch.zeros(60, dtype=torch.float64)))
        hits += d.low < 0 < d.high
    assert 180 <= hits <= 198  # 95 % of 200, give or take 3 standard errors


def test_scoring_leaves_the_model_alone() -> None:
    model = Bigram()
    model.drop.eval()
    dice = torch.get_rng_state()
    for score in (ordered_loss, honest_loss, loss_by_position, truncated_loss, refilled_loss, shuffled_gap, floor):
        score(model, corpus(), T, windows=8)
    assert model.training and not model.drop.training and torch.equal(torch.get_rng_state(), dice)
    assert all(p.grad is None for p in model.parameters())
    model.drop.train()
    assert ordered_loss(model, corpus(), T).mean == ordered_loss(model, corpus(), T).mean  # dropout is off


def test_bad_input() -> None:
    c = corpus()
    for score in (ordered_loss, honest_loss, loss_by_position, truncated_loss, refilled_loss, shuffled_gap, floor):
        with pytest.raises(ValueError, match="give length="):
            score(uniform, c)
        with pytest.raises(ValueError, match="at least 1"):
            score(uniform, c, 0)
        with pytest.raises(ValueError, match="windows = 0"):
            score(uniform, c, T, windows=0)
        with pytest.raises(ValueError, match="cannot score token 6"):
            score(lambda ids: torch.zeros(*ids.shape, 3), c, T)
        with pytest.raises(ValueError, match="the model failed"):
            score(Bigram(), c, T + 1)


def test_a_loss_that_is_no_number_is_an_error_not_a_mean():
    corpus = verse()

    def broken(ids):
        return torch.full((*ids.shape, len(corpus.vocab)), math.nan)

    for loss in (ordered_loss, honest_loss, shuffled_gap, floor):
        with pytest.raises(FloatingPointError, match="no number in 8 of 8 windows"):
            loss(broken, corpus, length=16, windows=8)


def test_a_model_that_overwrites_its_input_is_scored_as_one_that_does_not():
    corpus = verse()
    table = torch.randn(len(corpus.vocab), len(corpus.vocab), generator=torch.Generator().manual_seed(0))

    def scribbles(ids):
        out = table[ids]
        ids.fill_(0)
        return out

    kept = ordered_loss(lambda ids: table[ids], corpus, length=16, windows=8)
    assert ordered_loss(scribbles, corpus, length=16, windows=8).mean == kept.mean


def test_floors_of_an_honest_model_hold() -> None:
    found = {f.text: f for f in floors(Bigram(), corpus(uniform=False), T, windows=200)}
    assert list(found) == ["uniform tokens", "dice, shuffled", "dice"]
    assert not any(f.below for f in found.values())
    assert found["uniform tokens"].limit == pytest.approx(math.log(V))
    assert found["dice, shuffled"].limit == pytest.approx(corpus(uniform=False).unigram_entropy)
    for f in found.values():
        assert f.loss.mean - f.limit == pytest.approx(f.difference.mean) and "finds nothing" in str(f)


def test_a_copier_is_below_every_floor() -> None:
    for f in floors(copier, corpus(uniform=False), T, windows=200):
        assert f.below and f.loss.mean < f.limit / 4 and "reads the future" in str(f)


def test_floors_are_met_exactly_by_the_best_predictors() -> None:
    """A uniform guess costs ln V on any text; the true token frequencies cost the unigram entropy of a shuffled one."""
    text = corpus(uniform=False)
    counts = torch.bincount(text.val, minlength=V).double().log().float()
    by_name = {f.text: f for f in floors(lambda ids: counts.expand(*ids.shape, V), text, T, windows=400)}
    assert abs(by_name["dice, shuffled"].difference.mean) < 5 * by_name["dice, shuffled"].difference.se
    flat = {f.text: f for f in floors(uniform, text, T, windows=50)}
    assert flat["uniform tokens"].difference.mean == pytest.approx(0, abs=1e-6) and not flat["uniform tokens"].below


def test_a_text_without_an_oracle_has_two_floors() -> None:
    text = corpus()
    text = Corpus("own", text.train, text.val, text.vocab)
    assert [f.text for f in floors(uniform, text, T, windows=50)] == ["uniform tokens", "own, shuffled"]
