"""The causality audit: does a model's output at position t depend on tokens after t?

The audit edits the future at fixed length and watches the past. It decides by what it sees and nothing else: no
gradients (an argmax has none), no NaNs (a masked softmax spreads them), no shorter texts (many honest models feel the
length).
"""
from dataclasses import dataclass, field
from html import escape

import torch
from torch import Tensor, nn

from fourierqk.examine import ROUND_OFF, Finding, examine, rerandomised
from fourierqk.locate import Place, locate
from fourierqk.probes import Movement, Plan, Subject, difference, kept, measure, plan_edits, plan_redraws
from fourierqk.subject import Model, block_size

__all__ = ["Audit", "audit"]

BLURRED = 1e-3  # a leak smaller than this is mapped in the precision that decided
ELEMENTS = 2**24  # logits of a batch of probes, at most: 64 MB


@dataclass(frozen=True)
class Audit:
    """What the audit of a model found.

    verdict: "leaks" (outputs moved before an edit), "causal" (no dependence on the future seen in `probes` probes: not
    a proof, a rare trigger or another length may hide a leak) or "inconclusive" (`evidence` says why).
    """

    verdict: str
    name: str
    length: int
    probes: int
    realised: bool | None  # whether the weights as they are leak; None: undecided
    structural: bool | None  # whether a copy with re-randomised weights leaks; None: undecided, or not to be copied
    rel: float  # the worst movement before a cut, relative to the movement after it
    reach: int  # at least this many tokens ahead are heard; 0: none seen
    first_leak: str | None  # the module where the leak enters
    evidence: tuple[str, ...]
    influence: Tensor = field(repr=False)  # (T, T): how far output t moves when token s is edited; NaN: s not edited

    @property
    def lag_profile(self) -> tuple[Tensor, Tensor]:
        """Mean influence by lag, output minus input: below 0 is the future -> (lags, influence), each (2T - 1,)."""
        lags = torch.arange(-self.length + 1, self.length)
        return lags, torch.stack([self.influence.diagonal(-int(n)).nanmean() for n in lags])

    @property
    def meaning(self) -> str:
        """What the verdict means, and what it does not."""
        return {
            "leaks": "Outputs depend on tokens that come after them. The loss of this model is no measure of "
            "prediction where later tokens exist: report its honest loss (last position of full windows).",
            "causal": f"No dependence on later tokens seen in {self.probes} probes. This is not a proof: a rare "
            "trigger, a longer text or a part that is switched off may hide one.",
            "inconclusive": "Neither cleared nor convicted. Do not read this as a pass: the evidence says why.",
        }[self.verdict]

    def __str__(self) -> str:
        title = f"{self.name}, {self.length} tokens, {self.probes} probes: {self.verdict.upper()}"
        return "\n".join([title, f"  {self.meaning}", *(f"  - {e}" for e in self.evidence)])

    def _repr_html_(self) -> str:
        colour = {"leaks": "#c53030", "causal": "#2f855a", "inconclusive": "#b7791f"}[self.verdict]
        items = "".join(f"<li>{escape(e)}</li>" for e in self.evidence)
        return (
            f'<div role="group" aria-label="Causality audit" style="border-left:4px solid {colour};padding:.2em .8em">'
            f"<p><strong>{escape(self.name)}</strong>, {self.length} tokens, {self.probes} probes: "
            f'<strong style="background:{colour};color:#fff;padding:.1em .5em">{self.verdict}</strong></p>'
            f"<p>{escape(self.meaning)}</p><ul>{items}</ul></div>"
        )


