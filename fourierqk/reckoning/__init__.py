"""The paper's claims, each judged by the recorded runs."""
from fourierqk.reckoning.claims import CLAIMS, Claim, markdown, paper, reckon
from fourierqk.reckoning.evidence import Evidence, Gain, NoRun
from fourierqk.reckoning.judges import VERDICTS, Finding

__all__ = ["CLAIMS", "VERDICTS", "Claim", "Evidence", "Finding", "Gain", "NoRun", "markdown", "paper", "reckon"]
