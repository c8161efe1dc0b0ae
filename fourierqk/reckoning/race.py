"""The race: each entrant at its best learning rate, who goes on by the protocol, and what one is worth beside another.

The rules are those of the protocol, a page of the book that is older than the records.
"""
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from fourierqk.records import check_once, contrast, folder, holm, runs_in
from fourierqk.storage import read_json

__all__ = [
    "BASELINES", "EQUIVALENT", "FIELD", "OURS", "Curve", "compared", "curves", "finalists", "outcomes", "predictions",
    "raced",
]  # fmt: skip

BASELINES = ("base-dot", "base-rope")
FIELD = ("short-conv", "short-conv-rope")  # the field's own method that the main stage has
OURS = ("prefix-", "late-fourier", "dealt-", "taps-resonator", "sliding-", "causal-morlet")  # a frequency or a scale
EQUIVALENT = 0.02  # nats per token


def raced(stage: str) -> list[dict[str, Any]]:
    """The recorded runs of a stage, "calibrate" say. ValueError where a record cannot be read, or is there twice."""
    records, bad = runs_in(folder(f"race-{stage}"))
    if bad:
        raise ValueError("; ".join(bad))
    check_once(records)
    return records


def predictions() -> list[dict[str, str]]:
    """What was expected, written before the first run: an id and a sentence each."""
    found: list[dict[str, str]] = read_json(folder("race-predictions") / "predictions.json")["predictions"]
    return found


@dataclass(frozen=True)
class Curve:
    """The losses of one system on the text that chooses, by setting: nats per token, one a seed.

    losses: a setting is a tuple of values, of those names by which `curves` was asked.
    """

    system: str
    losses: Mapping[tuple[float, ...], tuple[float, ...]]

    @property
    def best(self) -> tuple[float, ...]:
        """The setting of the lowest mean loss."""
        return min(self.losses, key=self.mean)

    @property
    def loss(self) -> float:
        """The mean loss in the best setting."""
        return self.mean(self.best)

    @property
    def at_edge(self) -> bool:
        """Whether the best setting is the lowest or the highest that was tried, so that a better one may lie beyond."""
        return self.best in (min(self.losses), max(self.losses))

    def mean(self, setting: tuple[float, ...]) -> float:
        """The mean loss over the seeds of a setting."""
        return fmean(self.losses[setting])


def curves(records: Iterable[Mapping[str, Any]], names: tuple[str, ...] = ("lr",)) -> dict[str, Curve]:
    """The losses of every system by setting; names: of the fields of training or model that tell settings apart."""
    found: dict[str, dict[tuple[float, ...], list[float]]] = {}
    for r in records:
        known = {**r["model"], **r["train"]}
        setting = tuple(known[name] for name in names)
        found.setdefault(r["system"], {}).setdefault(setting, []).append(r["losses"]["ordered"]["mean"])
    return {s: Curve(s, {k: tuple(v) for k, v in sorted(by.items())}) for s, by in found.items()}


def finalists(screened: Mapping[str, Curve]) -> tuple[str, ...]:
    """The systems of the main stage, by the rule of the protocol: baselines, the field's, best of ours, partner."""
    ranked = sorted((c for name, c in screened.items() if name.startswith(OURS)), key=lambda c: c.loss)
    plain = [c.system for c in ranked if not c.system.endswith("-rope")]
    turned = [c.system for c in ranked if c.system.endswith("-rope")]
    best = [*plain[:2], *turned[:1]]
    return tuple(dict.fromkeys([*BASELINES, *FIELD, *best, *(_partner(s, screened) for s in turned[:1])]))


def _partner(system: str, screened: Mapping[str, Curve]) -> str:
    """The same filter without rotary positions."""
    plain = system.removesuffix("-rope")
    return next(name for name in (plain, f"{plain}-qk") if name in screened)


def compared(
    runs: Mapping[str, list[dict[str, Any]]], pairs: Iterable[tuple[str, str]]
) -> dict[str, dict[str, Any]]:
    """Differences on the test text by name, "a - b", each with whether Holm's procedure leaves it.

    runs: by system. pairs: of systems, the first minus the second. equivalent: the whole interval within `EQUIVALENT`.
    """
    found = {f"{a} - {b}": contrast((1, runs[a]), (-1, runs[b])) for a, b in pairs}
    known = {name: d for name, d in found.items() if d is not None}
    left = holm({name: d["p"] for name, d in known.items() if d["p"] is not None})
    return {
        name: d | {"holds": name in left, "equivalent": d["low"] is not None and max(-d["low"], d["high"]) < EQUIVALENT}
        for name, d in known.items()
    }


def outcomes(calibrated: Mapping[str, Curve], screened: Mapping[str, Curve], gate: float) -> dict[str, str]:
    """What came out of each prediction that the first two stages decide, by its id: "as predicted", or not, and why.

    calibrated: by learning rate and dropout. gate: the ordered loss of base-dot over both halves, in its best cell.
    """
    dot, rope = (calibrated[name] for name in BASELINES)
    loss = {name: curve.loss - screened["base-dot"].loss for name, curve in screened.items()}
    best = min((name for name in loss if not name.endswith("-rope")), key=lambda name: loss[name])
    rate, dropout = dot.best
    return {
        "P1": _said(gate <= 1.70 and dot.best == (0.01, 0.0), f"{gate:.3f} nats at {rate:g}, dropout {dropout:g}"),
        "P2": _said(rope.loss - dot.loss <= -0.04, f"{rope.loss - dot.loss:+.3f} nats"),
        "P3": _said(best in ("short-conv", "kv-shift", "taps-resonator"), f"{best} is best, {loss[best]:+.3f} nats"),
        "P4": _said(abs(loss["one-tap"]) <= 0.02, f"{loss['one-tap']:+.3f} nats"),
        "P5": _said(abs(loss["prefix-fourier-qk"]) <= 0.03, f"{loss['prefix-fourier-qk']:+.3f} nats"),
    }


def _said(right: bool, how: str) -> str:
    return f"{'as predicted' if right else '**not** as predicted'}: {how}"