def audit(
    model: Model,
    vocab_size: int,
    length: int,
    *,
    draws: int = 20,
    seed: int = 0,
    text: Tensor | None = None,
    positions: int = 512,
) -> Audit:
    """Look for a dependence of outputs on later tokens, at one length, and say where it enters and how far it reaches.

    model: an nn.Module or any callable, ids (B, T) -> logits (B, T, V), or a tuple that starts with them, or an object
    with .logits. It is left as it was: weights, buffers, mode, random generators.
    draws: re-drawn futures at each cut (about 25 cuts). text: ids (N,) of real text, when triggers may be rare in
    random text. positions: the map edits each of at most so many positions.

    Verdicts are explained in `Audit`. Unseen remain: a trigger of one token in many thousands, a branch that is
    switched off inside an opaque function (inside an nn.Module, a re-randomised copy shows it), a leak that needs a
    longer text. ValueError: the model fails, returns something else than logits, or nothing but NaN.
    """
    _check(model, vocab_size, length, draws, text)
    with kept(model):
        subject, notes = _subject(model, seed)
        plan = plan_redraws(vocab_size, length, draws, seed, text)
        repeats = max(1, min(4, 128 // length))  # a short text leaves time to edit each token more than once
        edits = plan_edits(plan.bases[0], vocab_size, _positions(length, positions), repeats, seed)
        control = _control(subject, plan)
        rounds = [(edits, measure(subject, edits, control.rows))]
        realised, structural = examine(subject, rounds, control.rows), None
        if realised.verdict != "leaks":  # single edits convict most leaks; to acquit takes more
            rounds.append((plan, measure(subject, plan, control.rows)))
            realised = examine(subject, rounds, control.rows)
        if realised.verdict != "leaks":
            few = plan_redraws(vocab_size, length, min(draws, 4), seed + 1, text)
            structural = _structural(subject, few, control.rows)
        return _report(realised, structural, edits, control, notes)


def _check(model: Model, vocab_size: int, length: int, draws: int, text: Tensor | None) -> None:
    if not callable(model):
        raise ValueError(f"a model is a callable ids (B, T) -> logits (B, T, V), not {type(model).__name__}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size = {vocab_size}: with fewer than 2 tokens nothing can be edited")
    longest = block_size(model)
    if length < 2 or length > (longest or length):
        limit = f" and at most block_size = {longest}" * bool(longest)
        raise ValueError(f"length = {length} must be at least 2 (a past and a future)" + limit)
    if draws < 1:
        raise ValueError(f"draws = {draws} must be at least 1")
    ok = text is None or text.dim() == 1 and len(text) >= length and 0 <= text.min() <= text.max() < vocab_size
    if not ok:
        raise ValueError(f"text must be ids (N,) with N >= {length} and values in 0 .. {vocab_size - 1}")


def _subject(model: Model, seed: int) -> tuple[Subject, list[str]]:
    """A copy to probe, in float32 at least, or the model itself where it cannot be copied."""
    notes = []
    own = Subject(model, seed).copied()
    if own is None:
        kind = "a model that cannot be copied" if isinstance(model, nn.Module) else "a function, not a module"
        note = f"{kind}: judged in its own precision and with these weights alone; what is switched off is not seen"
        return Subject(model, seed), [note]
    if any(t.dtype in (torch.float16, torch.bfloat16) for t in (*own.model.parameters(), *own.model.buffers())):
        own, notes = own.copied(torch.float32), ["half-precision weights: a float32 copy was judged"]
    return own, notes


@dataclass(frozen=True)
class _Control:
    """What runs without any edit say: rows a batch, whether a pass is out of the question, and what to tell."""

    rows: int
    repeatable: bool
    notes: tuple[str, ...]
    blind: str = ""  # where nothing can be compared


def _control(subject: Subject, plan: Plan) -> _Control:
    """The same text twice, with other dice, and beside other rows."""
    length, notes = plan.bases.shape[1], []
    one = subject(plan.bases[:1])[0]
    bad = one.isnan().any(-1)
    if bad.all():
        raise ValueError("the model returned NaN at every position: nothing can be compared")
    blind = f"NaN at {int(bad.sum())} of {length} positions, the first at {int(bad.nonzero()[0])}" if bad.any() else ""
    rows = max(1, min(30, ELEMENTS // one.numel()))
    base = plan.bases[:rows]
    slack = ROUND_OFF * one[one.isfinite()].abs().max().item()
    first = subject(base)
    repeatable = bool(difference(first, subject(base)).max() <= slack)
    if not repeatable:
        subject.forgetful = True  # perhaps it remembers the last call: give every call a copy that has seen nothing
        first = subject(base)
        repeatable = bool(difference(first, subject(base)).max() <= slack)
        notes.append("the model keeps state between calls: every probe ran on a fresh copy")
    if difference(first, Subject(subject.model, subject.seed + 1, subject.forgetful)(base)).max() > slack:
        notes.append("the model throws dice in eval mode (live dropout?): re-seeded before every call")
    mixed = torch.cat([base[:1], plan.ids[: len(base) - 1]])
    if difference(first[:1], subject(mixed)[:1]).max() > slack:
        rows, notes = 1, [*notes, "outputs depend on the other rows of the batch: probed one row at a time"]
    return _Control(rows, repeatable, tuple(notes), blind)


def _structural(subject: Subject, plan: Plan, rows: int) -> Finding | None:
    """Probe a copy with re-randomised weights; None where there is none, or it does not run."""
    fresh = rerandomised(subject)
    try:
        return fresh and examine(fresh, [(plan, measure(fresh, plan, rows))], rows)
    except ValueError:
        return None


def _positions(length: int, most: int) -> list[int]:
    """The positions that the map edits: all, or evenly spaced ones with both ends."""
    if length <= most:
        return list(range(length))
    return sorted({round(i) for i in torch.linspace(0, length - 1, most).tolist()} | set(range(8)))


def _influence(finding: Finding, edits: Plan, rows: int) -> tuple[Tensor, Movement]:
    """How far output t moves when token s is edited -> (T, T), and the movements behind it."""
    known = {id(plan): m for plan, m in finding.rounds}
    if id(edits) in known and not (finding.verdict == "leaks" and finding.rel < BLURRED):
        moved = known[id(edits)]
    else:  # with the weights that leak and in the precision that decided: round-off must not blur the map
        moved = measure(finding.subject, edits, rows)
    length = edits.bases.shape[1]
    count = torch.bincount(edits.cut, minlength=length)
    total = torch.zeros(length, length, dtype=torch.float64).index_add(0, edits.cut, moved.size)
    return (total / count[:, None]).T, moved  # where no token was edited, 0 / 0: unknown


def _reach(finding: Finding, edits: Movement) -> int:
    """How many tokens ahead are heard, at least: from a cut back to the first position that moved."""
    reach = 0
    for m in (*(m for _, m in finding.rounds), edits):
        remeasured = m is edits and finding.rel < BLURRED  # see _influence
        heard = m.size > (finding.tolerance if remeasured else ROUND_OFF) * m.after[:, None]
        heard &= torch.arange(m.size.shape[1]) < m.cut[:, None]
        reach = max(reach, int(((m.cut - heard.double().argmax(1)) * heard.any(1)).max()))
    return reach


def _locate(finding: Finding) -> Place | None:
    plan, p = finding.worst
    x, y, cut = plan.bases[plan.base[p]], plan.ids[p], int(plan.cut[p])
    return locate(finding.subject, x, y, cut, finding.tolerance)


def _verdict(realised: Finding, structural: Finding | None, control: _Control) -> str:
    if not control.repeatable:
        return "inconclusive"
    findings = [f for f in (realised, structural) if f and f.sensitive]
    if any(f.verdict == "leaks" for f in (realised, *findings)):
        return "leaks"
    sure = all(f.verdict == "causal" for f in findings)
    return "causal" if findings and sure and not control.blind else "inconclusive"


def _report(realised: Finding, structural: Finding | None, edits: Plan, control: _Control, notes: list[str]) -> Audit:
    verdict = _verdict(realised, structural, control)
    shown = structural if structural and structural.verdict == "leaks" != realised.verdict else realised
    influence, moved = _influence(shown, edits, control.rows)
    evidence, place, reach = [f"with the weights as they are: {realised.why}"], None, 0
    if not realised.sensitive:
        evidence = ["with the weights as they are, no edit moves anything: these probes are vacuous"]
    if structural and structural.sensitive:
        evidence.append(f"with weights drawn anew: {structural.why}")
    if verdict == "leaks":
        place, reach = _locate(shown), _reach(shown, moved)
        plan, p = shown.worst
        evidence.append(f"plainest where the tokens from position {int(plan.cut[p])} on changed ({plan.kind[p]})")
        evidence += [f"the leak enters in {place}"] * bool(place) + [f"heard at least {reach} tokens ahead"]
    if not control.repeatable:
        evidence.append("the same input gives different outputs, random seeds fixed: nothing can be compared")
    if control.blind:
        evidence.append(f"the model returned {control.blind}: nothing can be compared there")
    return Audit(
        verdict=verdict,
        name=getattr(realised.subject.model, "__name__", type(realised.subject.model).__name__),
        length=edits.bases.shape[1],
        probes=sum(len(plan) for f in (realised, structural) if f for plan, _ in f.rounds),
        realised=_certain(realised),
        structural=True if realised.verdict == "leaks" else _certain(structural),
        rel=shown.rel,
        reach=reach,
        first_leak=place.path if place else None,
        evidence=(*evidence, *control.notes, *notes),
        influence=influence,
    )


def _certain(finding: Finding | None) -> bool | None:
    """Whether it leaks; None where that is undecided."""
    if finding is None or finding.verdict == "inconclusive" or not finding.sensitive:
        return None
    return finding.verdict == "leaks"
