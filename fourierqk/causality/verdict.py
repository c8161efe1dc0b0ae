"""The answer of the causality audit: what it found, what that means, and what it does not mean."""
import math
from dataclasses import dataclass, field, replace
from html import escape
from textwrap import fill
from typing import Any

import torch
from torch import Tensor

from fourierqk.causality.bench import Control
from fourierqk.causality.examine import Examination
from fourierqk.causality.locate import Location
from fourierqk.causality.movement import Bench, Movement, probe
from fourierqk.causality.probes import Plan
from fourierqk.causality.subject import Subject

__all__ = ["Audit", "brief", "conclude", "conclude_rows", "gravity", "merge"]

SEVERITY = ("causal", "inconclusive", "leaks")
WAYS = {"eval": "in eval mode", "train": "in training mode", "batch": "across the rows of a batch"}


@dataclass(frozen=True)
class Audit:
    """What the audit of a model found.

    verdict: "leaks" (outputs moved before an edit, and move alike however the arithmetic rounds), "causal" (no such
    dependence seen in `probes` probes: not a proof, a rare trigger or another length may hide a leak) or "inconclusive"
    (`evidence` says why).
    """

    verdict: str
    name: str
    length: int
    probes: int
    realised: bool | None  # whether the weights as they are leak; None: undecided
    structural: bool | None  # whether a copy with re-randomised weights leaks; None: undecided, or not to be copied
    rel: float  # the worst movement before a cut, relative to the movement after it
    cut: int | None  # the first token (of rows: the first row) edited in the probe that shows the leak most plainly
    reach: int  # at least this many tokens ahead are heard; 0: none seen
    first_leak: str | None  # the module where the leak enters
    prefix_consistent: bool | None  # whether a shorter text gives the same outputs; None: it is refused
    evidence: tuple[str, ...]
    influence: Tensor = field(repr=False)  # (T, T): how far output t moves when token s is edited; NaN: s not edited
    lengths: dict[int, str] = field(default_factory=dict)  # the verdict at each length that was asked for
    axes: dict[str, str] = field(default_factory=dict)  # and along each other axis
    leaking: tuple[str, ...] = ()  # where a leak enters: every module, where that was asked, else the first
    way: str = "eval"  # which question cut, rel, reach and modules answer: "eval", or the axis "train" or "batch"

    @property
    def lag_profile(self) -> tuple[Tensor, Tensor]:
        """Mean influence by lag, output minus input: below 0 is the future -> (lags, influence), each (2T - 1,)."""
        lags = torch.arange(-self.length + 1, self.length)
        return lags, torch.stack([self.influence.diagonal(-int(n)).nanmean() for n in lags])

    def as_dict(self) -> dict[str, Any]:
        """The answer without its map, in types that JSON knows; `schema` counts incompatible changes."""
        names = (
            "verdict", "name", "length", "probes", "realised", "structural", "rel", "cut", "reach", "first_leak",
            "prefix_consistent", "evidence", "axes", "way",
        )  # fmt: skip
        plain = {name: getattr(self, name) for name in names}
        rel = self.rel if math.isfinite(self.rel) else None  # JSON has no infinity
        return {"schema": 1, **plain, "rel": rel, "evidence": list(self.evidence), "leaking": list(self.leaking),
                "lengths": {str(n): v for n, v in self.lengths.items()}}  # fmt: skip

    @property
    def meaning(self) -> str:
        """What the verdict means, and what it does not."""
        if self.verdict == "inconclusive":
            return "Neither cleared nor convicted. Do not read this as a pass: the evidence says why."
        if self.verdict == "causal":
            modes = "in eval mode and in training mode" if "train" in self.axes else "in eval mode"
            return (
                f"No dependence on later tokens seen in {self.probes} probes, {modes}. This is not a proof: a rare "
                "trigger, a longer text or a part that is switched off may hide one."
            )
        return {
            "eval": "Outputs depend on tokens that come after them. The loss of this model is no measure of "
            "prediction where later tokens exist: report its honest loss (last position of full windows).",
            "train": "In training mode outputs depend on tokens that come after them; in eval mode this was not "
            "seen. The training loss is no measure of prediction, and the model may come to rely on what it will "
            "not be given later.",
            "batch": "The rows of a batch hear each other: outputs on a text depend on the texts beside it, and not on "
            "its own later tokens, as far as was seen. Was batch_first forgotten, or is something normalised over "
            "the batch?",
        }[self.way]

    def __str__(self) -> str:
        title = f"{self.name}, {self.length} tokens, {self.probes} probes: {self.verdict.upper()}"
        lines = [(self.meaning, "  ", "  "), *((e, "  - ", "    ") for e in self.evidence)]
        return "\n".join([title, *(fill(t, 88, initial_indent=a, subsequent_indent=b) for t, a, b in lines)])

    def _repr_html_(self) -> str:
        colour = {"leaks": "#c53030", "causal": "#2f855a", "inconclusive": "#b7791f"}[self.verdict]
        items = "".join(f"<li>{escape(e)}</li>" for e in self.evidence)
        return (
            f'<div role="group" aria-label="Causality audit" style="border-left:4px solid {colour};padding:.2em .8em">'
            f"<p><strong>{escape(self.name)}</strong>, {self.length} tokens, {self.probes} probes: "
            f'<strong style="background:{colour};color:#fff;padding:.1em .5em">{self.verdict}</strong></p>'
            f"<p>{escape(self.meaning)}</p><ul>{items}</ul></div>"
        )


