"""Losses that a look into the future cannot flatter, and the theorems that convict a model which looks.

A model that reads later tokens can report any loss it likes at the positions that have later tokens. Three ways out:
score the one position that has none (`honest_loss`), compare with what no predictor can beat (`floor`,
`shuffled_gap`), or edit the future and watch (`fourierqk.audit`).

All losses are in nats per token, evaluated in float32 and eval mode, on a fixed list of windows that depends on
`seed` alone: two models are scored on the same text, so that their difference can be paired window by window.
"""
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from fourierqk.adapter import Adapter, Model, check_model
from fourierqk.checks import check_count
from fourierqk.data import Corpus, check_corpus
from fourierqk.records import FEW_WINDOWS
from fourierqk.sizes import block_size

__all__ = [
    "Difference", "Floor", "Loss", "Scored", "ShuffledGap", "excess", "floor", "floors", "honest_loss",
    "loss_by_position", "ordered_loss", "refilled_loss", "shuffled_gap", "truncated_loss",
]  # fmt: skip

MARGIN = 4  # standard errors below a floor before we call it broken,
ROUNDING = 1e-5  # and nats: windows may all agree, and float32 still rounds


def _below(mean: float, se: float) -> bool:
    """Whether a loss less a floor is negative by more than chance makes it."""
    return mean < -max(MARGIN * se, ROUNDING)


def _verdict(below: bool, few: bool) -> str:
    if few:
        return "on so little text this test says nothing"
    return "below it: the model reads the future" if below else "not below it: this test finds nothing"


@dataclass(frozen=True)
class Difference:
    """A paired difference of two losses, in nats per token, with its standard error and bootstrap 95 % interval."""

    mean: float
    se: float
    low: float
    high: float

    @property
    def below(self) -> bool:
        """Whether the difference is negative by more than 4 standard errors."""
        return _below(self.mean, self.se)

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.se:.3f} nats per token, 95 % in [{self.low:+.3f}, {self.high:+.3f}]"


class Scored(NamedTuple):
    """What a loss was taken of: windows of a text, and which of their positions ("all", "last" or "prefixes").

    side_by_side: how many windows the text holds that do not overlap.
    """

    text: str
    split: str
    windows: int
    length: int
    seed: int
    positions: str
    side_by_side: int


@dataclass(frozen=True)
class Loss:
    """A mean loss in nats per token, its standard error over windows, and the loss of each window.

    Windows are drawn with uniform starts and may overlap; the standard error is that of independent ones. On a text
    that holds too few side by side (`few`) they are the same tokens over and over, and the error is too small.
    """

    mean: float
    se: float
    values: Tensor = field(repr=False)  # (windows,) float64, on the CPU
    where: Scored | None = field(default=None, repr=False)  # losses are paired only on the same positions

    @property
    def few(self) -> bool:
        """Whether the text holds so few windows side by side that the standard error is not to be believed."""
        return self.where is not None and self.where.side_by_side < FEW_WINDOWS

    def minus(self, other: "Loss") -> Difference:
        """This loss minus another on the same windows, paired, with a bootstrap over windows."""
        if self.where != other.where or self.values.shape != other.values.shape:
            raise ValueError(
                "only losses on the same positions of the same windows can be paired, these are "
                f"{self.where or len(self.values)} and {other.where or len(other.values)}: use one kind of loss, with "
                "the same corpus, length, windows and seed"
            )
        return _difference(self.values - other.values)

    def as_dict(self) -> dict[str, float | int]:
        """Mean, standard error, number of windows, and how many the text holds side by side, as records keep them."""
        room = {} if self.where is None else {"side_by_side": self.where.side_by_side}
        return {"mean": self.mean, "se": self.se, "windows": len(self.values), **room}

    def __str__(self) -> str:
        doubt = f"; too small an error: {self.where.side_by_side} side by side" if self.where and self.few else ""
        return f"{self.mean:.3f} ± {self.se:.3f} nats per token ({len(self.values)} windows{doubt})"


