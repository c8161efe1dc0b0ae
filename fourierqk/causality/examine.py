"""One set of weights under probes, and what they show: the future, round-off, or too little to tell."""
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from fourierqk.adapter import RefusedError
from fourierqk.causality import limits
from fourierqk.causality.locate import Location, locate
from fourierqk.causality.movement import Bench, Movement, alike, change, probe
from fourierqk.causality.probes import Pair, Plan
from fourierqk.causality.replay import Replay
from fourierqk.causality.steadiness import Steadiness, steadiness
from fourierqk.causality.subject import Roundings, Subject

__all__ = ["Examination", "beside", "examine", "rerandomised"]

Probed = tuple[Plan, Movement]
Repeat = Callable[[Subject, list[Probed], Bench, float], tuple[Steadiness, tuple[Replay, ...]]]


@dataclass(frozen=True)
class Examination:
    """What the probes show about one set of weights."""

    verdict: str  # "causal", "leaks", "inconclusive"
    why: str
    rel: float  # the worst movement before a cut, relative to the movement after it
    noise: float  # what round-off alone moves, in logits
    rounds: tuple[Probed, ...] = field(repr=False)
    subject: Subject = field(repr=False)  # in the precision that decided
    replays: tuple[Replay, ...] = field(repr=False)  # of the probes that show it, the best first

    @property
    def sensitive(self) -> bool:
        """Whether any edit moved anything, anywhere: if not, the probes were vacuous."""
        return any((m.size > 0).any() for _, m in self.rounds)

    @property
    def tolerance(self) -> float:
        """Movement of a position, in logits, up to which it is put down to round-off.

        The plainest movement of a leak is none: a choice between equals, which a rounding may turn, is not noise.
        """
        plainest = max(m.before.max().item() for _, m in self.rounds)
        tolerance = limits.TOLERANCE * self.noise
        return min(tolerance, plainest / 2) if self.verdict == "leaks" else tolerance

    def location(self) -> Location | None:
        """Where the dependence enters, as far as modules show it."""
        return next(filter(None, map(locate, self.replays)), None)


def examine(subject: Subject, plans: list[Plan], bench: Bench) -> Examination:
    """Run probes until one leaks, and judge what moved before the cuts; without a leak, judge it again in float64.

    In float32 a large number swallows a small one, and round-off may be loud: float64 hears more.
    """
    rounds: list[Probed] = []
    worst: Probed | None = None
    coarse: Any = None
    for plan in plans:
        rounds.append((plan, probe(subject, plan, bench)))
        last, worst = worst, _worst(rounds)
        if worst is last:
            coarse = replace(coarse, rounds=tuple(rounds))
            continue
        coarse = _judge(subject, rounds, bench, _replayed)
        if coarse.verdict == "leaks":
            return coarse
    fine = _in_float64(coarse, bench)
    if fine is None and coarse.rel:
        coarse = _judge(subject, rounds, bench, _repeated)
    found = _settled(coarse, fine) if fine else coarse
    inner = locate(found.replays[0]) if found.verdict == "causal" and found.rel else None
    if inner and inner.steady:  # an inner module reads the future, and what comes of it may drown
        why = f"{found.why}; but {inner} reads the future, and round-off could hide what comes of it"
        return replace(found, verdict="inconclusive", why=why)
    return found


def _worst(rounds: list[Probed]) -> Probed:
    return max(rounds, key=lambda r: r[1].rel.max())


def _settled(coarse: Examination, fine: Examination) -> Examination:
    """One examination of two: float64 decides, wherever there was anything to decide."""
    if fine.verdict == "leaks" and fine.rel < limits.FLOAT64_ONLY:
        return replace(fine, verdict="inconclusive", why=f"{fine.why}: in float64 alone, too little for float32")
    if fine.verdict == "leaks" or coarse.rel:
        return replace(fine, why=f"{fine.why} (in float64; {coarse.rel:.1e} in the model's own precision)")
    return coarse


