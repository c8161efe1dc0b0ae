"""The recorded runs: where ours lie, and which runs a folder holds."""
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fourierqk.checks import unknown_name
from fourierqk.records.identity import Record, run_key
from fourierqk.storage import read_json

__all__ = ["by_system", "folder", "leaf", "missing", "ngram_loss", "runs_in", "study"]

FILES = ("*.json", "*/record.json", "*/*-s[0-9]*.json")  # of a study or a run, of runs, and of studies in a folder


def folder(name: str) -> Path:
    """A folder of records of ours: in book/records of the repository, or where the installed package carries them."""
    here = Path(__file__).resolve().parents[1]
    places = [p for p in (here / "_records", here.parent / "book" / "records") if p.is_dir()]
    found = next((p / name for p in places if (p / name).is_dir()), None)
    if found is None:
        known = sorted(d.name for p in places for d in p.iterdir() if d.is_dir())
        raise FileNotFoundError(unknown_name("recorded study", name, known))
    return found


def study(name: str) -> dict[str, list[dict[str, Any]]]:
    """The recorded runs of a study of ours, by system: ``study("verse-tiny")["base-dot"][seed]``.

    FileNotFoundError lists the studies that exist; ValueError names a record that cannot be read.
    """
    records, bad = runs_in(folder(name))
    if bad:
        raise ValueError(f"{name!r} is no study: {'; '.join(bad)}")
    return by_system(records)


def ngram_loss(sha256: str | None, order: int = 3) -> float | None:
    """The ordered loss of the n-gram table (`fourierqk.ngram`) that is recorded for a text; None where none is.

    sha256: of the corpus, as its runs have it. Nats per token.
    """
    tables = (read_json(path) for path in sorted(folder("ngrams").glob("*.json")))
    found = (t["losses"][str(order)]["ordered"]["mean"] for t in tables if t["corpus"]["sha256"] == sha256)
    return next(found, None)


def runs_in(*places: str | Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of runs in folders, by system and seed, and what is wrong with those that are left out.

    Each folder is that of a study, or of a single run, or holds such folders. Left out is what cannot be read, and a
    second record of a run that is there already. FileNotFoundError where there is no such folder.
    """
    records: list[dict[str, Any]] = []
    bad: list[str] = []
    seen: dict[str, Path] = {}
    for path in _record_files(map(Path, places)):
        try:
            record = Record(read_json(path), path)
            if lacks := missing(record):
                raise ValueError(f"{path} is no record of a run: it lacks {', '.join(lacks)}")
            run = run_key(record)
            if run in seen:
                raise ValueError(f"{path} is of the run that {seen[run]} is of: move one of them away")
            seen[run] = path
            records.append(record)
        except (OSError, ValueError) as e:
            bad.append(str(e))
    return sorted(records, key=lambda r: (r["system"], r["seed"])), bad


def _record_files(places: Iterable[Path]) -> list[Path]:
    """The files in these folders that records may be in, each once."""
    found: dict[Path, Path] = {}
    for place in places:
        if not place.is_dir():
            raise FileNotFoundError(f"there is no folder {place}")
        for pattern in FILES:
            for path in sorted(place.glob(pattern)):
                found.setdefault(path.resolve(), path)
    return [*found.values()]


def missing(record: Mapping[str, Any]) -> list[str]:
    """What a record would need to be one of a run, and has not, or not of the right kind."""
    number = int | float
    kinds: dict[str, Any] = {"system": str, "seed": int, "corpus.name": str, "audit.verdict": str, "train.steps": int}
    kinds |= dict.fromkeys(("model.n_layer", "model.n_embd", "model.block_size"), int)
    kinds |= {"history.tokens_per_second": number, "losses.ordered": dict, "losses.honest": dict}
    losses = record.get("losses")
    losses = losses if isinstance(losses, dict) else {}
    for kind in losses:
        if kind != "floor":
            kinds |= {f"losses.{kind}.mean": number, f"losses.{kind}.se": number}
        elif losses["floor"] is not None:
            kinds["losses.floor.below"] = bool
    return [name for name, kind in kinds.items() if not isinstance(leaf(record, name), kind)]


def leaf(record: Any, name: str) -> Any:
    """What stands in a record under names with points between them; None where nothing does."""
    for key in name.split("."):
        record = record.get(key) if isinstance(record, Mapping) else None
    return record


def by_system(records: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Records of runs, grouped by their systems; the order stays."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        runs.setdefault(record["system"], []).append(record)
    return runs
