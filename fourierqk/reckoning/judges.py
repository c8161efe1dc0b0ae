"""How claims are judged: each judge turns evidence into a verdict, and says what it was made of.

A judge of one kind of claim is made from the names of the systems that the claim speaks of.
"""
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

from fourierqk.reckoning.evidence import ALWAYS, WORTH, Evidence, Gain, NoRun, blank, spearman
from fourierqk.reckoning.paper import amount
from fourierqk.records import BASE
from fourierqk.training import PRESETS
from fourierqk.zoo import PERIODS

__all__ = [
    "VERDICTS", "Finding", "Shown", "baseline", "best_of", "causal", "changes_nothing", "coverage_law", "gains",
    "gap_rule", "harms", "leak", "look_ahead", "periods", "ranks", "two_numbers", "untested",
]  # fmt: skip

VERDICTS = {
    "holds": "our runs show it; a gain must show in a loss that the future cannot touch",
    "holds in part": "it holds of some systems, readings or texts and not of all, or by less than half the amount",
    "with the future only": "our ordered losses show it, and our honest losses do not",
    "does not hold here": "our runs, at their scale, show something else",
    "undecided": "our runs cannot tell",
    "not tested": "we have no run that could tell",
}
KINDS = ("ordered", "honest")
NOT_HERE = "does not hold here"
PADDED = "fourier-qk-padded"  # look-ahead without wrap-round
CLOSE = math.log(1.25)  # two periods within 25 % of each other are the same, as far as a band can tell


class Shown(NamedTuple):
    """A difference that a verdict was made of: of which systems, of which loss, and whether the future can touch it."""

    systems: str
    kind: str
    gain: Gain
    safe: bool


@dataclass(frozen=True)
class Finding:
    """verdict: one of VERDICTS. ours: what our runs gave, in words and numbers. shown: the differences among it."""

    verdict: str
    ours: str
    shown: tuple[Shown, ...] = ()


Judge = Callable[[Evidence], Finding]


def _both(e: Evidence, system: str) -> str:
    return f"`{system}` minus `{BASE}`: ordered {e.gain(system, 'ordered')}, honest {e.gain(system, 'honest')}"


def _shown(e: Evidence, system: str, other: str = BASE, on: str = "") -> tuple[Shown, ...]:
    """Both losses of a system minus those of another."""
    name, causal = system + on if other == BASE else f"{system} minus {other}{on}", e.verdict(system) == "causal"
    return tuple(Shown(name, kind, e.gain(system, kind, other), causal or kind == "honest") for kind in KINDS)


def _claimed(ordered: Gain, honest: Gain, amount: float) -> str:
    """The verdict on a claim that a loss is lower by an amount, of which half at least is to show."""
    if honest.counts:
        return "holds" if -honest.mean >= amount / 2 else "holds in part"
    if ordered.counts:
        return "with the future only"
    return NOT_HERE if ordered.excluded else "undecided"


def _doubted(
    e: Evidence, systems: Iterable[str], finding: Finding, voids: Mapping[str, set[str]] = MappingProxyType({})
) -> Finding:
    """The finding, or "undecided" where a doubt about runs of the systems voids its verdict; the doubt is shown.

    voids: for each verdict the kinds of doubt (`Evidence.doubts`) that void it, beside those that void any.
    """
    bearing = ALWAYS | voids.get(finding.verdict, set())
    doubts = dict.fromkeys(said for s in systems for kind, said in e.doubts(s).items() if kind in bearing)
    if not doubts:
        return finding
    return replace(finding, verdict="undecided", ours=f"{finding.ours}; but {' and '.join(doubts)}")


def gains(system: str, key: str) -> Judge:
    """The system has a lower loss than the baseline, by the amount that claims.json has under the key."""

    def judge(e: Evidence) -> Finding:
        verdict = _claimed(e.gain(system, "ordered"), e.gain(system, "honest"), amount(key))
        finding = Finding(verdict, _both(e, system), _shown(e, system))
        lower = {"untrained", "idle"}
        return _doubted(e, [system], finding, {"holds": lower, "holds in part": lower, NOT_HERE: {"idle", "full"}})

    return judge


