"""Records of runs: which run each is of, where ours lie, what made them, and tables of them."""
from fourierqk.records.identity import (
    INCIDENTAL,
    SCHEMA,
    Record,
    check_once,
    differences,
    identity,
    named,
    setting,
    unlike,
)  # fmt: skip
from fourierqk.records.library import by_system, folder, leaf, missing, ngram_loss, runs_in, study
from fourierqk.records.provenance import now, provenance
from fourierqk.records.statistics import FEW_WINDOWS, Interval, compare, contrast, holm, interval, t_quantile
from fourierqk.records.tables import BASE, by_seed, markdown, plain, rows, samples, table

__all__ = [
    "BASE", "FEW_WINDOWS", "INCIDENTAL", "SCHEMA", "Interval", "Record", "by_seed", "by_system", "check_once",
    "compare", "contrast", "differences", "folder", "holm", "identity", "interval", "leaf", "markdown", "missing",
    "named", "ngram_loss", "now", "plain", "provenance", "rows", "runs_in", "samples", "setting", "study", "t_quantile",
    "table", "unlike",
]  # fmt: skip
