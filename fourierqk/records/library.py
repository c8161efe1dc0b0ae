"""Files that are whole or absent: JSON records and safetensors checkpoints, written beside their place and moved in."""
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from torch import Tensor

__all__ = [
    "by_system", "folder", "leaf", "missing", "now", "provenance", "read_json", "read_tensors", "runs_in", "study",
    "sweep", "table", "write_atomic", "write_json", "write_tensors",
]  # fmt: skip


def write_atomic(path: str | Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, finds the old file or the new one, never a part.

    OSError names the path and says what failed (no such folder, no permission, disk full); the old file is then intact.
    """
    path = Path(path)
    temp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temp, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())  # the bytes reach the disk before the name does
        os.replace(temp, path)
    except OSError as e:
        raise OSError(e.errno, f"cannot write {path}: {e.strerror}. What was there before is intact") from e
    finally:
        try:
            temp.unlink(missing_ok=True)
        except OSError:  # the folder cannot be reached at all: the first error says so
            pass


def sweep(path: str | Path) -> None:
    """Remove what writers of a file left beside it when they were killed. Only for who alone may write it now."""
    path = Path(path)
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        left.unlink(missing_ok=True)


def write_json(path: str | Path, record: Mapping[str, Any]) -> None:
    """Write a record as indented JSON, atomically. ValueError where it holds NaN or infinity, unknown to JSON."""
    write_atomic(path, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a record. FileNotFoundError where there is none, ValueError where it is no JSON object, or has a NaN."""

    def refuse(constant: str) -> None:
        raise ValueError(f"it holds {constant}")

    try:
        record = json.loads(Path(path).read_bytes(), parse_constant=refuse)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"{path} is not JSON ({e}): it is torn or not a record") from e
    if not isinstance(record, dict):
        raise ValueError(f"{path} holds a JSON {type(record).__name__}, a record is an object")
    return record


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and what is to be known about them as one safetensors file, atomically."""
    from safetensors.torch import save

    own = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}  # tied weights are stored twice
    write_atomic(path, save(own, {"fourierqk": json.dumps(about, allow_nan=False)}))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_tensors` wrote -> (tensors, about).

    FileNotFoundError where there is none, ValueError where the file is torn or of another maker.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there")
    try:
        with safe_open(str(path), "pt") as f:
            about = json.loads((f.metadata() or {})["fourierqk"])
            return {name: f.get_tensor(name) for name in f.keys()}, about
    except KeyError:
        raise ValueError(f"{path} is a safetensors file, but not one of fourierqk's: move it away") from None
    except (SafetensorError, ValueError) as e:
        raise ValueError(f"{path} is torn or not a safetensors file ({e}): move it away") from e


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
