"""Records of runs: what made them, where ours lie, and which runs a folder holds."""
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from fourierqk.storage import read_json

__all__ = ["by_system", "folder", "leaf", "missing", "now", "provenance", "runs_in", "study", "table"]


def provenance() -> dict[str, Any]:
    """What made a record: versions, the commit where the library is run from its repository, the machine, the time."""
    root = Path(__file__).resolve().parents[2]
    git = ["git", "-C", str(root)]
    commit = changed = None
    if (root / ".git").exists():  # not the repository that an installed copy happens to lie in
        commit = _output([*git, "rev-parse", "HEAD"])
        changed = _output([*git, "status", "--porcelain", "--untracked-files=no"])
    return {
        "versions": {name: _version(name) for name in ("fourierqk", "torch", "numpy")},
        "python": platform.python_version(),
        "commit": commit,
        "uncommitted_changes": None if changed is None else bool(changed),
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "processor": _processor()},
        "written": now(),
    }


def now() -> str:
    """The time, in UTC, as a record has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _processor() -> str:
    """The name of the processor, or at least its family."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _output(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def folder(name: str) -> Path:
    """A folder of records of ours: in book/records of the repository, or where the installed package carries them."""
    here = Path(__file__).resolve().parents[1]
    places = [p for p in (here / "_records", here.parent / "book" / "records") if p.is_dir()]
    found = next((p / name for p in places if (p / name).is_dir()), None)
    if found is None:
        known = sorted(d.name for p in places for d in p.iterdir() if d.is_dir())
        raise FileNotFoundError(f"no recorded study {name!r}: there are {', '.join(known) or 'none'}")
    return found


def study(name: str) -> dict[str, list[dict[str, Any]]]:
    """The recorded runs of a study of ours, by system: ``study("verse-tiny")["base-dot"][seed]``.

    FileNotFoundError lists the studies that exist; ValueError names a record that cannot be read.
    """
    records, bad = runs_in(folder(name))
    if bad:
        raise ValueError(f"{name!r} is no study: {'; '.join(bad)}")
    return by_system(records)


def runs_in(place: str | Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The records of runs in a folder, by system and seed, and what is wrong with those that cannot be read.

    FileNotFoundError where there is no such folder.
    """
    place, records, bad, seen = Path(place), [], [], {}
    if not place.is_dir():
        raise FileNotFoundError(f"there is no folder {place}")
    for path in sorted(place.glob("*.json")):
        try:
            record = read_json(path)
            if lacks := missing(record):
                raise ValueError(f"{path} is no record of a run: it lacks {', '.join(lacks)}")
            run = json.dumps([record.get(k) for k in ("system", "seed", "preset", "corpus", "model", "train")])
            if run in seen:
                raise ValueError(f"{path} is of the run that {seen[run].name} is of: move one of them away")
            seen[run] = path
            records.append(record)
        except (OSError, ValueError) as e:
            bad.append(str(e))
    return sorted(records, key=lambda r: (r["system"], r["seed"])), bad


def missing(record: Mapping[str, Any]) -> list[str]:
    """What a record would need to be one of a run, and has not, or not of the right kind."""
    number = int | float
    kinds: dict[str, Any] = {"system": str, "seed": int, "corpus.name": str, "audit.verdict": str, "train.steps": int}
    kinds |= dict.fromkeys(("model.n_layer", "model.n_embd", "model.block_size"), int)
    kinds |= {"history.tokens_per_second": number, "losses.ordered": dict, "losses.honest": dict}
    losses = record.get("losses")
    for kind in losses if isinstance(losses, dict) else ():
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


def table(runs: Mapping[str, list[dict[str, Any]]]) -> str:
    """A study as a Markdown table, a row a system: losses in nats per token, mean and range over its seeds.

    The floor is left out where it is unknown: only `verse` has one. `report.markdown` shows more.
    """
    floor = all(r["losses"].get("floor") for records in runs.values() for r in records)

    def spread(records: list[dict[str, Any]], loss: str) -> str:
        values = [r["losses"][loss]["mean"] for r in records]
        return f"{sum(values) / len(values):.2f} ({min(values):.2f} to {max(values):.2f})"

    def row(system: str, records: list[dict[str, Any]]) -> str:
        below = [f"{sum(r['losses']['floor']['below'] for r in records)} of {len(records)}"] if floor else []
        verdict = "/".join(sorted({r["audit"]["verdict"] for r in records}))
        losses = [spread(records, loss) for loss in ("ordered", "honest")]
        return f"| {' | '.join([f'`{system}`', *losses, *below, verdict])} |"

    names = ["system", "ordered loss", "honest loss", *["runs below the floor"] * floor, "audit"]
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    return "\n".join([head, *(row(*item) for item in runs.items())])
