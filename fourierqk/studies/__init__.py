"""Studies: many systems, many seeds, one record a run."""
from fourierqk.studies.cluster import conduct_on_ray
from fourierqk.studies.design import STUDIES, Run, Study, find_preset, find_study, open_corpus
from fourierqk.studies.measurement import measure, summary
from fourierqk.studies.pool import conduct
from fourierqk.studies.runs import LESS, carry_out, recorded, run_in_study, workplace

__all__ = [
    "LESS", "STUDIES", "Run", "Study", "carry_out", "conduct", "conduct_on_ray", "find_preset", "find_study", "measure",
    "open_corpus", "recorded", "run_in_study", "summary", "workplace",
]  # fmt: skip
