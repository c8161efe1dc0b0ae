"""The paper's claims, each beside the recorded runs that decide it.

Every verdict and every number is computed from records: other records give other words. `CLAIMS` says what is claimed
and how it is judged, `Evidence` holds the runs, `reckon` brings the two together.
"""
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fourierqk.evidence import Evidence, NoRun, mean, spearman
from fourierqk.report import BASE
from fourierqk.zoo import PERIODS

__all__ = ["CLAIMS", "VERDICTS", "Claim", "Evidence", "Finding", "markdown", "paper", "reckon"]

VERDICTS = {
    "holds": "our runs show it in a loss or an audit that the future cannot touch",
    "holds in part": "it holds of some systems or readings of the paper and not of others",
    "with the future only": "our ordered losses show it, and our honest losses do not",
    "does not hold here": "our runs, at their scale, show something else",
    "undecided": "our runs cannot tell",
    "not tested": "we have no run that could tell",
}
KINDS = ("ordered", "honest")
WORTH = 0.05  # nats per token: a gain below this is none, beside gains of 0.4 to 1.2 that are claimed

@dataclass(frozen=True)
class Finding:
    """verdict: one of VERDICTS. ours: what our runs gave, in words and numbers."""

    verdict: str
    ours: str


@dataclass(frozen=True)
class Claim:
    """One claim of the paper or its follow-up.

    name: a few words to refer to it by. says: the claim in our words, with {} for its number. key: of that number in
    claims.json. chapter: where the book treats it.
    """

    name: str
    says: str
    chapter: str
    judge: Callable[[Evidence], Finding]
    key: str | None = None

    def __str__(self) -> str:
        said = self.says.format(paper(self.key)) if self.key else self.says
        return said[0].upper() + said[1:]


@cache
def _numbers() -> dict[str, dict[str, str]]:
    here = Path(__file__).resolve().parent
    places = (here / "_claims.json", here.parent / "book" / "claims.json")  # installed, or in the repository
    return json.loads(next(p for p in places if p.is_file()).read_text(encoding="utf-8"))


def paper(key: str) -> str:
    """A number as the paper states it, by its key in the book's claims.json. ValueError: an unknown key."""
    if key not in _numbers():
        raise ValueError(f"unknown claim {key!r}: there are {', '.join(_numbers())}")
    return _numbers()[key]["text"]


# How claims are judged. Each makes a judge of a claim from the names of the systems that it speaks of.


def _both(e: Evidence, system: str) -> str:
    return f"`{system}` minus `{BASE}`: ordered {e.gain(system, 'ordered')}, honest {e.gain(system, 'honest')}"


def _gains(system: str) -> Callable[[Evidence], Finding]:
    """The system has a lower loss than the baseline."""

    def judge(e: Evidence) -> Finding:
        ordered, honest = (e.gain(system, kind).side for kind in KINDS)
        verdict = "does not hold here"
        if honest == "lower":
            verdict = "holds"
        elif ordered == "lower":
            verdict = "with the future only"
        return Finding(verdict, _both(e, system))

    return judge


def _harms(system: str) -> Callable[[Evidence], Finding]:
    """The system has a higher loss than the baseline, in the loss that the paper reports."""

    def judge(e: Evidence) -> Finding:
        side = e.gain(system, "ordered").side
        verdict = {"higher": "holds", "level": "undecided", "lower": "does not hold here"}[side]
        return Finding(verdict, _both(e, system))

    return judge


def _changes_nothing(*systems: str) -> Callable[[Evidence], Finding]:
    """None of the systems has a lower loss than the baseline; of causal ones the ordered loss is as good as honest."""

    def judge(e: Evidence) -> Finding:
        kinds = [e.safe_kind(s) for s in systems]
        gains = [e.gain(s, kind) for s, kind in zip(systems, kinds, strict=True)]
        verdict = "holds"
        if any(g.side == "lower" for g in gains):
            verdict = "does not hold here"
        elif any(g.low < -WORTH for g in gains):
            verdict = "undecided"
        ours = ", ".join(f"`{s}` {kind} {g}" for s, kind, g in zip(systems, kinds, gains, strict=True))
        return Finding(verdict, f"minus `{BASE}`: {ours}")

    return judge


def _ranks(*systems: str) -> Callable[[Evidence], Finding]:
    """The systems' losses rise in the order given, in every seed that all of them have."""

    def judge(e: Evidence) -> Finding:
        rises = {kind: all(row == sorted(row) for row in e.seed_by_seed(systems, kind)) for kind in KINDS}
        verdict = "does not hold here"
        if rises["honest"]:
            verdict = "holds"
        elif rises["ordered"]:
            verdict = "with the future only"
        ours = "; ".join(f"{kind} {', '.join(f'{e.loss(s, kind):.2f}' for s in systems)}" for kind in KINDS)
        return Finding(verdict, f"{', '.join(f'`{s}`' for s in systems)}: {ours}")

    return judge


