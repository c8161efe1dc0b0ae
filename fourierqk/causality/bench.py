"""What a model does when nobody edits the future: the controls that must hold before any probe means something."""
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fourierqk.adapter import Model, RefusedError, duplicate
from fourierqk.causality.limits import ELEMENTS, FELT, ODD_ONE, ROWS, SAME, UNIT_TEXTS, WARM
from fourierqk.causality.movement import Bench, alike, change
from fourierqk.causality.probes import Plan
from fourierqk.causality.subject import Subject

__all__ = ["Control", "control"]


@dataclass(frozen=True)
class Control:
    """How a model must be probed, and what to tell of it. blind: where nothing can be compared."""

    subject: Subject
    bench: Bench
    sizes: tuple[int, ...]  # how many copies of a text in a batch have to be tried
    repeatable: bool
    prefix_consistent: bool | None
    notes: tuple[str, ...]
    blind: str
    beside: Subject | None  # with other texts in every batch, where these matter
    warm: Subject | None  # that has read other texts before each call, where it keeps state between calls
    dice: bool  # whether outputs depend on random numbers
    numbers: int  # at each position: as many as there are tokens, if these are logits


def control(subject: Subject, bases: Tensor, edits: Plan) -> Control:
    """The same text twice, with other dice, beside other rows, in batches of other sizes, and cut short."""
    unspoilt = duplicate(subject.adapter.model)  # that no call has touched, should the model keep state between calls
    subject, one = _first(subject, bases[:1])
    blind = _blind(one[0])
    rows = max(1, min(ROWS, ELEMENTS // one.numel()))
    subject, rows, notes = _batched(subject, rows, bases)
    base, other = bases[:rows], edits.ids[: min(rows, len(bases))]
    subject, repeatable, state = _repeatable(subject, unspoilt, base, other)
    notes += state
    if not repeatable:  # whatever else would differ, differs for this reason
        only, numbers = (subject.copies,), one.shape[-1]
        return Control(subject, Bench(rows), only, False, None, tuple(notes), blind, None, None, False, numbers)
    first = subject(base)
    dice = not alike(first, replace(subject, seed=subject.seed + 1)(base), SAME)
    if dice and not subject.training:
        notes.append("the model throws dice in eval mode (live dropout?): re-seeded before every call")
    beside = None
    if rows > 1 and not alike(first[:1], subject(torch.cat([base[:1], other[1:]]))[:1], SAME):
        rows, beside = 1, replace(subject, copies=1, beside=other[1:])
        notes.append(
            "outputs depend on the other rows of the batch: probed one row at a time, and beside fixed ones; "
            'axes=("batch",) asks whether rows hear each other'
        )
    sizes = _sizes(subject, base[:1])
    if len(sizes) > 1:
        notes.append("outputs depend on how many texts share a batch: probed in batches of 1, 2 and 3")
    bench = Bench(rows, _unit(subject, edits, min(rows, UNIT_TEXTS)))
    consistent = _prefix_consistent(subject, base[:1])
    warm = _warm(subject, bases[-1:]) if subject.forgetful else None
    return Control(
        subject, bench, sizes, repeatable, consistent, tuple(notes), blind, beside, warm, dice, one.shape[-1]
    )


def _first(subject: Subject, text: Tensor) -> tuple[Subject, Tensor]:
    """The first answer; twice the same text in a batch where a model cannot do with one."""
    try:
        first = subject(text)
    except RefusedError:
        pair = replace(subject, copies=2)
        try:
            return pair, pair(text)
        except RefusedError:
            pass
        raise  # the first complaint is the one to show
    again = subject.adapter.around(subject.adapter.model)  # some make their modules when first called
    return replace(subject, adapter=again), first


def _blind(z: Tensor) -> str:
    """Where the logits (T, V) are no numbers. ValueError where they are none anywhere."""
    if not z.isfinite().any():
        what = "NaN" if z.isnan().any() else "infinity"
        raise ValueError(f"the model returned {what} at every position: nothing can be compared")
    bad = z.isnan().any(-1)
    return f"NaN at {int(bad.sum())} of {len(z)} positions, the first at {int(bad.nonzero()[0])}" if bad.any() else ""


def _batched(subject: Subject, rows: int, bases: Tensor) -> tuple[Subject, int, list[str]]:
    many = bases.repeat(rows // len(bases) + 1, 1)[:rows]
    try:
        subject(many)
    except RefusedError:
        return subject, 1, [f"the model cannot read {rows} texts at once: probed one at a time"]
    return subject, rows, []


def _repeatable(
    subject: Subject, unspoilt: Model | None, base: Tensor, other: Tensor
) -> tuple[Subject, bool, list[str]]:
    """Whether the same texts give the same output after others; perhaps only from a copy that has seen nothing."""
    first, _, again = subject(base), subject(other), subject(base)
    if alike(first, again, SAME):
        return subject, True, []
    if unspoilt is None or unspoilt is subject.adapter.model:
        return subject, False, ["the model cannot be copied: whether it keeps state between calls is unknown"]
    fresh = replace(subject, adapter=subject.adapter.around(unspoilt), forgetful=True)
    first, _, again = fresh(base), fresh(other), fresh(base)
    if alike(first, again, SAME):
        says = "the model keeps state between calls: every probe ran on a fresh copy, some on one that had read others"
        return fresh, True, [says]
    return subject, False, []


def _warm(subject: Subject, text: Tensor) -> Subject | None:
    """The same after some calls on a text (1, T): what is kept may be read wrongly. None where it cannot be copied."""
    warm = subject.adapter.copied()
    if warm is None:
        return None
    for _ in range(WARM):
        subject.run(warm, text)
    return replace(subject, adapter=warm) if duplicate(warm.model) else None


def _sizes(subject: Subject, text: Tensor) -> tuple[int, ...]:
    """How many copies of a text to try: the model's own way alone, or several where their number changes the output."""
    known, same = subject(text), {}
    for copies in (1, 2, 3):
        try:
            same[copies] = alike(known, replace(subject, copies=copies)(text), SAME)
        except RefusedError:  # it cannot be asked so
            continue
    return (subject.copies,) if all(same.values()) else tuple(same)


def _unit(subject: Subject, edits: Plan, rows: int) -> Tensor | float:
    """What to divide each logit's movement by: more than 1 where it moves out of all proportion to the others.

    A padding logit of -1e15 jumps by whole steps of its own coarse grid, and must not set the scale for the rest.
    """
    some = edits.take(list(range(0, len(edits), max(1, len(edits) // rows)))[:rows])
    d = change(subject(some.bases[some.base]), subject(some.ids)).abs()
    later = torch.arange(d.shape[1], device=d.device) >= some.cut[:, None].to(d.device)
    most = torch.where(later[..., None] & d.isfinite(), d, 0).amax((0, 1))
    if not (most > 0).any():
        return 1.0
    ratio = most / most[most > 0].median()
    return torch.where(ratio > ODD_ONE, ratio, 1.0) if (ratio > ODD_ONE).any() else 1.0


def _prefix_consistent(subject: Subject, text: Tensor) -> bool | None:
    """Whether a shorter text gives the same outputs as the beginning of a longer one; None where it is refused."""
    whole, length = subject(text), text.shape[1]
    try:
        return all(alike(subject(text[:, :n]), whole[:, :n], FELT) for n in {length // 2, length - 1} - {0})
    except RefusedError:
        return None
