"""One set of weights under probes, and what they say: the future, round-off, or neither for certain."""
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from fourierqk.causality.locate import Place, locate
from fourierqk.causality.probes import Bench, Movement, Pair, Plan, Subject, alike, change, measure
from fourierqk.causality.rounding import ULPS
from fourierqk.causality.steadiness import Steadiness, steadiness

__all__ = ["Finding", "beside", "examine", "rerandomised"]

LOUD = 0.05  # round-off of this share of what moves after the cut does not pass in silence: it could hide a leak
TINY = 1e-12  # a dependence of less, seen in float64 alone, is none in any precision that models run in
FEW, MANY = 1, 12  # probes to repeat in other roundings: at first, and before an acquittal
ELEMENTS = 2**24  # logits of these probes, at most
ROUND_OFF, LEAK = 1e-5, 1e-4  # where nothing but the size of a movement is known: float32 stays below the first
OTHERWISE = 0.1  # relative difference between two precisions that is no longer put down to them
SOME = 16  # probes that are tried in float64 although nothing moved in float32
HUGE = 1e100  # stands for infinity, which has no mean

Round = tuple[Plan, Movement]


@dataclass(frozen=True)
class Finding:
    """What the probes show about one set of weights."""

    verdict: str  # "causal", "leaks", "inconclusive"
    why: str
    rel: float  # the worst movement before a cut, relative to the movement after it
    noise: float  # what round-off alone moves, in logits
    rounds: tuple[Round, ...] = field(repr=False)
    subject: Subject = field(repr=False)  # in the precision that decided
    pairs: tuple[Pair, ...] = field(repr=False)  # probes that show it, the best first

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
        return min(5 * self.noise, plainest / 2) if self.verdict == "leaks" else 5 * self.noise

    def place(self) -> Place | None:
        """Where the dependence enters, as far as modules show it."""
        return next(filter(None, (locate(self.subject, pair) for pair in self.pairs)), None)


def examine(subject: Subject, plans: list[Plan], bench: Bench) -> Finding:
    """Run probes until one leaks, and judge what moved before the cuts; without a leak, judge it again in float64.

    In float32 a large number swallows a small one, and round-off may be loud: float64 hears more.
    """
    rounds: list[Round] = []
    for plan in plans:
        rounds.append((plan, measure(subject, plan, bench)))
        coarse = _judge(subject, rounds, bench, FEW)
        if coarse.verdict == "leaks":
            return coarse
    fine = _in_float64(coarse, bench)
    if fine is None and coarse.rel:
        coarse = _judge(subject, rounds, bench, MANY)
    found = _settled(coarse, fine) if fine else coarse
    place = locate(found.subject, found.pairs[0]) if found.verdict == "causal" and found.rel else None
    if place and place.steady:  # an inner module reads the future, and what comes of it may drown
        why = f"{found.why}; but {place} reads the future, and round-off could hide what comes of it"
        return replace(found, verdict="inconclusive", why=why)
    return found


def _settled(coarse: Finding, fine: Finding) -> Finding:
    """One finding of two: float64 decides, wherever there was anything to decide."""
    if fine.verdict == "leaks" and fine.rel < TINY:
        return replace(fine, verdict="inconclusive", why=f"{fine.why}: in float64 alone, too little for float32")
    if fine.verdict == "leaks" or coarse.rel:
        return replace(fine, why=f"{fine.why} (in float64; {coarse.rel:.1e} in the model's own precision)")
    return coarse


def beside(subject: Subject, x: Tensor, others: Tensor) -> Steadiness:
    """Whether the first of the texts x (B, T) is answered otherwise beside `others` (B, T) than beside its own."""
    y = torch.cat([x[:1], others[1:]])
    after = change(subject(x), subject(y))[1:].abs().nan_to_num(posinf=0).max().item()

    def move(key: int) -> tuple[Tensor, Tensor]:
        s = subject.rounded(key)
        d, least = _compared(s(x)[:1], s(y)[:1], 1.0)
        return d.flatten(), least.flatten()

    return steadiness(move, after)


def _judge(subject: Subject, rounds: list[Round], bench: Bench, count: int) -> Finding:
    """Whether movements repeat in other roundings, of the `count` worst probes."""
    plan, movement = max(rounds, key=lambda r: r[1].rel.max())
    p = int(movement.rel.argmax())
    rel, pairs, steady = movement.rel[p].item(), [plan.pair(p)], Steadiness(False)
    if rel:
        try:
            steady, pairs = _repeated(subject, rounds, movement.after[p].item(), bench, count)
        except ValueError:  # its operations do not let themselves be rounded otherwise
            steady = Steadiness(True if rel > LEAK else False if rel < ROUND_OFF else None)
    return Finding(*_words(steady, rel), rel, steady.noise, tuple(rounds), subject, tuple(pairs))


def _words(steady: Steadiness, rel: float) -> tuple[str, str]:
    """-> (verdict, why)."""
    size = f"logits moved before a cut, by up to {rel:.1e} of what moved after it"
    if rel == 0:
        return "causal", "nothing moved before any cut"
    if steady.repeats:
        return "leaks", f"{size}, and move alike however the arithmetic rounds"
    if steady.repeats is None:
        return "inconclusive", f"{size}, neither as steadily as a dependence nor as loosely as round-off"
    if rel > LOUD:
        return "inconclusive", f"{size}: round-off, but so large that it could hide a leak"
    return "causal", f"{size}: round-off, it scatters with the arithmetic"


def _in_float64(coarse: Finding, bench: Bench) -> Finding | None:
    """The same probes in float64, some of them where nothing moved; None where there is no float64 to be had.

    Nor where the copy computes something else: attention of torch misreads a float32 mask beside float64 queries.
    """
    subject = coarse.subject.copied(torch.float64)
    if subject is None or coarse.subject.grain == torch.finfo(torch.float64).eps:
        return None
    plans, one = [plan for plan, _ in coarse.rounds], coarse.rounds[0][0].bases[:1]
    if not coarse.rel:
        plans = [plans[0].some(SOME)]
    try:
        if not alike(coarse.subject(one), subject(one), OTHERWISE):
            return None
        return _judge(subject, [(plan, measure(subject, plan, bench)) for plan in plans], bench, MANY)
    except ValueError:  # it insists on float32 somewhere
        return None


def _repeated(
    subject: Subject, rounds: list[Round], after: float, bench: Bench, count: int
) -> tuple[Steadiness, list[Pair]]:
    """Whether the worst probes' movements repeat in other roundings -> and these probes, the steadiest first.

    The largest movement need not be the steadiest: a choice that hangs by a hair changes with the rounding.
    """
    one = subject(rounds[0][0].bases[:1]).shape
    pairs = _suspects(rounds, max(1, min(count, ELEMENTS // (4 * one.numel()))))
    texts = [torch.stack(part) for part in zip(*((p.base, p.text) for p in pairs), strict=True)]
    cuts = torch.tensor([p.cut for p in pairs])
    steady = steadiness(lambda key: _moves(subject.rounded(key), *texts, cuts, bench), after)
    ends = (cuts * one[-1]).cumsum(0)
    which = 0 if steady.which is None else int(torch.searchsorted(ends, steady.which, right=True))
    return steady, [pairs[which], *pairs[:which], *pairs[which + 1 :]]


def _suspects(rounds: list[Round], count: int) -> list[Pair]:
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
    d, least = change(a, b) / unit, ULPS * torch.finfo(a.dtype).eps * a.abs() / unit
    d, least = (t.double().cpu().nan_to_num(posinf=HUGE, neginf=-HUGE) for t in (d, least))
    return d, torch.where(least < HUGE, least, 0)


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
