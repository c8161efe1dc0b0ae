"""The ways of running a model that are judged: eval mode at some length, training mode, and rows beside each other.

What trains is computed in training mode, with gradients; what is measured and sampled from, in eval mode without. A
model may compute different things in the two, so a leak can be in one of them alone.

BatchNorm in training mode takes its statistics from all rows of a batch and, along time, from later tokens. The second
is a leak, of what trains alone. The first is none: a text is probed by itself, and beside other texts that stay the
same, so that nothing but its own later tokens can move it. Whether rows hear each other is a question of its own.
"""
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import torch
from torch import Tensor, nn

from fourierqk.adapter import Adapter, RefusedError
from fourierqk.causality.bench import Control, control
from fourierqk.causality.dice import same_dice, throws_dice
from fourierqk.causality.examine import Examination, beside, examine, rerandomised
from fourierqk.causality.limits import ALONE, BATCHES, ELEMENTS, LEAK, MORE_THROWS, ROWS, SAME, THROWS
from fourierqk.causality.movement import Bench, alike, probe
from fourierqk.causality.probes import Pair, Plan
from fourierqk.causality.question import Question
from fourierqk.causality.rounding import eps_of
from fourierqk.causality.subject import Subject
from fourierqk.causality.verdict import Audit, brief, conclude, conclude_rows, gravity

__all__ = ["AXES", "at_rest", "unasked"]


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


def _given(subject: Subject, adapter: Adapter) -> Subject | None:
    """The same in the precision that the weights were given in, where it is judged in a finer one: code may ask."""
    if subject.eps <= eps_of(*subject.adapter.weights):
        return None
    own = Subject(adapter, subject.seed).copied()
    return own and replace(subject, adapter=own.adapter)


def at_rest(adapter: Adapter, ask: Question, tick: Callable[[int], object]) -> Audit:
    """The answer in eval mode, without gradients, at one length."""
    subject, notes = _subject(adapter, ask.seed)
    redraws = ask.redraws(ask.draws, ask.seed)
    edits = ask.edits(redraws.bases[0])
    held = control(subject, redraws.bases, edits)
    notes += _headless(held.numbers, ask.vocab_size)
    bench = replace(held.bench, tick=tick)
    few = ask.redraws(min(ask.draws, 3), ask.seed + 1)
    realised, structural = examine(held.subject, [edits, redraws], bench), None
    if realised.verdict != "leaks":
        realised = _elsewhere(held, _given(held.subject, adapter), [edits, few], bench) or realised
    if realised.verdict == "leaks" and held.dice:
        realised = _fair(realised, [few, edits], bench)
    if realised.verdict != "leaks":
        fresh = rerandomised(held.subject)
        structural = _examined(fresh, [few], bench) if fresh else None
        if structural and structural.verdict == "leaks" and held.dice:
            structural = _fair(structural, [few, edits], bench)
    return conclude(
        realised, structural, edits, few, replace(held, bench=bench, notes=(*held.notes, *notes)), ask.every
    )


def _headless(numbers: int, vocab_size: int) -> list[str]:
    """What to say where a position does not have one number for each token. Any numbers can hear the future."""
    if numbers == vocab_size:
        return []
    why = "no logits; is the head missing?" if numbers < vocab_size else "a padded vocabulary, or no head"
    return [f"{numbers} numbers at each position, but vocab_size = {vocab_size} ({why}): these numbers were judged"]


def _elsewhere(held: Control, given: Subject | None, plans: list[Plan], bench: Bench) -> Examination | None:
    """A leak that shows only where a text is alone in its batch, or beside copies of itself, or beside other texts,
    after other texts, or in the precision that the weights were given in.

    Where the number of texts changes the output, all of them are tried; else some, for what rows share (a maximum over
    the batch, say) may hide a leak from many rows at once. None where there is none.
    """
    some = [plans[-1].some(ALONE)]
    alone = some if len(held.sizes) == 1 else plans
    settings = [(replace(held.subject, copies=copies), alone) for copies in held.sizes]
    settings += [(subject, some) for subject in (held.warm, given) if subject]
    settings += [(held.beside, plans[-1:])] if held.beside else []
    for subject, probes in settings:
        found = _examined(subject, probes, replace(bench, rows=1))
        if found and found.verdict == "leaks":
            return found
    return None


def _fair(found: Examination, plans: list[Plan], bench: Bench) -> Examination:
    """A leak, if probes that throw the same dice as their bases show it as well, one at a time."""
    same = [same_dice(found.subject, plan) for plan in plans]
    if sum(map(len, same)) == sum(map(len, plans)):
        return found
    if {kind for plan in same for kind in plan.kind} <= {"permuted"}:  # which shows no leak of a mean
        why = "how many random numbers the model draws depends on the text: no probe can be compared with its base"
        return replace(found, verdict="inconclusive", why=why)
    return examine(found.subject, list(filter(len, same)), replace(bench, rows=1))