def _leak(*systems: str) -> Callable[[Evidence], Finding]:
    """The systems read the future."""

    def judge(e: Evidence) -> Finding:
        caught = [s for s in systems if e.verdict(s) == "leaks"]
        names = ", ".join(f"`{s}` ({e.loss(s, 'ordered'):.3f})" for s in systems)
        verdict = "holds" if caught == list(systems) else "holds in part" if caught else "does not hold here"
        return Finding(verdict, f"the audit convicts {len(caught)} of {len(systems)} (ordered loss): {names}")

    return judge


def _collapse(e: Evidence) -> Finding:
    readings = ("collapse-real", "collapse-analytic", "collapse-channels", "sliding-fourier-qk")
    causal = [s for s in readings if e.verdict(s) == "causal"]
    verdict = "holds" if len(causal) == len(readings) else "holds in part" if causal else "does not hold here"
    return Finding(verdict, f"of {len(readings)} readings, causal: {', '.join(f'`{s}`' for s in causal) or 'none'}")


def _boundary(e: Evidence) -> Finding:
    """If only the ends let the future in, the middle of the window could not be better than the baseline's."""
    d, whole = e.middle("fourier-qk"), e.gain("fourier-qk", "ordered").mean
    verdict = "does not hold here" if d < -WORTH else "undecided"
    ours = f"`fourier-qk` minus `{BASE}`: {d:+.2f} in the middle third of the window, {whole:+.2f} over all of it"
    return Finding(verdict, ours)


def _best_width(e: Evidence) -> Finding:
    """`collapse-real` is fourier-qk by another name, trained for as many steps as the other two."""
    widths = {0.5: "gauss-narrow", 2: "collapse-real", 16: "gauss-wide"}
    best = {kind: min(widths, key=lambda w: e.loss(widths[w], kind)) for kind in KINDS}
    verdict = "does not hold here"
    if best["honest"] == 2:
        verdict = "holds"
    elif best["ordered"] == 2:
        verdict = "with the future only"
    losses = ", ".join(
        f"{w:g} bins wide {e.loss(s, 'ordered'):.2f} and {e.loss(s, 'honest'):.2f}" for w, s in widths.items()
    )
    return Finding(verdict, f"ordered and honest loss: {losses}")


def _periods(e: Evidence) -> Finding:
    """Geometric means over seeds, layers and heads of where the four bands end."""
    ends = [path[-1] for r in e.runs("multifourier-qk") for path in r["history"]["frequencies"].values()]
    bands = [ends[i::4] for i in range(4)]  # each layer lists its four in turn
    means = [math.exp(-mean(math.log(f) for heads in band for f in heads)) for band in bands]
    moved = max(abs(math.log(m / start)) for m, start in zip(means, PERIODS, strict=True))
    verdict = "undecided" if moved < math.log(1.25) else "does not hold here"
    low = [1 / max(f for heads in band for f in heads) for band in bands]
    high = [1 / min(f for heads in band for f in heads) for band in bands]
    ours = ", ".join(f"{m:.1f} ({a:.1f} to {b:.1f})" for m, a, b in zip(means, low, high, strict=True))
    still = "they are still where they started" if verdict == "undecided" else "they left their start, for elsewhere"
    return Finding(verdict, f"periods of {ours} tokens at the end: {still}")


def _coverage_law(e: Evidence) -> Finding:
    """Spearman's rank correlation over the leaking systems, beside what chance gives (1.96 / sqrt(n - 1))."""
    systems = [s for s in e.leaking() if e.coverage(s) is not None]
    if len(systems) < 4:
        raise NoRun(f"a rank correlation of {len(systems)} systems that leak says nothing: it takes four")
    rho = spearman([e.coverage(s) for s in systems], [e.owed(s) for s in systems])
    chance = 1.96 / math.sqrt(len(systems) - 1)
    verdict = "holds" if rho > chance else "undecided" if rho > 0 else "does not hold here"
    ours = f"rank correlation {rho:+.2f} over {len(systems)} leaking systems; by chance within ± {chance:.2f}"
    return Finding(verdict, ours)


def _gap_rule(e: Evidence) -> Finding:
    """One leak that is called clean, or one causal system that is called leaky, refutes a rule for all."""
    texts: dict[str, list[tuple[float, str]]] = {}
    for r in (*e.all(), *(r for runs in e.elsewhere.values() for r in runs)):
        texts.setdefault(r["corpus"]["name"], []).append((r["losses"]["shuffled"]["gap"], r["audit"]["verdict"]))
    if not texts:
        raise NoRun("no recorded run at all")
    ours, wrong = [], 0
    for text, runs in texts.items():
        leaking, causal = ([gap for gap, found in runs if found == which] for which in ("leaks", "causal"))
        cleared, accused = sum(gap > 4 for gap in leaking), sum(gap < 2 for gap in causal)
        right = sum(gap < 2 for gap in leaking), sum(gap > 4 for gap in causal)
        ours.append(
            f"{text}: of {len(leaking)} runs that leak it calls {right[0]} leaky and {cleared} clean, "
            f"of {len(causal)} causal ones {right[1]} clean and {accused} leaky"
        )
        wrong += cleared + accused
    return Finding("does not hold here" if wrong else "holds", "; ".join(ours))