def conclude(
    realised: Examination, structural: Examination | None, edits: Plan, more: Plan, held: Control, every: bool = False
) -> Audit:
    """Examinations on the weights as they are and on weights drawn anew (where that was tried), as an `Audit`.

    edits: the probes of the map. more: others, which may show an earlier module. every: name all that leak.
    """
    verdict = _verdict(realised, structural, held)
    shown = structural if structural and structural.verdict == "leaks" != realised.verdict else realised
    influence, moved = _influence(shown, edits, held.bench)
    evidence, found, reach = [f"with the weights as they are: {realised.why}"], [], 0
    if not realised.sensitive:
        evidence = ["with the weights as they are, no edit moves anything: these probes are vacuous"]
    if structural and structural.sensitive:
        evidence.append(f"with weights drawn anew: {structural.why}")
    if verdict == "leaks":
        plainest = shown.replays[0].pair
        found, reach = shown.locations(more, every), _reach(shown, moved)
        evidence.append(f"plainest where the tokens from position {plainest.cut} on changed ({plainest.kind})")
        evidence += [*_places(found), f"heard at least {reach} tokens ahead"]
    if not held.repeatable:
        evidence = ["the same input gives different outputs, random seeds fixed: nothing can be compared"]
    if held.blind:
        evidence.append(f"the model returned {held.blind}: nothing can be compared there")
    if verdict == "causal" and held.prefix_consistent is False:
        evidence.append("outputs on a shorter text differ: the model feels the length, which is not the future")
    return Audit(
        verdict=verdict,
        name=_name(realised.subject),
        length=edits.bases.shape[1],
        probes=sum(len(plan) for f in (realised, structural) if f for plan, _ in f.rounds),
        realised=_certain(realised) if held.repeatable else None,
        structural=_certain(realised if realised.verdict == "leaks" else structural) if held.repeatable else None,
        rel=shown.rel,
        cut=shown.replays[0].pair.cut if verdict == "leaks" else None,
        reach=reach,
        first_leak=found[0].path if found else None,
        leaking=_paths(found),
        prefix_consistent=held.prefix_consistent,
        evidence=(*evidence, *held.notes),
        influence=influence,
    )


def brief(subject: Subject, length: int, verdict: str, why: str, way: str) -> Audit:
    """The answer to a further question about a model, where there is no place and no map to show."""
    return Audit(
        verdict=verdict, name=_name(subject), length=length, probes=0, realised=None, structural=None, rel=0.0,
        cut=None, reach=0, first_leak=None, prefix_consistent=None, evidence=(why,),
        influence=torch.full((length, length), math.nan), way=way,
    )  # fmt: skip


def conclude_rows(found: Examination, length: int, every: bool = False) -> Audit:
    """The examination of a batch whose other rows were replaced, as an `Audit`."""
    answer = brief(found.subject, length, found.verdict, found.why, "batch")
    if found.verdict != "leaks":
        return answer
    places, shown = found.locations(None, every), found.replays[0].pair
    return replace(
        answer, realised=True, rel=found.rel, cut=shown.cut, evidence=(found.why, *_places(places)),
        first_leak=places[0].path if places else None, leaking=_paths(places),
    )  # fmt: skip


