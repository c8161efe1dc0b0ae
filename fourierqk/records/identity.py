"""Which run a record is of, and which records may stand in one table: the one answer for whoever asks."""
import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["INCIDENTAL", "SCHEMA", "check_once", "differences", "identity", "setting", "unlike"]

SCHEMA = 1  # the version of a record: counts incompatible changes; records made before it was written carry none
INCIDENTAL = ("device",)  # of a training: where it ran, which makes no other run of it
UNSAID = {"beta2": 0.95, "lr_end": 0.0}  # of a training, in records made before there was a choice


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


def unlike(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    """Why two records cannot stand in one table: "version", "text", "size" or "training"; None where they can."""
    here, there = setting(a), setting(b)
    return next((key for key in here if here[key] != there[key]), None)


def check_once(records: Iterable[Mapping[str, Any]]) -> None:
    """ValueError where two records are of one run: one would be counted as another seed, or dropped in silence."""
    seen = set()
    for record in records:
        run = run_key(record)
        if run in seen:
            raise ValueError(f"two records of {record['system']}, seed {record['seed']}, in one study: move one away")
        seen.add(run)


def run_key(record: Mapping[str, Any]) -> str:
    """The identity of a record as a text: equal for two records of one run."""
    return json.dumps(identity(record), sort_keys=True)


def differences(there: Any, here: Any, name: str = "") -> list[str]:
    """What differs between two nested records, in words."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = dict.fromkeys([*there, *here])
        return [d for k in keys for d in differences(there.get(k), here.get(k), f"{name}.{k}".lstrip("."))]
    return [] if there == here else [f"{name} is {there} there, {here} here"]
