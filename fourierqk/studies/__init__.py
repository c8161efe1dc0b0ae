"""Studies: many systems, many seeds, one record a run."""
