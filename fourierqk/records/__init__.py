"""Records of runs: where ours lie, which runs they are of, and tables of them."""
from fourierqk.records import tables
from fourierqk.records.library import (
    by_system,
    folder,
    leaf,
    missing,
    now,
    provenance,
    read_json,
    read_tensors,
    runs_in,
    study,
    sweep,
    table,
    write_atomic,
    write_json,
    write_tensors,
)  # fmt: skip
from fourierqk.records.tables import BASE, by_seed, compare, plain, rows, samples, t_quantile, unlike

__all__ = [
    "BASE", "by_seed", "by_system", "compare", "folder", "leaf", "missing", "now", "plain", "provenance",
    "read_json", "read_tensors", "rows", "runs_in", "samples", "study", "sweep", "t_quantile", "table", "tables",
    "unlike", "write_atomic", "write_json", "write_tensors",
]  # fmt: skip
