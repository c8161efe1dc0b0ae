"""The causality audit: does a model's output at position t depend on tokens after t?

The audit edits the future at fixed length and watches the past. It decides by what it sees and nothing else: no
gradients (an argmax has none), no NaNs (a masked softmax spreads them), no shorter texts (many honest models feel the
length).
"""
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from fourierqk.adapter import Adapter, Arguments, Model, RefusedError, block_size, check_model
from fourierqk.causality.bench import Control, control
from fourierqk.causality.examine import Examination, beside, examine, rerandomised
from fourierqk.causality.limits import ALONE, THROWS
from fourierqk.causality.movement import Bench
from fourierqk.causality.probes import Plan, plan_edits, plan_redraws
from fourierqk.causality.subject import Subject
from fourierqk.causality.verdict import Audit, conclude
from fourierqk.progress import progress_bar

__all__ = ["Audit", "assert_causal", "audit"]


def audit(
    model: Model,
    vocab_size: int,
    length: int,
    *,
    draws: int = 20,
    seed: int = 0,
    text: Tensor | None = None,
    positions: int = 512,
    lengths: Sequence[int] = (),
    axes: Sequence[str] = (),
    kwargs: Arguments = MappingProxyType({}),
    progress: bool | None = None,
) -> Audit:
    """Look for a dependence of outputs on later tokens, and say where it enters and how far it reaches.

    model: an nn.Module or any callable, ids (B, T) -> logits (B, T, V), or a tuple that starts with them, or an object
    with .logits. It is left as it was: weights, buffers, mode, random generators.
    length: tokens of the probes; lengths: further ones to try, for a leak may need a longer text.
    draws: re-drawn futures at each cut (about 25 cuts). text: ids (N,) of real text, when triggers may be rare in
    random text. positions: the map edits each of at most so many positions.
    axes: what else to ask. "train": the same in training mode, for four throws of the dice. "batch": whether one row of
    a batch hears another, in eval mode. A leak along an axis counts in the verdict.
    kwargs: further arguments of each call, the same for all ({"mask": ...}), or a function of the ids (B, T) that
    returns them, where they depend on the length or on the text.
    progress: a bar after three seconds; None shows it in a terminal or notebook.

    Verdicts are explained in `Audit`. Unseen remain: a trigger rarer than the probes, such as one pair of tokens among
    thousands (`text` helps where real text has it); a branch that is switched off inside an opaque function, or by a
    frozen weight or a buffer (trainable weights are drawn anew in a copy); a leak that needs a longer text than was
    tried, or, beyond `positions` tokens, one between two neighbours; a code that another rounding would change
    (chaos); a maximum over a whole batch that no probe exceeds. ValueError: the model fails, returns something other
    than logits, or no number at all.
    """
    ask = _Question(vocab_size, length, draws, seed, text, positions)
    check_model(model, kwargs)
    _check(model, ask, lengths, axes)
    adapter = Adapter(model, kwargs)
    with adapter.restored(), progress_bar(progress, ask.estimate * (1 + len(lengths)), unit="probe", delay=3) as bar:
        found = {n: _at(adapter, replace(ask, length=n), bar.update) for n in dict.fromkeys((length, *lengths))}
        others = {axis: AXES[axis](adapter, ask) for axis in dict.fromkeys(axes)}
    return _merge(found, others)


def assert_causal(model: Model, vocab_size: int, length: int, **how: Any) -> Audit:
    """For a test: audit a model, and fail with module, cut and size unless the verdict is "causal".

    how: keywords of `audit`. AssertionError where the model leaks, and where the audit cannot tell.
    """
    found = audit(model, vocab_size, length, **how)
    if found.verdict != "causal":
        raise AssertionError(f"not causal: {found}")
    return found


