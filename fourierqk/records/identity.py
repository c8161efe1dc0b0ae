"""Which run a record is of, and which records may stand in one table: the one answer for whoever asks."""
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["INCIDENTAL", "SCHEMA", "Record", "check_once", "differences", "identity", "named", "setting", "unlike"]

SCHEMA = 1  # the version of a record: counts incompatible changes; records made before it was written carry none
INCIDENTAL = ("device",)  # of a training: where it ran, which makes no other run of it
UNSAID = {"beta2": 0.95, "lr_end": 0.0}  # of a training, in records made before there was a choice


class Record(dict[str, Any]):
    """A record that was read from a file; the path is no part of it."""

    def __init__(self, held: Mapping[str, Any], path: Path) -> None:
        super().__init__(held)
        self.path = path


def setting(record: Mapping[str, Any]) -> dict[str, Any]:
    """What all records of one table share: their version, text, size, and training but for seed and device."""
    text, train = record["corpus"], record["train"]
    return {
        "version": record.get("schema"),
        "text": {"name": text["name"], "sha256": text.get("sha256")},
        "size": {"preset": record.get("preset"), **record["model"]},
        "training": UNSAID | {k: v for k, v in train.items() if k not in ("seed", *INCIDENTAL)},
    }


def identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """Which run a record is of: system, seed and setting. Two records of one run are copies, or one was made again."""
    return {"system": record["system"], "seed": record["seed"], **setting(record)}


def unlike(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Why two records cannot stand in one table: what they differ in, {"training.lr": (0.01, 0.003)}; {} if they can.

    Of another text its name says enough, unless both have one name; then twelve digits of its fingerprint do.
    """
    found = {name: (here, there) for name, here, there in _apart(setting(a), setting(b))}
    here, there = found.pop("text.sha256", ("", ""))
    if here != there and "text.name" not in found:
        found["text.sha256"] = str(here)[:12], str(there)[:12]
    return found


def named(record: Mapping[str, Any]) -> str:
    """A record in a message: "base-dot, seed 0 (runs/b/base-dot-s0.json)"."""
    of = f"{record.get('system')}, seed {record['seed']}"
    return f"{of} ({record.path})" if isinstance(record, Record) else of


def check_once(records: Iterable[Mapping[str, Any]]) -> None:
    """ValueError where two records are of one run: one would be counted as another seed, or dropped in silence."""
    seen: dict[str, Mapping[str, Any]] = {}
    for record in records:
        run = run_key(record)
        if run in seen:
            both = f"{named(seen[run])}, and {named(record)}"
            raise ValueError(f"two records of one run in one study, {both}: move one away")
        seen[run] = record


def run_key(record: Mapping[str, Any]) -> str:
    """The identity of a record as a text: equal for two records of one run."""
    return json.dumps(identity(record), sort_keys=True)


def differences(there: Any, here: Any) -> list[str]:
    """What differs between two nested records, in words."""
    return [f"{name} is {a} there, {b} here" for name, a, b in _apart(there, here)]


def _apart(a: Any, b: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """What differs between two nested records: where, and both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            yield from _apart(a.get(key), b.get(key), f"{name}.{key}".lstrip("."))
    elif a != b:
        yield name, a, b