def harms(system: str, key: str | None = None) -> Judge:
    """The system has a higher loss than the baseline, in the loss that the paper reports; less than WORTH is none.

    key: of the loss at which the system ends in claims.json, where it states one; half of that harm at least is to
    show. A baseline that learned little can hide a harm and cannot make one: of a harm that shows, only what voids
    every verdict leaves a doubt.
    """

    def judge(e: Evidence) -> Finding:
        harm = -e.gain(system, "ordered")
        verdict = NOT_HERE if harm.excluded else "undecided"
        if harm.counts:
            half = (amount(key) - amount("paper_base_dot")) / 2 if key else 0.0
            verdict = "holds" if -harm.mean >= half else "holds in part"
        finding = Finding(verdict, _both(e, system), _shown(e, system))
        return _doubted(e, [system], finding, {NOT_HERE: {"untrained", "idle"}})

    return judge


def changes_nothing(*systems: str) -> Judge:
    """None of the systems has a lower loss than the baseline, here or elsewhere.

    Of causal systems the ordered loss is as good as the honest one, and more exact. What the runs cannot tell
    (`Evidence.doubts`) is shown and not weighed: a gain over a baseline that is not trained, the absence of one where
    none has room.
    """

    def judge(e: Evidence) -> Finding:
        there = Evidence(e.elsewhere)
        places = [(e, s, "") for s in systems]
        places += [(there, s, f" on {there.text}") for s in systems if s in there.systems]
        told, weighed = [], []
        shown: list[Shown] = []
        for where, s, on in places:
            kind = where.safe_kind(s)
            gain, doubts = where.gain(s, kind), where.doubts(s)
            shown += _shown(where, s, on=on)
            told.append(f"`{s}`{on} {kind} {gain}" + "".join(f", where {said}" for said in doubts.values()))
            void = {"idle", "full"} if gain.excluded else {"idle", "untrained"}
            weighed += [gain] * (not (ALWAYS | void) & {*doubts})
        verdict = "undecided"
        if weighed and all(g.excluded for g in weighed):
            verdict = "holds"
        elif any(g.counts for g in weighed):
            verdict = "holds in part" if any(g.excluded for g in weighed) else NOT_HERE
        return Finding(verdict, f"minus `{BASE}`: {', '.join(told)}", tuple(shown))

    return judge


def ranks(*systems: str) -> Judge:
    """The systems' losses rise in the order given, each step beyond chance."""

    def judge(e: Evidence) -> Finding:
        pairs = [*zip(systems, systems[1:], strict=False)]
        found = {kind: [e.gain(a, kind, b) for a, b in pairs] for kind in KINDS}
        steps = {kind: {gain.side for gain in found[kind]} for kind in KINDS}
        verdict = "undecided"
        if steps["honest"] == {"lower"}:
            verdict = "holds"
        elif steps["ordered"] == {"lower"}:
            verdict = "with the future only"
        elif "higher" in steps["ordered"]:
            verdict = "holds in part" if "lower" in steps["ordered"] else NOT_HERE
        ours = (f"`{a}` minus `{b}`: {', '.join(f'{kind} {found[kind][i]}' for kind in KINDS)}"
                for i, (a, b) in enumerate(pairs))  # fmt: skip
        shown = tuple(shown for pair in pairs for shown in _shown(e, *pair))
        return _doubted(e, systems, Finding(verdict, "; ".join(ours), shown))

    return judge


def best_of(systems: dict[str, str], best: str) -> Judge:
    """One of the systems, by label, has a lower loss than each other, and honestly a lower one than the baseline."""

    def judge(e: Evidence) -> Finding:
        others = [s for label, s in systems.items() if label != best]
        sides = {kind: {e.gain(systems[best], kind, s).side for s in others} for kind in KINDS}
        verdict = "undecided"
        if sides["honest"] == {"lower"} and e.gain(systems[best], "honest").counts:
            verdict = "holds"
        elif sides["ordered"] == {"lower"}:
            verdict = "with the future only"
        elif "higher" in sides["ordered"]:
            verdict = NOT_HERE
        losses = ", ".join(
            f"{label} {e.loss(s, 'ordered'):.2f} and {e.loss(s, 'honest'):.2f}" for label, s in systems.items()
        )
        shown = tuple(shown for s in others for shown in _shown(e, systems[best], s))
        return _doubted(e, systems.values(), Finding(verdict, f"ordered and honest loss: {losses}", shown))

    return judge


