"""Small models that are broken on purpose, and rival tests for what is wrong with them."""
from fourierqk.specimens import rivals
from fourierqk.specimens.models import SPECIMENS, Attend, Beside, Specimen, causal_mask, convolved, peek, specimen

__all__ = ["SPECIMENS", "Attend", "Beside", "Specimen", "convolved", "causal_mask", "peek", "rivals", "specimen"]
