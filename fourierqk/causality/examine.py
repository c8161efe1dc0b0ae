"""One set of weights under probes, and what they show: the future, round-off, or too little to tell."""
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from fourierqk.adapter import RefusedError
from fourierqk.causality import limits
from fourierqk.causality.locate import Location, every, locate, soonest
from fourierqk.causality.movement import Bench, Movement, alike, change, probe
from fourierqk.causality.probes import Pair, Plan
from fourierqk.causality.replay import Glance, Replay
from fourierqk.causality.steadiness import Steadiness, steadiness
from fourierqk.causality.subject import Roundings, Subject

__all__ = ["Examination", "beside", "examine", "rerandomised"]

OVER_TIME = "nothing moved before any cut", "logits moved before a cut, by up to {:.1e} of what moved after it"
OVER_ROWS = (
    "no text moved when the texts beside it were replaced",
    "a text's logits moved when the texts beside it were replaced, by up to {:.1e} of what moved there",
)
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

    def locations(self, more: Plan | None, all_of_them: bool = False) -> list[Location]:
        """Where the dependence enters, as far as modules show it: the first place or, on request, every one.

        The plainest probe need not move the first module that leaks: others that moved, and some of more, may. In
        float64, where there is one, the faintest movement stands clear of round-off.
        """
        first = next(filter(None, map(locate, self.replays)), None)
        pairs = self._pairs(more)
        fine = _finer(self.subject, pairs[0].base) or self.subject
        glance = Glance(fine, limits.FLOAT64_ONLY if fine.precision == torch.float64 else limits.EXACT)
        first = soonest(first, glance, pairs)
        return list(every(first, glance, pairs)) if all_of_them else [first] if first else []

    def _pairs(self, more: Plan | None) -> list[Pair]:
        """Probes that moved, and others of two bases, each base by itself: it is run once."""
        moved = _suspects(list(self.rounds), limits.SHOWN) or [r.pair for r in self.replays]
        if more is None:
            return moved
        rest = [more.take([p for p in range(len(more)) if more.base[p] == k]).some(limits.OTHERS // 2) for k in (0, 1)]
        return moved + [plan.pair(p) for plan in rest for p in range(len(plan))]


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


def beside(subject: Subject, pairs: list[Pair]) -> Examination:
    """Whether the first of the texts in a batch is answered otherwise beside others; pairs: such batches."""
    replays = tuple(Replay(subject, pair) for pair in pairs)
    moved = [change(*replay.outputs(0)).abs().cpu().nan_to_num(posinf=0).amax((1, 2)) for replay in replays]
    worst = max(range(len(pairs)), key=lambda i: moved[i][0].item())
    replay, own, after = replays[worst], moved[worst][0].item(), moved[worst][1:].max().item()

    def move(key: int) -> tuple[Tensor, Tensor]:
        d, least = _compared(*replay.outputs(key), 1.0)
        return d[0].flatten(), least[0].flatten()

    rel = own and own / after if after else own and math.inf
    steady = _steadiness(move, after, rel)
    verdict, why = _words(steady, rel, OVER_ROWS)
    rest = (r for i, r in enumerate(replays) if i != worst)
    return Examination(verdict, why, rel, steady.noise, (), subject, (replay, *rest))


def _steadiness(move: Callable[[int], tuple[Tensor, Tensor]], after: float, rel: float) -> Steadiness:
    """Whether movements repeat; by their size alone, where operations do not let themselves be rounded otherwise."""
    try:
        return steadiness(move, after)
    except RefusedError:
        return Steadiness(True if rel > limits.LEAK else False if rel < limits.ROUND_OFF else None)


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


def _words(steady: Steadiness, rel: float, words: tuple[str, str] = OVER_TIME) -> tuple[str, str]:
    """-> (verdict, why)."""
    if rel == 0:
        return "causal", words[0]
    size = words[1].format(rel)
    if steady.repeats:
        return "leaks", f"{size}, and move alike however the arithmetic rounds"
    if steady.repeats is None:
        return "inconclusive", f"{size}; the arithmetic could not be rounded otherwise, and this size proves nothing"
    if rel > limits.LOUD:
        return "inconclusive", f"{size}: round-off, but so large that it could hide a leak"
    return "causal", f"{size}: round-off, it scatters with the arithmetic"


def _in_float64(coarse: Examination, bench: Bench) -> Examination | None:
    """The same probes in float64, some of them where nothing moved; None where there is no float64 to be had."""
    plans = [plan for plan, _ in coarse.rounds]
    subject = _finer(coarse.subject, plans[0].bases[0])
    if subject is None:
        return None
    if not coarse.rel:
        plans = [plans[0].some(limits.FLOAT64)]
    try:
        return _judge(subject, [(plan, probe(subject, plan, bench)) for plan in plans], bench, _repeated)
    except RefusedError:  # it insists on float32 somewhere
        return None


def _finer(subject: Subject, text: Tensor) -> Subject | None:
    """A copy in float64; None where there is none, or where it computes something else of a text, (T,) or (B, T).

    Attention of torch misreads a float32 mask beside float64 queries.
    """
    fine = subject.copied(torch.float64)
    if fine is None or subject.eps == torch.finfo(torch.float64).eps:
        return None
    ids = torch.atleast_2d(text)
    try:
        return fine if alike(subject(ids).cpu(), fine(ids).cpu(), limits.OTHERWISE) else None
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
