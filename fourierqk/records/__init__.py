"""Records of runs: where ours lie, which runs they are of, and tables of them."""
from fourierqk.records import tables
from fourierqk.records.library import by_system, folder, leaf, missing, now, provenance, runs_in, study, table
from fourierqk.records.tables import BASE, by_seed, compare, markdown, plain, rows, samples, t_quantile, unlike

__all__ = [
    "BASE", "by_seed", "by_system", "compare", "folder", "leaf", "markdown", "missing", "now", "plain", "provenance",
    "rows", "runs_in", "samples", "study", "t_quantile", "table", "tables", "unlike",
]  # fmt: skip