def _scale(e: Evidence) -> Finding:
    r = e.runs(BASE)[0]
    ours = f"{e.loss(BASE, 'ordered'):.3f} with width {r['model']['n_embd']} and {r['train']['steps']} steps"
    return Finding("not tested", f"{ours}: a smaller model, and no repetition of the paper's")


def _seeds(e: Evidence) -> Finding:
    values = [r["losses"]["ordered"]["mean"] for r in e.runs("fourier-qk")]
    ours = f"ordered loss of `fourier-qk`, seed by seed: {', '.join(f'{v:.3f}' for v in values)}"
    return Finding("undecided", f"{ours}; the paper has two numbers for one system (see below)")


def _untested(why: str) -> Callable[[Evidence], Finding]:
    return lambda e: Finding("not tested", why)


TWO_SIDED = (
    "random-qk", "fourier-qk", "multifourier-qk", "multifourier-summed", "morlet-correlation", "gauss-wide", "nyquist",
)  # fmt: skip

CLAIMS = (
    Claim("baseline", "BASE-DOT ends at {}", "dot-product", _scale, "paper_base_dot"),
    Claim("random bands", "Random-QK gains {}: any spectral mixing helps", "random-bands", _gains("random-qk"),
          "paper_random_qk_gain"),
    Claim("one band", "Fourier-QK gains {}", "one-frequency", _gains("fourier-qk"), "paper_fourier_gain"),
    Claim("four bands", "MultiFourier-QK gains {}", "four-frequencies", _gains("multifourier-qk"),
          "paper_multifourier_gain"),
    Claim("order", "four bands are better than one, one better than random ones", "random-bands",
          _ranks("multifourier-qk", "fourier-qk", "random-qk")),
    Claim("seeds", "over seeds, Fourier-QK ends at {}", "reckoning", _seeds, "paper_fourier_qk_seeds"),
    Claim("best band", "the best single band is about 2 bins wide (follow-up, gain {})", "random-bands", _best_width,
          "followup_best_band"),
    Claim("learned periods", "the four frequencies settle at {}", "four-frequencies", _periods,
          "paper_learned_periods"),
    Claim("EMD", "empirical mode decomposition finds the same scales", "four-frequencies",
          _untested("we built no empirical mode decomposition")),
    Claim("causal filters", "causal Gaussian, Mexican hat and Morlet filters bring no gain", "causal-filters",
          _changes_nothing("causal-gaussian", "causal-mexican-hat", "causal-morlet", "causal-morlet-learned")),
    Claim("phase", "with amplitudes kept and phases random, the loss is above BASE-DOT's", "controls",
          _harms("phase-randomised")),
    Claim("rotation and projection", "random rotations and projections bring no gain", "controls",
          _changes_nothing("random-rotation", "random-projection")),
    Claim("specificity", "the gain is specific to mixing frequencies", "controls",
          _untested("no recorded run; the chapter on controls trains a map that mixes time without any frequency")),
    Claim("DC", "a filter that passes DC alone harms (follow-up, {})", "one-frequency", _harms("dc"), "followup_dc"),
    Claim("Nyquist", "one that passes the Nyquist frequency alone harms (follow-up, {})", "one-frequency",
          _harms("nyquist"), "followup_nyquist"),
    Claim("leak", "two-sided filters cannot be used in a causal model without reading the future", "where-it-gets-in",
          _leak(*TWO_SIDED)),
    Claim("correlation", "Morlet cross-correlation leaks, down to {}", "where-it-gets-in", _leak("morlet-correlation"),
          "paper_morlet_correlation"),
    Claim("boundary", "the periodic boundary of the DFT is how the future gets in", "where-it-gets-in", _boundary),
    Claim("collapse", "collapsing the frequencies to one value a token prevents the leak", "where-it-gets-in",
          _collapse),
    Claim("shuffled gap", "a gap above +4 is clean, one below +2 leaks", "shuffled-gap", _gap_rule),
    Claim("coverage", "the more bins a filter passes, the more it leaks (follow-up)", "random-bands", _coverage_law),
    Claim("words", "causal filters may work on word tokens", "text-signal",
          _untested("we recorded runs on characters alone")),
    Claim("bidirectional", "two-sided filters belong in bidirectional models", "fnet",
          _untested("we trained no masked language model")),
)  # fmt: skip


def reckon(evidence: Evidence) -> list[tuple[Claim, Finding]]:
    """Every claim with what the evidence says of it, in the order of `CLAIMS`; "not tested" where a run is missing."""

    def finding(claim: Claim) -> Finding:
        try:
            return claim.judge(evidence)
        except NoRun as e:
            return Finding("not tested", str(e))

    return [(claim, finding(claim)) for claim in CLAIMS]


def markdown(findings: Iterable[tuple[Claim, Finding]]) -> str:
    """The claim table: what is claimed, what we found, and the verdict."""
    rows = [f"| {claim} | {found.ours} | **{found.verdict}** |" for claim, found in findings]
    return "\n".join(["| the paper claims | our runs | verdict |", "|---|---|---|", *rows])
