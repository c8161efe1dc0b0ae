"""Studies: many systems, many seeds, one record a run."""
from fourierqk.studies.cluster import conduct_on_ray
from fourierqk.studies.design import STUDIES, Run, Study, open_corpus, preset, study
from fourierqk.studies.measurement import measure, summary
from fourierqk.studies.pool import conduct
from fourierqk.studies.runs import carry_out, recorded, run_in_study, workplace

__all__ = [
    "STUDIES", "Run", "Study", "carry_out", "conduct", "conduct_on_ray", "measure", "open_corpus",
    "preset", "recorded", "run_in_study", "study", "summary", "workplace",
]  # fmt: skip