def beside(subject: Subject, x: Tensor, others: Tensor) -> Steadiness:
    """Whether the first of the texts x (B, T) is answered otherwise beside `others` (B, T) than beside its own."""
    y = torch.cat([x[:1], others[1:]])
    after = change(subject(x), subject(y))[1:].abs().nan_to_num(posinf=0).max().item()
    rounded = Roundings(subject)

    def move(key: int) -> tuple[Tensor, Tensor]:
        s = rounded(key)
        d, least = _compared(s(x)[:1], s(y)[:1], 1.0)
        return d.flatten(), least.flatten()

    return steadiness(move, after)


def _judge(subject: Subject, rounds: list[Probed], bench: Bench, repeat: Repeat) -> Examination:
    """Whether movements repeat in other roundings."""
    plan, movement = _worst(rounds)
    p = int(movement.rel.argmax())
    rel, steady = movement.rel[p].item(), Steadiness(False)
    replays: tuple[Replay, ...] = (Replay(subject, plan.pair(p)),)
    if rel:
        try:
            steady, replays = repeat(subject, rounds, bench, movement.after[p].item())
        except RefusedError:  # its operations do not let themselves be rounded otherwise
            steady = Steadiness(True if rel > limits.LEAK else False if rel < limits.ROUND_OFF else None)
    return Examination(*_words(steady, rel), rel, steady.noise, tuple(rounds), subject, replays)


def _words(steady: Steadiness, rel: float) -> tuple[str, str]:
    """-> (verdict, why)."""
    size = f"logits moved before a cut, by up to {rel:.1e} of what moved after it"
    if rel == 0:
        return "causal", "nothing moved before any cut"
    if steady.repeats:
        return "leaks", f"{size}, and move alike however the arithmetic rounds"
    if steady.repeats is None:
        return "inconclusive", f"{size}; the arithmetic could not be rounded otherwise, and this size proves nothing"
    if rel > limits.LOUD:
        return "inconclusive", f"{size}: round-off, but so large that it could hide a leak"
    return "causal", f"{size}: round-off, it scatters with the arithmetic"


def _in_float64(coarse: Examination, bench: Bench) -> Examination | None:
    """The same probes in float64, some of them where nothing moved; None where there is no float64 to be had.

    Nor where the copy computes something else: attention of torch misreads a float32 mask beside float64 queries.
    """
    subject = coarse.subject.copied(torch.float64)
    if subject is None or coarse.subject.eps == torch.finfo(torch.float64).eps:
        return None
    plans, one = [plan for plan, _ in coarse.rounds], coarse.rounds[0][0].bases[:1]
    if not coarse.rel:
        plans = [plans[0].some(limits.FLOAT64)]
    try:
        if not alike(coarse.subject(one).cpu(), subject(one).cpu(), limits.OTHERWISE):
            return None
        return _judge(subject, [(plan, probe(subject, plan, bench)) for plan in plans], bench, _repeated)
    except RefusedError:  # it insists on float32 somewhere
        return None


def _replayed(
    subject: Subject, rounds: list[Probed], bench: Bench, after: float
) -> tuple[Steadiness, tuple[Replay, ...]]:
    """Whether the worst probe's movements repeat in other roundings, and all that it takes to say where they begin."""
    replay = Replay(subject, _suspects(rounds, 1)[0])

    def move(key: int) -> tuple[Tensor, Tensor]:
        d, least = _compared(*replay.outputs(key), bench.unit)
        return d[:, : replay.pair.cut].flatten(), least[:, : replay.pair.cut].flatten()

    return steadiness(move, after), (replay,)


