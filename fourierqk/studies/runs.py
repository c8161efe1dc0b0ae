"""Carry out a run: train, measure, write its record, and do none of it twice.

A folder holds a study. NAME.json is the record of a run, written when it ends. runs/NAME has its checkpoint, from which
it goes on after a stop, and in the end its weights. Several processes, on one machine or on several that share the
disk, may work on one folder: each run is locked by whoever does it.
"""
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any, cast

import torch
from torch import nn

from fourierqk.data import Corpus
from fourierqk.records import SCHEMA, differences, identity, missing, now, provenance
from fourierqk.storage import hold, read_json, sweep, write_json
from fourierqk.studies.design import Run, open_corpus
from fourierqk.studies.measurement import measure
from fourierqk.training import RECORD, out_of_memory, pick_device, train
from fourierqk.zoo import build

__all__ = ["carry_out", "recorded", "run_in_study", "workplace"]

LESS = "take a smaller --batch, --length or --preset, or fewer --jobs at a time"  # where memory runs out


def carry_out(
    run: Run, corpus: Corpus, out: str | Path, resume: bool = True, compiled: bool = False, progress: bool | None = None
) -> dict[str, Any]:
    """Train and measure one run in a folder of its own -> its record, also written to `out`/record.json.

    What is done already is not done again. compiled: train through torch.compile. Errors: those of `train`.
    """
    made_by = provenance()  # the code that trains, whatever is committed meanwhile
    run.check(corpus)
    pick_device(run.size.train.device)
    torch.manual_seed(run.seed)
    model = build(run.system, run.size.gpt(len(corpus.vocab)))
    with hold(out):
        how = cast(nn.Module, torch.compile(model)) if compiled else None
        history = train(model, corpus, run.size.train, out, resume=resume, progress=progress, compiled=how)
        record = _measured(Path(out) / RECORD, asdict(history))
        if record is None:
            sweep(Path(out) / RECORD)
            record = run.heading(corpus) | measure(model, corpus, history) | made_by | {"written": now()}
            write_json(Path(out) / RECORD, record)
    return record


def _measured(path: Path, history: dict[str, Any]) -> dict[str, Any] | None:
    """The record of this very training, if it was measured before; a torn or an older one is measured again."""
    try:
        record = read_json(path)
    except (FileNotFoundError, ValueError):
        return None
    return record if (record.get("schema"), record.get("history")) == (SCHEMA, history) else None


def workplace(folder: str | Path, run: Run) -> Path:
    """Where a study keeps the checkpoint of a run."""
    return Path(folder) / "runs" / run.name


def record_path(folder: str | Path, run: Run) -> Path:
    """Where a study keeps the record of a run."""
    return Path(folder) / f"{run.name}.json"


def recorded(folder: str | Path, run: Run, corpus: Corpus) -> dict[str, Any] | None:
    """The record of a run in the folder of a study; None where it is still to be made.

    ValueError where the file is torn, of another version, or of another run; it says which.
    """
    path = record_path(folder, run)
    if not path.exists():
        return None
    way_out = "Move it away and repeat, or take another folder"
    try:
        record = read_json(path)
    except ValueError as e:
        raise ValueError(f"{e}. {way_out}") from None
    if (version := record.get("schema")) != SCHEMA:
        raise ValueError(f"{path} is a record of version {version}, this is version {SCHEMA}. {way_out}")
    if lacks := missing(record):
        raise ValueError(f"{path} is no record of a run: it lacks {', '.join(lacks)}. {way_out}")
    if differ := differences(identity(record), identity(run.heading(corpus))):
        raise ValueError(f"{path} is of another run: {'; '.join(differ)}. {way_out}")
    return record


def run_in_study(folder: str | Path, run: Run, compiled: bool = False) -> dict[str, Any]:
    """Carry out one run of a study, unless its record is there -> its record, written to the study's folder.

    Busy where another process is at it; other errors are those of `train`, `recorded` and `open_corpus`.
    """
    corpus, out = open_corpus(run.corpus), workplace(folder, run)
    with hold(out):
        sweep(record_path(folder, run))
        record = recorded(folder, run, corpus)
        if record is None:
            record = carry_out(run, corpus, out, compiled=compiled, progress=False)
            write_json(record_path(folder, run), record)
    return record


def reason(error: Exception) -> str:
    """Why a run failed, in a line."""
    said = " ".join(str(getattr(error, "strerror", None) or error).split())
    if out_of_memory(error):
        return f"out of memory: {LESS} ({shorten(said, 120)})"
    return said if isinstance(error, ValueError | OSError | FloatingPointError) else f"{type(error).__name__}: {said}"