def _examined(subject: Subject, plans: list[Plan], bench: Bench) -> Examination | None:
    """None where the subject does not run."""
    try:
        return examine(subject, plans, bench)
    except RefusedError:
        return None


def _in_training(adapter: Adapter, ask: Question) -> Audit:
    """The gravest answer in training mode, over some throws of the dice, each the same for a probe and its base."""
    answers: list[Audit] = []
    for seed in _throws(adapter, ask):
        answers.append(_thrown(adapter, replace(ask, seed=seed)))
        if answers[-1].verdict == "leaks":
            break
    return max(answers, key=gravity)


def _throws(adapter: Adapter, ask: Question) -> Iterator[int]:
    """The seeds to ask in full: the first few, and of others as many at which a glance sees a movement before a cut."""
    more = ask.seed + THROWS
    yield from range(ask.seed, more)
    subject, few = replace(_subject(adapter, ask.seed)[0], training=True), ask.redraws(1, ask.seed)
    rows = max(1, min(ROWS, ELEMENTS // (ask.length * ask.vocab_size)))
    try:
        fair = same_dice(subject, few) if throws_dice(subject, few.bases[0]) else few.take([])
        moved = (s for s in range(more, more + MORE_THROWS * bool(len(fair)))
                 if probe(replace(subject, seed=s), fair, Bench(rows)).rel.max() > LEAK)  # fmt: skip
        yield from islice(moved, THROWS)
    except RefusedError:  # so many texts at once are too many for it
        return


def _thrown(adapter: Adapter, ask: Question) -> Audit:
    """The answer in training mode with the dice as they fall for one seed."""
    subject = replace(_subject(adapter, ask.seed)[0], training=True)
    few = ask.turns(ask.seed)
    edits = ask.edits(few.bases[0])
    try:
        held = control(subject, few.bases, edits)
    except ValueError as e:  # no answer, or no number
        return brief(subject, ask.length, "inconclusive", str(e), "train")
    if not held.repeatable:
        why = "the same input gives different outputs, random seeds fixed"
        return brief(subject, ask.length, "inconclusive", why, "train")
    found, given = examine(held.subject, [few], held.bench), _given(held.subject, adapter)
    if found.verdict != "leaks" and (len(held.sizes) > 1 or held.beside or held.warm or given):
        found = _elsewhere(held, given, [few], held.bench) or found
    if found.verdict == "leaks" and held.dice:
        found = _fair(found, [few, edits], held.bench)
    if found.verdict != "leaks":
        return brief(subject, ask.length, found.verdict, found.why, "train")
    return replace(conclude(found, None, edits, few, held, ask.every), way="train")


def _across_rows(adapter: Adapter, ask: Question) -> Audit:
    """Whether the first row of a batch moves when the others change, in eval mode."""
    subject, _ = _subject(adapter, ask.seed)
    few = ask.redraws(1, ask.seed)
    held = control(subject, few.bases, ask.edits(few.bases[0]))
    if not held.repeatable:
        why = "the same input gives different outputs, random seeds fixed"
        return brief(subject, ask.length, "inconclusive", why, "batch")
    batches = [_batch(ask, seed) for seed in range(ask.seed, ask.seed + BATCHES)]
    try:
        found = beside(replace(held.subject, copies=1), batches)
    except RefusedError:
        return brief(subject, ask.length, "causal", "the model reads one text at a time", "batch")
    return conclude_rows(found, ask.length, ask.every)


def _batch(ask: Question, seed: int) -> Pair:
    """A batch of texts, and the same with all texts but the first replaced; not as many as a text has tokens."""
    few = ask.redraws(1, seed)
    texts = few.bases[: len(few.bases) - (ask.length == len(few.bases))]
    others = few.ids[torch.arange(len(texts)) % len(few)].flip(1)
    return Pair(texts, torch.cat([texts[:1], others[1:]]), 1, "other rows")


def unasked(adapter: Adapter, ask: Question) -> list[str]:
    """A word on training mode, where it was not asked for and computes something else."""
    subject, texts = _subject(adapter, ask.seed)[0], ask.redraws(1, ask.seed).bases
    hint = 'judged in eval mode alone; axes=("train",) judges training mode too'
    still, read = _answered(subject, texts)
    try:
        moving = replace(subject, training=True)(texts[:read])
    except RefusedError:
        return [f"in training mode the model fails: {hint}"]
    differs = f"in training mode outputs differ (dropout, BatchNorm, or code of its own): {hint}"
    return [] if alike(still, moving, SAME) else [differs]


def _answered(subject: Subject, texts: Tensor) -> tuple[Tensor, int]:
    """The answer to some texts, or to the first alone -> logits, how many."""
    try:
        return subject(texts), len(texts)
    except RefusedError:
        return subject(texts[:1]), 1


AXES: dict[str, Callable[[Adapter, Question], Audit]] = {"train": _in_training, "batch": _across_rows}