def _name(subject: Subject) -> str:
    model = subject.adapter.model
    return getattr(model, "__name__", type(model).__name__)


def _places(found: list[Location]) -> list[str]:
    return [f"the leak enters in {place}" for place in found[:1]] + [f"and in {place}" for place in found[1:]]


def _paths(found: list[Location]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place.path for place in found))


def merge(found: dict[int, Audit], others: list[Audit], says: list[str]) -> Audit:
    """The gravest answer of all that was asked, at several lengths and along other axes, with a word on the others."""
    tokens = max(found.values(), key=gravity)
    worst = max((tokens, *others), key=gravity)
    evidence = worst.evidence
    if worst is not tokens:
        evidence += tuple(f"{WAYS[tokens.way]}, {e}" for e in tokens.evidence)
    more = [f"at {n} tokens: {a.verdict}" for n, a in found.items()] if len(found) > 1 else []
    return replace(
        worst,
        probes=sum(a.probes for a in (*found.values(), *others)),
        prefix_consistent=tokens.prefix_consistent,
        evidence=(*evidence, *more, *[_line(a, a is not worst) for a in (tokens, *others) if others], *says),
        influence=tokens.influence if worst.way == "batch" else worst.influence,
        lengths={n: a.verdict for n, a in found.items()},
        axes={a.way: a.verdict for a in others},
    )


def gravity(answer: Audit) -> int:
    """How much an answer weighs among others: a leak most."""
    return SEVERITY.index(answer.verdict)


def _line(a: Audit, fully: bool) -> str:
    """One line on a way of running."""
    short = f"{WAYS[a.way]}: {a.verdict}"
    if a.verdict == "causal" or not fully:
        return short
    if a.verdict == "inconclusive":
        return f"{short} ({a.evidence[0]})"
    where = f"in {a.first_leak}, " if a.first_leak else ""
    return f"{short} ({where}plainest where {'row' if a.way == 'batch' else 'position'} {a.cut} changed, {a.rel:.1e})"


def _influence(found: Examination, edits: Plan, bench: Bench) -> tuple[Tensor, Movement]:
    """How far output t moves when token s is edited -> (T, T), and the movements behind it.

    What round-off alone moves ahead of an edit counts as 0.
    """
    known = {id(plan): m for plan, m in found.rounds}
    moved = known[id(edits)] if id(edits) in known else probe(found.subject, edits, bench)
    length = edits.bases.shape[1]
    ahead = torch.arange(length) < edits.cut[:, None]
    size = moved.size.masked_fill(ahead & (moved.size <= found.tolerance), 0)
    if found.verdict == "causal":
        size = size.masked_fill(ahead, 0)
    count = torch.bincount(edits.cut, minlength=length)
    total = torch.zeros(length, length, dtype=torch.float64).index_add(0, edits.cut, size)
    return (total / count[:, None]).T, moved  # where no token was edited, 0 / 0: unknown


def _reach(found: Examination, edits: Movement) -> int:
    """How many tokens ahead are heard, at least: from a cut back to the first position that moved."""
    reach = 0
    for m in (*(m for _, m in found.rounds), edits):
        heard = (m.size > found.tolerance) & (torch.arange(m.size.shape[1]) < m.cut[:, None])
        reach = max(reach, int(((m.cut - heard.double().argmax(1)) * heard.any(1)).max()))
    return reach


def _verdict(realised: Examination, structural: Examination | None, held: Control) -> str:
    if not held.repeatable:
        return "inconclusive"
    findings = [f for f in (realised, structural) if f and f.sensitive]
    if any(f.verdict == "leaks" for f in (realised, *findings)):
        return "leaks"
    sure = all(f.verdict == "causal" for f in findings)
    return "causal" if findings and sure and not held.blind else "inconclusive"


def _certain(found: Examination | None) -> bool | None:
    """Whether it leaks; None where that is undecided."""
    if found is None or found.verdict == "inconclusive" or not found.sensitive:
        return None
    return found.verdict == "leaks"