@dataclass(frozen=True)
class _Question:
    """What to ask of a model."""

    vocab_size: int
    length: int
    draws: int
    seed: int
    text: Tensor | None
    positions: int

    def redraws(self, draws: int, seed: int) -> Plan:
        return plan_redraws(self.vocab_size, self.length, draws, seed, self.text)

    def edits(self, base: Tensor) -> Plan:
        """Probes of the map: all positions, or evenly spaced ones with both ends."""
        repeats = max(1, min(4, 128 // self.length))  # a short text leaves time to edit each token more than once
        spread = {round(i) for i in torch.linspace(0, self.length - 1, self.positions).tolist()} | {*range(8)}
        where = sorted(spread & {*range(self.length)}) if self.length > self.positions else [*range(self.length)]
        return plan_edits(base, self.vocab_size, where, repeats, self.seed)

    @property
    def estimate(self) -> int:
        """About how many probes the answer takes."""
        return min(self.length, self.positions) + 25 * (self.draws + min(self.draws, 4))


def _check(model: Model, ask: _Question, lengths: Sequence[int], axes: Sequence[str]) -> None:
    for name, least in (("vocab_size", 2), ("length", 2), ("draws", 1), ("positions", 2), ("seed", 0)):
        value = getattr(ask, name)
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} = {value!r} must be a whole number, at least {least}")
    if not isinstance(lengths, Sequence):
        raise ValueError(f"lengths = {lengths!r} must be a list of whole numbers")
    longest = block_size(model)
    for n in (ask.length, *lengths):
        if not isinstance(n, Integral) or n < 2 or n > (longest or n):
            limit = f" and at most block_size = {longest}" * bool(longest)
            raise ValueError(f"length = {n!r} must be a whole number, at least 2 (a past and a future)" + limit)
    if not set(axes) <= set(AXES) or isinstance(axes, str):
        raise ValueError(f"axes = {axes!r} must be a list of some of {', '.join(AXES)}")
    if ask.text is not None:
        _check_text(ask.text, max(ask.length, *lengths, 2), ask.vocab_size)


def _check_text(text: Tensor, length: int, vocab_size: int) -> None:
    ok = isinstance(text, Tensor) and text.dim() == 1 and not (text.is_floating_point() or text.is_complex())
    if not (ok and len(text) >= length and 0 <= text.min() <= text.max() < vocab_size):
        raise ValueError(f"text must be ids (N,) with N >= {length} and values in 0 .. {vocab_size - 1}")


def _subject(adapter: Adapter, seed: int) -> tuple[Subject, list[str]]:
    """A copy to probe, in float32 at least, or the model itself where it cannot be copied."""
    own = Subject(adapter, seed).copied()
    if own is None:
        kind = "a model that cannot be copied" if isinstance(adapter.model, nn.Module) else "a function, not a module"
        note = f"{kind}: judged in its own precision and with these weights alone; what is switched off is not seen"
        return Subject(adapter, seed), [note]
    if own.eps > torch.finfo(torch.float32).eps and (finer := own.copied(torch.float32)):
        return finer, ["half-precision weights: a float32 copy was judged"]
    return own, []


def _at(adapter: Adapter, ask: _Question, tick: Callable[[int], object]) -> Audit:
    """The answer at one length."""
    subject, notes = _subject(adapter, ask.seed)
    redraws = ask.redraws(ask.draws, ask.seed)
    edits = ask.edits(redraws.bases[0])
    held = control(subject, redraws.bases, edits)
    notes += _headless(held.numbers, ask.vocab_size)
    bench = replace(held.bench, tick=tick)
    few = ask.redraws(min(ask.draws, 3), ask.seed + 1)
    realised, structural = examine(held.subject, [edits, redraws], bench), None
    if realised.verdict != "leaks":
        realised = _alone(held, [edits, few], bench) or realised
    if realised.verdict != "leaks":
        fresh = rerandomised(held.subject)
        structural = _examined(fresh, [few], bench) if fresh else None
    return conclude(realised, structural, edits, replace(held, bench=bench, notes=(*held.notes, *notes)))


def _headless(numbers: int, vocab_size: int) -> list[str]:
    """What to say where a position does not have one number for each token. Any numbers can hear the future."""
    if numbers == vocab_size:
        return []
    why = "no logits; is the head missing?" if numbers < vocab_size else "a padded vocabulary, or no head"
    return [f"{numbers} numbers at each position, but vocab_size = {vocab_size} ({why}): these numbers were judged"]


def _alone(held: Control, plans: list[Plan], bench: Bench) -> Examination | None:
    """A leak that shows only where a text is alone in its batch, or beside copies of itself; None where there is none.

    Where the number of texts changes the output, all of them are tried; else some, for what rows share (a maximum over
    the batch, say) may hide a leak from many rows at once.
    """
    if len(held.sizes) == 1:
        plans = [plans[-1].some(ALONE)]
    for copies in held.sizes:
        found = examine(replace(held.subject, copies=copies), plans, replace(bench, rows=1))
        if found.verdict == "leaks":
            return found
    return None


def _examined(subject: Subject, plans: list[Plan], bench: Bench) -> Examination | None:
    """None where the subject does not run."""
    try:
        return examine(subject, plans, bench)
    except RefusedError:
        return None


def _in_training(adapter: Adapter, ask: _Question) -> str:
    """The gravest verdict in training mode, over some throws of the dice, each the same for a probe and its base."""
    verdicts = []
    for seed in range(ask.seed, ask.seed + THROWS):
        subject, _ = _subject(adapter, seed)
        subject, few = replace(subject, training=True), ask.redraws(1, seed)
        held = control(subject, few.bases, ask.edits(few.bases[0]))
        verdicts.append(examine(held.subject, [few], held.bench).verdict if held.repeatable else "inconclusive")
    return max(verdicts, key=SEVERITY.index)


def _across_rows(adapter: Adapter, ask: _Question) -> str:
    """Whether the first row of a batch moves when the others change."""
    subject, _ = _subject(adapter, ask.seed)
    few = ask.redraws(1, ask.seed)
    held = control(subject, few.bases, ask.edits(few.bases[0]))
    steady = beside(held.subject, few.bases, few.ids[: len(few.bases)].flip(1))
    return {True: "leaks", None: "inconclusive", False: "causal"}[steady.repeats if held.repeatable else None]


AXES = {"train": _in_training, "batch": _across_rows}
SEVERITY = ("causal", "inconclusive", "leaks")


def _merge(found: dict[int, Audit], axes: dict[str, str]) -> Audit:
    """The gravest answer of all that was asked, with a word on the others."""
    worst = max(found.values(), key=lambda a: SEVERITY.index(a.verdict))
    says = {"train": "in training mode", "batch": "across the rows of a batch"}
    more = [f"at {n} tokens: {a.verdict}" for n, a in found.items()] if len(found) > 1 else []
    more += [f"{says[axis]}: {verdict}" for axis, verdict in axes.items()]
    return replace(
        worst,
        verdict=max((worst.verdict, *axes.values()), key=SEVERITY.index),
        probes=sum(a.probes for a in found.values()),
        evidence=(*worst.evidence, *more),
        lengths={n: a.verdict for n, a in found.items()},
        axes=axes,
    )
