"""The paper's claims, each judged by the recorded runs."""
from fourierqk.reckoning.claims import CLAIMS, Claim, markdown, reckon
from fourierqk.reckoning.evidence import Evidence, Gain, NoRun
from fourierqk.reckoning.judges import VERDICTS, Finding, Shown
from fourierqk.reckoning.paper import paper, stated

__all__ = [
    "CLAIMS", "VERDICTS", "Claim", "Evidence", "Finding", "Gain", "NoRun", "Shown", "markdown", "paper",
    "reckon", "stated",
]  # fmt: skip