def _repeated(
    subject: Subject, rounds: list[Probed], bench: Bench, after: float
) -> tuple[Steadiness, tuple[Replay, ...]]:
    """The same for several of the worst probes, the steadiest first.

    The largest movement need not be the steadiest: a choice that hangs by a hair changes with the rounding.
    """
    one, rounded = subject(rounds[0][0].bases[:1]).shape, Roundings(subject)
    most = limits.ALL if bench.rows > 1 else limits.ALL_ALONE
    pairs = _suspects(rounds, max(1, min(most, limits.ELEMENTS // (4 * one.numel()))))
    texts = [torch.stack(part) for part in zip(*((p.base, p.text) for p in pairs), strict=True)]
    cuts = torch.tensor([p.cut for p in pairs])
    steady = steadiness(lambda key: _moves(rounded(key), texts[0], texts[1], cuts, bench), after)
    ends = (cuts * one[-1]).cumsum(0)
    which = 0 if steady.which is None else int(torch.searchsorted(ends, steady.which, right=True))
    return steady, tuple(Replay(subject, p) for p in (pairs[which], *pairs[:which], *pairs[which + 1 :]))


def _suspects(rounds: list[Probed], count: int) -> list[Pair]:
    """The probes that moved most before their cuts, half of them overall and half cut by cut."""
    moved = [(rel, int(plan.cut[p]), plan, p) for plan, m in rounds for p, rel in enumerate(m.rel.tolist()) if rel]
    moved.sort(key=lambda r: -r[0])
    first = {r[1]: r for r in reversed(moved)}  # the worst of each cut
    chosen = moved[: (count + 1) // 2]
    chosen += [r for r in sorted(first.values(), key=lambda r: -r[0]) if r not in chosen][: count - len(chosen)]
    return [plan.pair(p) for _, _, plan, p in chosen]


def _moves(subject: Subject, x: Tensor, y: Tensor, cut: Tensor, bench: Bench) -> tuple[Tensor, Tensor]:
    """What moves before the cuts, and the least that can count, of each logit: flat, float64, on the CPU."""
    a, b = (torch.cat([subject(part) for part in ids.split(bench.rows)]) for ids in (x, y))
    d, least = _compared(a, b, bench.unit)
    past = torch.arange(x.shape[1]) < cut[:, None]
    return d[past].flatten(), least[past].flatten()


def _compared(a: Tensor, b: Tensor, unit: Tensor | float) -> tuple[Tensor, Tensor]:
    """The change from a to b and the least that can count, float64 on the CPU, finite."""
    d, least = change(a, b) / unit, limits.VISIBLE * torch.finfo(a.dtype).eps * a.abs() / unit
    d, least = (t.cpu().double().nan_to_num(posinf=limits.HUGE, neginf=-limits.HUGE) for t in (d, least))
    return d, torch.where(least < limits.HUGE, least, 0)


def rerandomised(subject: Subject) -> Subject | None:
    """A copy with weights drawn anew: what is switched off now (zero-initialised, saturated) may leak once trained.

    Buffers and frozen parameters stay, since masks live there. None: there is nothing to draw.
    """
    model = subject.adapter.model
    weights = model.parameters() if isinstance(model, nn.Module) else ()
    if not any(p.requires_grad for p in weights):
        return None
    fresh = subject.copied()
    if fresh is None:
        return None
    rng = torch.Generator().manual_seed(subject.seed)
    with torch.no_grad():
        for p in fresh.adapter.model.parameters():  # type: ignore[attr-defined]  # what can be copied is a module
            if p.requires_grad and p.is_floating_point() and p.numel():
                _redraw(p, rng)
    return fresh


def _redraw(p: Tensor, rng: torch.Generator) -> None:
    """New values of an ordinary size; gains keep their 1, infinities (a mask kept as a parameter) stay."""
    noise = torch.randn(p.shape, generator=rng).to(p)
    new = noise * (p[0].numel() ** -0.5 if p.dim() > 1 else 0.5)
    if p.dim() < 2 and 0.5 < p.mean() < 2:
        new += 1
    p.copy_(torch.where(p.isfinite(), new, p))
