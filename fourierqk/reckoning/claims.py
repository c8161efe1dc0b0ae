"""The paper's claims, each beside the recorded runs that decide it.

Every verdict and every number is computed from records: other records give other words. `CLAIMS` says what is claimed
and how it is judged, `Evidence` holds the runs, `reckon` brings the two together.
"""
from collections.abc import Iterable
from dataclasses import dataclass

from fourierqk.reckoning import judges
from fourierqk.reckoning.evidence import Evidence, NoRun
from fourierqk.reckoning.judges import Finding, Judge
from fourierqk.reckoning.paper import paper

__all__ = ["CLAIMS", "Claim", "markdown", "reckon"]


@dataclass(frozen=True)
class Claim:
    """One claim of the paper or its follow-up.

    name: a few words to refer to it by. says: the claim in our words, with {} for its number. key: of that number in
    claims.json. chapter: where the book treats it.
    """

    name: str
    says: str
    chapter: str
    judge: Judge
    key: str | None = None

    def __str__(self) -> str:
        said = self.says.format(paper(self.key)) if self.key else self.says
        return said[0].upper() + said[1:]


TWO_SIDED = (
    "random-qk", "fourier-qk", "fourier-qk-sigma1", "multifourier-qk", "multifourier-summed", "morlet-correlation",
    "mexican-hat-bank", "phase-randomised", "gauss-narrow", "gauss-wide", "nyquist",
)  # fmt: skip

READINGS = ("collapse-real", "collapse-analytic", "collapse-channels", "sliding-fourier-qk")
# collapse-real is fourier-qk by another name, trained for as many steps as the other two
WIDTHS = {"0.5 bins wide": "gauss-narrow", "2 bins wide": "collapse-real", "16 bins wide": "gauss-wide"}

CLAIMS = (
    Claim("the baseline's loss", "BASE-DOT ends at {}", "dot-product", judges.baseline(1.474), "paper_base_dot"),
    Claim(
        "random bands gain",
        "Random-QK gains {}: any spectral mixing helps",
        "random-bands",
        judges.gains("random-qk", "paper_random_qk_gain"),
        "paper_random_qk_gain",
    ),
    Claim(
        "one band gains",
        "Fourier-QK gains {}",
        "one-frequency",
        judges.gains("fourier-qk", "paper_fourier_gain"),
        "paper_fourier_gain",
    ),
    Claim(
        "four bands gain",
        "MultiFourier-QK gains {}",
        "four-frequencies",
        judges.gains("multifourier-qk", "paper_multifourier_gain"),
        "paper_multifourier_gain",
    ),
    Claim(
        "four before one before random",
        "four bands are better than one, one better than random ones",
        "random-bands",
        judges.ranks("multifourier-qk", "fourier-qk", "random-qk"),
    ),
    Claim(
        "the loss over seeds",
        "over seeds, Fourier-QK ends at {}",
        "reckoning",
        judges.two_numbers,
        "paper_fourier_qk_seeds",
    ),
    Claim(
        "two bins are best",
        "the best single band is about 2 bins wide (follow-up, gain {})",
        "random-bands",
        judges.best_of(WIDTHS, "2 bins wide"),
        "followup_best_band",
    ),
    Claim(
        "the learned periods",
        "the four frequencies settle at {}",
        "four-frequencies",
        judges.periods((49, 27, 10, 6)),
        "paper_learned_periods",
    ),
    Claim(
        "EMD finds the same periods",
        "empirical mode decomposition finds the same scales",
        "four-frequencies",
        judges.untested("we built no empirical mode decomposition"),
    ),
    Claim(
        "causal filters bring nothing",
        "causal Gaussian, Mexican hat and Morlet filters bring no gain",
        "causal-filters",
        judges.changes_nothing("causal-gaussian", "causal-mexican-hat", "causal-morlet", "causal-morlet-learned"),
    ),
    Claim(
        "random phases harm",
        "with amplitudes kept and phases random, the loss is above BASE-DOT's",
        "controls",
        judges.harms("phase-randomised"),
    ),
    Claim(
        "a random rotation brings nothing",
        "a random rotation of queries and keys brings no gain",
        "controls",
        judges.changes_nothing("random-rotation"),
    ),
    Claim(
        "a random projection brings nothing",
        "a random projection of queries and keys brings no gain",
        "controls",
        judges.changes_nothing("random-projection"),
    ),
    Claim(
        "the gain is specific to frequencies",
        "the gain is specific to mixing frequencies",
        "controls",
        judges.untested("no record; the chapter on controls trains a map that mixes time without any frequency"),
    ),
    Claim(
        "DC alone harms",
        "a filter that passes DC alone harms (follow-up: ends at {})",
        "one-frequency",
        judges.harms("dc", "followup_dc"),
        "followup_dc",
    ),
    Claim(
        "Nyquist alone harms",
        "one that passes the Nyquist frequency alone harms (follow-up: {})",
        "one-frequency",
        judges.harms("nyquist", "followup_nyquist"),
        "followup_nyquist",
    ),
    Claim(
        "two-sided filters leak",
        "two-sided filters cannot be used in a causal model without reading the future",
        "where-it-gets-in",
        judges.leak(*TWO_SIDED),
    ),
    Claim(
        "Morlet correlation leaks",
        "Morlet cross-correlation leaks, down to {}",
        "where-it-gets-in",
        judges.leak("morlet-correlation"),
        "paper_morlet_correlation",
    ),
    Claim(
        "an even kernel lets the future in",
        "an even kernel couples every position to future tokens, and the boundary of the DFT is a further risk",
        "where-it-gets-in",
        judges.look_ahead,
    ),
    Claim(
        "the collapse prevents the leak",
        "collapsing the frequencies to one value a token prevents the leak",
        "where-it-gets-in",
        judges.causal(*READINGS),
    ),
    Claim(
        "the rule for the gap",
        "a gap above +4 is clean, one below +2 leaks (follow-up)",
        "shuffled-gap",
        judges.gap_rule,
    ),
    Claim(
        "more bins leak more",
        "the more bins a filter passes, the more it leaks (follow-up)",
        "random-bands",
        judges.coverage_law,
    ),
    Claim(
        "causal filters on words",
        "causal filters may work on word tokens",
        "text-signal",
        judges.untested("no record of runs on words"),
    ),
    Claim(
        "a place in bidirectional models",
        "two-sided filters belong in bidirectional models (follow-up)",
        "fnet",
        judges.untested("we trained no masked language model"),
    ),
)


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