def _audits(e: Evidence, systems: tuple[str, ...], wanted: str) -> tuple[str, list[str]]:
    """The verdict on a claim that all audits give one verdict, and the systems of which they do."""
    found = {s: e.verdict(s) for s in systems}
    right = [s for s, verdict in found.items() if verdict == wanted]
    if len(right) == len(systems):
        return "holds", right
    if not {*found.values()} <= {"causal", "leaks"}:
        return "undecided", right
    return "holds in part" if right else NOT_HERE, right


def leak(*systems: str) -> Judge:
    """The systems read the future."""

    def judge(e: Evidence) -> Finding:
        verdict, caught = _audits(e, systems, "leaks")
        names = ", ".join(f"`{s}` ({e.loss(s, 'ordered'):.3f})" for s in systems)
        return Finding(verdict, f"the audit convicts {len(caught)} of {len(systems)} (ordered loss): {names}")

    return judge


def causal(*readings: str) -> Judge:
    """No reading of the method reads the future."""

    def judge(e: Evidence) -> Finding:
        verdict, found = _audits(e, readings, "causal")
        return Finding(verdict, f"of {len(readings)} readings, causal: {', '.join(f'`{s}`' for s in found) or 'none'}")

    return judge


def look_ahead(e: Evidence) -> Finding:
    """Far from both ends the boundary has little say: what is gained there beyond the honest loss comes by the kernel.

    Where the same band was trained on zero-padded text (`PADDED`, elsewhere), nothing wraps round and the boundary has
    no say at all: it too must gain, in the loss that the future can touch and not in the honest one.
    """
    d, whole, honest = e.middle("fourier-qk"), e.gain("fourier-qk", "ordered").mean, e.gain("fourier-qk", "honest").mean
    found = [d < min(0.0, honest) - WORTH]
    where = f"{d:+.2f} in the middle third of the window, far from both ends, {whole:+.2f} in all"
    ours = [f"`fourier-qk` minus `{BASE}`: {where}"]
    there = Evidence(e.elsewhere)
    if PADDED in there.systems:
        ordered, safe = (there.gain(PADDED, kind) for kind in KINDS)
        found.append(ordered.counts and not safe.counts)
        ours.append(f"where nothing wraps round, `{PADDED}` on {there.text}: ordered {ordered}, honest {safe}")
    finding = _doubted(e, ["fourier-qk"], Finding("holds" if all(found) else "undecided", "; ".join(ours)))
    return _doubted(there, [PADDED], finding) if PADDED in there.systems else finding


def periods(claimed: tuple[float, ...]) -> Judge:
    """The four bands end at these periods; geometric means over seeds, layers and heads. To stay put shows nothing."""

    def apart(means: list[float], others: tuple[float, ...]) -> bool:
        return any(abs(math.log(m / other)) > CLOSE for m, other in zip(means, others, strict=True))

    def judge(e: Evidence) -> Finding:
        ends = [path[-1] for r in e.runs("multifourier-qk") for path in r["history"]["frequencies"].values()]
        bands = [[f for heads in ends[i::4] for f in heads] for i in range(4)]  # each layer lists its four in turn
        means = [math.exp(-fmean(map(math.log, band))) for band in bands]
        verdict, how = "holds", "they moved to where the paper's are"
        if apart(means, claimed):
            verdict, how = NOT_HERE, "elsewhere than the paper's; ours learn faster"
        elif not apart(means, PERIODS):
            verdict, how = "undecided", "like the paper's, and still where they started"
        ours = ", ".join(f"{m:.1f} ({1 / max(b):.1f} to {1 / min(b):.1f})" for m, b in zip(means, bands, strict=True))
        return _doubted(e, ["multifourier-qk"], Finding(verdict, f"periods of {ours} tokens at the end: {how}"))

    return judge


