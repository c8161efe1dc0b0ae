"""The answer of the causality audit: what it found, what that means, and what it does not mean."""
import math
from dataclasses import dataclass, field
from html import escape
from textwrap import fill
from typing import Any

import torch
from torch import Tensor

from fourierqk.causality.bench import Control
from fourierqk.causality.examine import Examination
from fourierqk.causality.movement import Bench, Movement, probe
from fourierqk.causality.probes import Plan

__all__ = ["Audit", "conclude"]


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
    cut: int | None  # the first token edited in the probe that shows the leak most plainly
    reach: int  # at least this many tokens ahead are heard; 0: none seen
    first_leak: str | None  # the module where the leak enters
    prefix_consistent: bool | None  # whether a shorter text gives the same outputs; None: it is refused
    evidence: tuple[str, ...]
    influence: Tensor = field(repr=False)  # (T, T): how far output t moves when token s is edited; NaN: s not edited
    lengths: dict[int, str] = field(default_factory=dict)  # the verdict at each length that was asked for
    axes: dict[str, str] = field(default_factory=dict)  # and along each other axis

    @property
    def lag_profile(self) -> tuple[Tensor, Tensor]:
        """Mean influence by lag, output minus input: below 0 is the future -> (lags, influence), each (2T - 1,)."""
        lags = torch.arange(-self.length + 1, self.length)
        return lags, torch.stack([self.influence.diagonal(-int(n)).nanmean() for n in lags])

    def as_dict(self) -> dict[str, Any]:
        """The answer without its map, in types that JSON knows; `schema` counts incompatible changes."""
        names = (
            "verdict", "name", "length", "probes", "realised", "structural", "rel", "cut", "reach", "first_leak",
            "prefix_consistent", "evidence", "axes",
        )  # fmt: skip
        plain = {name: getattr(self, name) for name in names}
        rel = self.rel if math.isfinite(self.rel) else None  # JSON has no infinity
        return {"schema": 1, **plain, "rel": rel, "evidence": list(self.evidence),
                "lengths": {str(n): v for n, v in self.lengths.items()}}  # fmt: skip

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


def conclude(realised: Examination, structural: Examination | None, edits: Plan, held: Control) -> Audit:
    """Examinations on the weights as they are and on weights drawn anew (where that was tried), as an `Audit`."""
    verdict = _verdict(realised, structural, held)
    shown = structural if structural and structural.verdict == "leaks" != realised.verdict else realised
    influence, moved = _influence(shown, edits, held.bench)
    plainest = shown.replays[0].pair
    evidence, location, reach = [f"with the weights as they are: {realised.why}"], None, 0
    if not realised.sensitive:
        evidence = ["with the weights as they are, no edit moves anything: these probes are vacuous"]
    if structural and structural.sensitive:
        evidence.append(f"with weights drawn anew: {structural.why}")
    if verdict == "leaks":
        location, reach = shown.location(), _reach(shown, moved)
        evidence.append(f"plainest where the tokens from position {plainest.cut} on changed ({plainest.kind})")
        evidence += [f"the leak enters in {location}"] * bool(location) + [f"heard at least {reach} tokens ahead"]
    if not held.repeatable:
        evidence = ["the same input gives different outputs, random seeds fixed: nothing can be compared"]
    if held.blind:
        evidence.append(f"the model returned {held.blind}: nothing can be compared there")
    if verdict == "causal" and held.prefix_consistent is False:
        evidence.append("outputs on a shorter text differ: the model feels the length, which is not the future")
    return Audit(
        verdict=verdict,
        name=getattr(realised.subject.adapter.model, "__name__", type(realised.subject.adapter.model).__name__),
        length=edits.bases.shape[1],
        probes=sum(len(plan) for f in (realised, structural) if f for plan, _ in f.rounds),
        realised=_certain(realised) if held.repeatable else None,
        structural=_certain(realised if realised.verdict == "leaks" else structural) if held.repeatable else None,
        rel=shown.rel,
        cut=plainest.cut if verdict == "leaks" else None,
        reach=reach,
        first_leak=location.path if location else None,
        prefix_consistent=held.prefix_consistent,
        evidence=(*evidence, *held.notes),
        influence=influence,
    )


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