def _loss(values: Tensor, where: Scored) -> Loss:
    values = values.double()
    if not values.isfinite().all():
        bad = int((~values.isfinite()).sum())
        raise FloatingPointError(f"the loss is no number in {bad} of {len(values)} windows: NaN or infinite logits")
    return Loss(values.mean().item(), _se(values), values, where)


def _se(values: Tensor) -> float:
    return values.std().item() / math.sqrt(len(values)) if len(values) > 1 else math.inf  # one window tells no spread


def _difference(d: Tensor) -> Difference:
    n, rng = len(d), torch.Generator().manual_seed(0)
    means = torch.cat([d[torch.randint(n, (100, n), generator=rng)].mean(1) for _ in range(20)])  # 2000 resamples
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=means.dtype)).tolist()
    return Difference(d.mean().item(), _se(d), low, high)


def _length(model: Model, corpus: Corpus, length: int | None) -> int:
    """The length of the windows, once it is known what is to be scored on what."""
    check_model(model)
    check_corpus(corpus)
    longest = block_size(model)
    if length is not None:
        return check_count(length, "length", most=longest)
    if longest is None:
        raise ValueError("this model does not say how long its windows are: give length=, the length it was trained on")
    return longest


def _windows(
    corpus: Corpus, windows: int, length: int, seed: int, positions: str = "all"
) -> tuple[Tensor, Tensor, Tensor, Scored]:
    check_count(windows, "windows")
    if corpus.hidden and positions != "all":
        raise ValueError(f"{corpus.name} is masked: its loss is ordered_loss, at the hidden tokens of whole windows")
    where = Scored(corpus.name, "val", windows, length, seed, positions, (len(corpus.val) - 1) // length)
    return (*corpus.windows("val", windows, length, seed), where)


def _nats(model: Model, x: Tensor, y: Tensor, last: int | None = None) -> Iterator[Tensor]:
    """The loss at each position, or at the `last` few, of batches of windows: (b, T) float64 tensors on the CPU."""
    adapter, rows = Adapter(model), max(1, min(64, 16384 // x.shape[1]))
    with adapter.at_rest():
        for xb, yb in zip(x.split(rows), y.split(rows), strict=True):
            z = adapter.logits(xb.to(adapter.device))
            if int(yb.max()) >= z.shape[-1]:
                raise ValueError(f"a model with {z.shape[-1]} outputs cannot score token {int(yb.max())} of this text")
            z, yb = (z, yb) if last is None else (z[:, -last:], yb[:, -last:])
            yield F.cross_entropy(z.float().transpose(1, 2), yb.to(adapter.device), reduction="none").cpu().double()


def ordered_loss(model: Model, corpus: Corpus, length: int | None = None, windows: int = 512, seed: int = 1) -> Loss:
    """The paper's loss: all positions of full windows of the held-out text. A leak lowers it.

    On a masked corpus: all hidden positions, and nothing can lower it but knowledge of the text.

    length: tokens in a window, by default the model's block_size.
    """
    _, x, y, where = _windows(corpus, windows, _length(model, corpus, length), seed)
    return _loss(torch.cat([v.sum(1) for v in _nats(model, x, y)]) / (y >= 0).sum(1), where)


def honest_loss(model: Model, corpus: Corpus, length: int | None = None, windows: int = 2048, seed: int = 1) -> Loss:
    """The loss at the last position of full windows: it has no future, so any model is honest there.

    length: the length the model was trained on, by default its block_size. At another length this is still honest,
    but a filter of n samples is then asked something it never learned. On a masked corpus every answer is hidden from
    both sides, and the honest loss is the ordered one.
    """
    length = _length(model, corpus, length)
    if corpus.hidden:
        return ordered_loss(model, corpus, length, windows, seed)
    _, x, y, where = _windows(corpus, windows, length, seed, "last")
    return _loss(torch.cat([v[:, 0] for v in _nats(model, x, y, last=1)]), where)


def loss_by_position(
    model: Model, corpus: Corpus, length: int | None = None, windows: int = 512, seed: int = 1
) -> Tensor:
    """The mean loss at each position of full windows -> (length,) float64, nats.

    An honest model falls and levels off, since context only helps. A leaking one is low inside and rises at the end,
    where the future runs out. The last value estimates `honest_loss`; its mean is `ordered_loss`.
    """
    _, x, y, _ = _windows(corpus, windows, _length(model, corpus, length), seed)
    return torch.stack([v.sum(0) for v in _nats(model, x, y)]).sum(0) / (y >= 0).sum(0)


def _ends(windows: int, length: int, seed: int) -> Tensor:
    """For each window, where the text that the model may use ends: uniform in 1 .. length."""
    return torch.randint(1, length + 1, (windows,), generator=torch.Generator().manual_seed(seed))


def truncated_loss(model: Model, corpus: Corpus, length: int | None = None, windows: int = 512, seed: int = 1) -> Loss:
    """The loss at the last position of prefixes whose length is uniform in 1 .. length: the future is cut off.

    Honest too, but it changes the length, which a filter of n samples feels. Not to be read as the honest loss.
    """
    length = _length(model, corpus, length)
    _, x, y, where = _windows(corpus, windows, length, seed, "prefixes")
    ends, values = _ends(windows, length, seed), torch.empty(windows, dtype=torch.float64)
    for n in ends.unique().tolist():
        rows = (ends == n).nonzero()[:, 0]
        values[rows] = torch.cat([v[:, 0] for v in _nats(model, x[rows, :n], y[rows, :n], last=1)])
    return _loss(values, where)


def refilled_loss(model: Model, corpus: Corpus, length: int | None = None, windows: int = 512, seed: int = 1) -> Loss:
    """The loss at the positions of `truncated_loss`, the future replaced by another place of the same text.

    The length stays, the content lies: a model that trusts the future is misled. An honest model scores as ever.
    """
    length = _length(model, corpus, length)
    _, x, y, where = _windows(corpus, windows, length, seed, "prefixes")
    _, other, _, _ = _windows(corpus, windows, length, seed + 1)
    ends = _ends(windows, length, seed)
    x = torch.where(torch.arange(length) < ends[:, None], x, other)
    values = torch.cat(list(_nats(model, x, y)))
    return _loss(values[torch.arange(windows), ends - 1], where)


@dataclass(frozen=True)
class ShuffledGap:
    """What a global permutation of the text costs a model, in nats per token.

    ordered, shuffled: the losses on the text and on one permutation of all its tokens; unigram: the entropy of its
    token counts. The gap decides nothing: over-confidence and a leak both widen it. The shuffled *loss* can decide:
    no predictor of a shuffled text beats its unigram entropy, so one that does has read the answer.
    """

    ordered: Loss
    shuffled: Loss
    unigram: float

    @property
    def gap(self) -> float:
        return self.shuffled.mean - self.ordered.mean

    @property
    def below(self) -> bool:
        """Whether the shuffled loss is below the unigram entropy by more than 4 standard errors: proof of a leak.

        Never where the text is too short for a standard error (`Loss.few`).
        """
        return not self.shuffled.few and _below(self.shuffled.mean - self.unigram, self.shuffled.se)

    def __str__(self) -> str:
        floor = f"unigram entropy {self.unigram:.3f}, {_verdict(self.below, self.shuffled.few)}"
        return f"gap {self.gap:+.3f} nats; shuffled loss {self.shuffled}, {floor}"


def shuffled_gap(
    model: Model, corpus: Corpus, length: int | None = None, windows: int = 512, seed: int = 1
) -> ShuffledGap:
    """The ordered loss against the loss on one global permutation of the held-out text (paper, section 4)."""
    length = _length(model, corpus, length)
    ordered, shuffled = (ordered_loss(model, c, length, windows, seed) for c in (corpus, corpus.shuffled(seed)))
    return ShuffledGap(ordered, shuffled, corpus.unigram_entropy)


def excess(loss: Loss, corpus: Corpus) -> Difference:
    """A loss minus what the best possible predictor pays for the very same tokens, paired by window.

    Some windows are harder than others, for the oracle too: this takes their luck out. Negative beyond chance
    (`.below`) only with a look into the future. ValueError for a corpus whose true entropy nobody knows, and for a loss
    that is not of its windows.
    """
    check_corpus(corpus)
    return _difference(loss.values - _oracle(corpus, loss.where))


def _oracle(corpus: Corpus, where: Scored | None) -> Tensor:
    """What the best possible predictor pays for what was scored -> (windows,) float64."""
    if not corpus.has_floor:
        raise ValueError(f"{corpus.name!r} has no known entropy, hence no floor: use verse(), metre() or a task()")
    if where is None or where.text != corpus.name:
        raise ValueError(f"a loss on {where.text if where else 'no text'!r} has no floor on {corpus.name!r}")
    starts, x, y, _ = _windows(corpus, where.windows, where.length, where.seed)
    nats = corpus.best(starts, x, y)
    if where.positions == "all":
        return nats.sum(1) / (y >= 0).sum(1)
    last = where.length if where.positions == "last" else _ends(where.windows, where.length, where.seed)
    return nats[torch.arange(where.windows), last - 1]


def floor(model: Model, corpus: Corpus, length: int | None = None, windows: int = 512, seed: int = 1) -> Difference:
    """The `excess` of the ordered loss: no honest model beats the oracle, at all positions of held-out text.

    `.below` says whether this one does, by more than 4 standard errors. ValueError for a corpus whose true entropy
    nobody knows.
    """
    return excess(ordered_loss(model, corpus, length, windows, seed), corpus)


@dataclass(frozen=True)
class Floor:
    """A text that nobody can predict better than `limit`, and what a model makes of it, in nats per token."""

    text: str
    loss: Loss
    limit: float
    difference: Difference  # of the loss to the limit

    @property
    def below(self) -> bool:
        """Whether the model beats what cannot be beaten, by more than 4 standard errors: proof of a leak.

        Never where the text is too short for a standard error (`Loss.few`).
        """
        return not self.loss.few and self.difference.below

    def __str__(self) -> str:
        verdict = _verdict(self.below, self.loss.few)
        return f"{self.text}: {self.loss}, no honest model below {self.limit:.3f}, {verdict}"


def floors(
    model: Model, corpus: Corpus, length: int | None = None, windows: int = 512, seed: int = 1
) -> tuple[Floor, ...]:
    """Every theorem that convicts a model by its loss alone, tried on held-out text.

    Uniform random tokens against ln V; one global permutation of the text against its unigram entropy; the text itself
    against its oracle, where that is known (`verse`). Below a floor, a model reads the future; above all of them
    nothing is proved.
    """
    length, tokens = _length(model, corpus, length), len(corpus.vocab)
    noise = torch.randint(tokens, (len(corpus.val),), generator=torch.Generator().manual_seed(seed))
    texts = (
        (replace(corpus, name="uniform tokens", val=noise, entropy_rate=None, oracle=None), math.log(tokens)),
        (corpus.shuffled(seed), corpus.unigram_entropy),
    )
    found = []
    for text, limit in texts:
        loss = ordered_loss(model, text, length, windows, seed)
        found.append(Floor(text.name, loss, limit, _difference(loss.values - limit)))
    if corpus.has_floor:
        loss = ordered_loss(model, corpus, length, windows, seed)
        over = excess(loss, corpus)
        found.append(Floor(corpus.name, loss, loss.mean - over.mean, over))
    return tuple(found)