def coverage_law(e: Evidence) -> Finding:
    """Spearman's rank correlation over the leaking systems, beside what chance gives (1.96 / sqrt(n - 1))."""
    covered = {s: bins for s in e.leaking() if (bins := e.coverage(s)) is not None}
    if len(covered) < 6:
        raise NoRun(f"a rank correlation of {len(covered)} systems that leak says nothing: it takes six")
    rho = spearman([*covered.values()], [e.dependence(s) for s in covered])
    chance = 1.96 / math.sqrt(len(covered) - 1)
    verdict = "holds" if rho > chance else "undecided" if rho > 0 else NOT_HERE
    ours = f"rank correlation {rho:+.2f} over {len(covered)} leaking systems; by chance within ± {chance:.2f}"
    return _doubted(e, covered, Finding(verdict, ours))


def gap_rule(e: Evidence) -> Finding:
    """One leak that is called clean, or one causal system that is called leaky, refutes a rule for every text.

    It holds where it is right of every run, and there are runs of both kinds. A run that learned nothing has no gap,
    whatever it reads: it is left out.
    """
    texts: dict[str, list[tuple[float, str]]] = {}
    every = [*e.all(), *(r for of in e.elsewhere.values() for r in of)]
    learned = [r for r in every if not blank([r])]
    for r in learned:
        texts.setdefault(r["corpus"]["name"], []).append((r["losses"]["shuffled"]["gap"], r["audit"]["verdict"]))
    ours, score = [], []
    for text, runs in texts.items():
        leaks, honest = ([gap for gap, found in runs if found == which] for which in ("leaks", "causal"))
        caught, cleared = sum(gap < 2 for gap in leaks), sum(gap > 4 for gap in leaks)
        passed, accused = sum(gap > 4 for gap in honest), sum(gap < 2 for gap in honest)
        ours.append(
            f"{text}: of {len(leaks)} runs that leak it calls {caught} leaky and {cleared} clean, "
            f"of {len(honest)} causal ones {passed} clean and {accused} leaky"
        )
        score.append((caught + passed, cleared + accused, len(leaks) + len(honest)))
    if not any(total for _, _, total in score):
        raise NoRun("no recorded run with a verdict, of a model that predicts better than counts of single tokens")
    verdict, kinds = "undecided", {r["audit"]["verdict"] for r in learned}
    if any(wrong for _, wrong, _ in score):
        verdict = NOT_HERE
    elif all(right == total for right, _, total in score) and {"leaks", "causal"} <= kinds:
        verdict = "holds"
    if len(learned) < len(every):
        ours.append(f"left out: {len(every) - len(learned)} that predict no better than counts of single tokens")
    return Finding(verdict, "; ".join(ours))


def baseline(claimed: float) -> Judge:
    """The baseline ends at a loss; only a run of the paper's size can tell."""

    def judge(e: Evidence) -> Finding:
        r, size = e.runs(BASE)[0], PRESETS["paper"]
        loss, m, steps = e.loss(BASE, "ordered"), r["model"], r["train"]["steps"]
        ours = f"{loss:.3f} with {m['n_layer']} layers of width {m['n_embd']}, {steps} steps"
        if not m.items() >= size.model.items() or steps < size.train.steps:
            return Finding("not tested", f"{ours}: less than the paper's size")
        near = abs(loss - claimed) < WORTH
        return Finding("holds" if near else NOT_HERE, ours)

    return judge


def two_numbers(e: Evidence) -> Finding:
    """The paper states two losses of one system, far apart."""
    values = ", ".join(f"{r['losses']['ordered']['mean']:.3f}" for r in e.runs("fourier-qk"))
    ours = f"ordered loss of `fourier-qk`, seed by seed: {values}; the paper has two numbers for one system"
    return Finding("undecided", ours)


def untested(why: str) -> Judge:
    """No run of ours could tell."""
    return lambda e: Finding("not tested", why)
