"""One round of probes on one set of weights, and what it says: the future, round-off, or neither for certain."""
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fourierqk.probes import Movement, Plan, Subject, casts_down, measure

__all__ = ["Finding", "ROUND_OFF", "examine", "rerandomised"]

# Movement before the cut, relative to the movement after it. Measured on modules of both kinds: round-off stays below
# 1e-5 in float32; the weakest leak we could build, a finite mask of -10, moves by more than 1e-4.
ROUND_OFF, LEAK = 1e-5, 1e-4
LEAK_64 = 1e-8  # in float64, where everything is computed in it, round-off never comes near this
SHRINK = 2.0**-29  # eps of float64 over eps of float32: round-off shrinks by about so much, a leak not at all
LIKELY, UNLIKELY = 30, 1000  # times what is left after shrinking: still round-off, no longer round-off
BLOWN_UP = 1e-3  # round-off of float32 that vanishes in float64, yet larger than this, does not pass in silence


@dataclass(frozen=True)
class Finding:
    """What the probes show about one set of weights."""

    verdict: str  # "causal", "leaks", "inconclusive"
    why: str
    rel: float  # the worst movement before a cut, relative to the movement after it
    rounds: tuple[tuple[Plan, Movement], ...] = field(repr=False)
    subject: Subject = field(repr=False)  # in the precision that decided
    fine: bool = False  # whether that was float64, computed in float64 throughout

    @property
    def sensitive(self) -> bool:
        """Whether any edit moved anything, anywhere: if not, the probes were vacuous."""
        return any((m.size > 0).any() for _, m in self.rounds)

    @property
    def tolerance(self) -> float:
        """Relative movement above which a single position counts as moved."""
        return UNLIKELY * SHRINK * ROUND_OFF if self.fine else ROUND_OFF

    @property
    def worst(self) -> tuple[Plan, int]:
        """The probe that moved most before its cut, and the plan it belongs to."""
        plan, movement = max(self.rounds, key=lambda r: r[1].rel.max())
        return plan, int(movement.rel.argmax())


def examine(subject: Subject, rounds: list[tuple[Plan, Movement]], rows: int) -> Finding:
    """Judge what moved; where anything moved before a cut, probe the worst pairs again in float64."""
    plan, movement = max(rounds, key=lambda r: r[1].rel.max())
    rel = movement.rel.max().item()
    if rel == 0:
        return Finding("causal", "nothing moved before any cut", rel, tuple(rounds), subject)
    rel64, pure, fine = _in_float64(subject, plan.take(movement.rel.argsort(descending=True)[:30].tolist()), rows)
    return Finding(*decide(rel, rel64, pure), rel, tuple(rounds), fine if pure else subject, pure)


def _in_float64(subject: Subject, plan: Plan, rows: int) -> tuple[float | None, bool, Subject]:
    """Probe a float64 copy -> (rel, whether all of it ran in float64, the copy); None, False where it cannot be."""
    fine = subject.copied(torch.float64)
    if fine is not None:
        try:
            return measure(fine, plan, rows).rel.max().item(), not casts_down(fine, plan.bases[:1]), fine
        except ValueError:  # it insists on float32 somewhere
            pass
    return None, False, subject


def decide(rel: float, rel64: float | None, pure: bool) -> tuple[str, str]:
    """Round-off or the future? -> (verdict, why)."""
    finer = "" if rel64 is None else f" ({rel64:.1e} in float64)"
    sizes = f"before a cut, {rel:.1e} of what moved after it{finer}"
    excess = (rel64 or 0) / (SHRINK * min(max(rel, 1e-6), ROUND_OFF))  # over the round-off to expect in float64
    if rel64 is not None and (pure or excess <= LIKELY):
        if pure and (rel64 >= LEAK_64 or excess >= UNLIKELY):
            return "leaks", f"logits moved {sizes}: float64 does not make it go away, as it does with round-off"
        if excess <= LIKELY and rel < BLOWN_UP:
            return "causal", f"logits moved {sizes}: round-off, it shrinks with the precision"
        return "inconclusive", f"logits moved {sizes}: neither like round-off nor like a leak"
    low = rel if rel64 is None else min(rel, rel64)
    limits = f"the limits are {ROUND_OFF:.0e} and {LEAK:.0e}"
    if low >= LEAK:
        return "leaks", f"logits moved {sizes}: too far for round-off ({limits})"
    if rel <= ROUND_OFF:
        return "causal", f"logits moved {sizes}: round-off of float32 ({limits})"
    return "inconclusive", f"logits moved {sizes}: more than round-off, less than any leak we know ({limits})"


def rerandomised(subject: Subject) -> Subject | None:
    """A copy with weights drawn anew: what is switched off now (zero-initialised, saturated) may leak once trained.

    Buffers and frozen parameters stay, since masks live there. None: there is nothing to draw.
    """
    weights = subject.model.parameters() if isinstance(subject.model, nn.Module) else ()
    if not any(p.requires_grad for p in weights):
        return None
    fresh = subject.copied()
    if fresh is None:
        return None
    rng = torch.Generator().manual_seed(subject.seed)
    with torch.no_grad():
        for p in fresh.model.parameters():
            if p.requires_grad and p.is_floating_point():
                _redraw(p, rng)
    return fresh


def _redraw(p: Tensor, rng: torch.Generator) -> None:
    """New values of an ordinary size; gains keep their 1, infinities (a mask kept as a parameter) stay."""
    noise = torch.randn(p.shape, generator=rng).to(p)
    new = noise * (p[0].numel() ** -0.5 if p.dim() > 1 else 0.5)
    if p.dim() < 2 and 0.5 < p.mean() < 2:
        new += 1
    p.copy_(torch.where(p.isfinite(), new, p))
