"""How far a model's outputs move before a cut, when the text from there on is another.

Both texts of a pair sit in the same row of batches of the same shape, since kernels may round differently from row to
row.
"""
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fourierqk.adapter import RefusedError
from fourierqk.causality.limits import ALIVE
from fourierqk.causality.probes import Plan
from fourierqk.causality.subject import Subject

__all__ = ["Bench", "Movement", "alike", "change", "probe"]


@dataclass(frozen=True)
class Bench:
    """How probes are run: rows in a batch, what to divide each logit's movement by, and whom to tell of progress."""

    rows: int = 1
    unit: Tensor | float = 1.0  # (V,): above 1 for logits that move out of all proportion to the others
    tick: Callable[[int], object] = lambda rows: None


@dataclass(frozen=True)
class Movement:
    """How far each position's logits moved, (P, T) float64: the largest change over the vocabulary, in each probe."""

    size: Tensor
    cut: Tensor  # (P,)

    @property
    def before(self) -> Tensor:
        """The largest movement before the cut of each probe, (P,)."""
        return self.size.masked_fill(torch.arange(self.size.shape[1]) >= self.cut[:, None], 0).amax(1)

    @property
    def after(self) -> Tensor:
        """What a probe's movement is measured by, (P,): the largest finite one at or after its cut.

        Taken over all probes at the same cut, and at least a tenth of the median over cuts: one edit that hardly
        matters must not make much of a little.
        """
        own = self.size.masked_fill(torch.arange(self.size.shape[1]) < self.cut[:, None], 0)
        own = own.masked_fill(~own.isfinite(), 0).amax(1)
        best = own.new_zeros(self.size.shape[1] + 1).scatter_reduce(0, self.cut, own, "amax")
        alive = best[best > 0]
        return best[self.cut].clamp(min=ALIVE * alive.median().item() if len(alive) else 0)

    @property
    def rel(self) -> Tensor:
        """Movement before the cut relative to the movement after it, (P,); infinite where nothing moved after."""
        return torch.where(self.before == 0, 0, self.before / self.after)


def change(a: Tensor, b: Tensor) -> Tensor:
    """b - a, but 0 between equal infinities or NaNs, and infinite where a number turned into one of them."""
    if a.shape != b.shape:
        raise RefusedError(f"the logits change their shape from call to call, {tuple(a.shape)} and {tuple(b.shape)}")
    d = b - a
    if not d.isfinite().all():
        d = torch.where((a == b) | (a.isnan() & b.isnan()), 0, d).nan_to_num(nan=torch.inf, posinf=torch.inf)
    return d


def alike(a: Tensor, b: Tensor, slack: float) -> bool:
    """Equal up to a share `slack` of each number and of the median logit of its position."""
    size = a.abs().nan_to_num(posinf=0)
    return bool((change(a, b).abs() <= slack * (size + size.median(-1, keepdim=True).values)).all())


def probe(subject: Subject, plan: Plan, bench: Bench) -> Movement:
    """Run every probe beside its base, some rows at a time, in batches of one shape."""
    k, rows = len(plan.bases), min(bench.rows, len(plan))
    rows = rows // k * k if rows >= k else rows  # whole rounds of bases: every batch has the same base rows, run once
    order = torch.arange(len(plan)) if rows >= k else plan.base.argsort(stable=True)
    size = torch.empty(len(plan), plan.bases.shape[1], dtype=torch.float64)
    known: Tensor | None = None
    for part in order.split(rows):
        padded = torch.cat([part, part[-1:].expand(rows - len(part))])
        base = plan.base[padded]
        if len(part) < rows and known is not None and torch.equal(base[: len(part)], known[: len(part)]):
            base = known
        if known is None or not torch.equal(base, known):
            known, reference = base, subject(plan.bases[base])
        moved = change(reference, subject(plan.ids[padded])).abs() / bench.unit
        size[part] = moved.amax(-1).cpu().double()[: len(part)]
        bench.tick(len(part))
    return Movement(size, plan.cut)
