"""Records of runs: where ours lie, which runs they are of, and tables of them."""
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
)
from fourierqk.records.tables import by_seed, compare, rows, samples

__all__ = [
    "by_seed", "by_system", "compare", "folder", "leaf", "missing", "now", "provenance", "read_json",
    "read_tensors", "rows", "runs_in", "samples", "study", "sweep", "table", "write_atomic", "write_json",
    "write_tensors",
]  # fmt: skip
