"""Recorded runs as evidence: what a system gains, with and without the future, and what it reads."""
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fourierqk.records import study
from fourierqk.report import BASE, compare

__all__ = ["Evidence", "Gain", "NoRun", "spearman"]

Runs = Mapping[str, list[dict[str, Any]]]  # by system, one a seed


class NoRun(ValueError):
    """The evidence has no run that could tell; the message says of what."""


@dataclass(frozen=True)
class Gain:
    """What a system's loss is above the baseline's, in nats per token, paired by seed: below 0 is better.

    low, high: with several seeds Student's 95 % interval over them; with one, four standard errors over windows to
    either side, of both losses as if they were independent. A single training has no more to say.
    """

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def side(self) -> str:
        """Where the whole interval lies: "lower", "higher", or "level" where it holds 0."""
        return "lower" if self.high < 0 else "higher" if self.low > 0 else "level"

    def __str__(self) -> str:
        if self.seeds == 1:
            return f"{self.mean:+.3f} (one seed, ± {self.high - self.mean:.3f})"
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@dataclass(frozen=True)
class Evidence:
    """The runs that decide: `seeds`, the main systems with several seeds each, and `once`, every other with one.

    Each study has base-dot runs of its own, of as many steps. `elsewhere`: runs on another text, for what is claimed of
    any text. Methods speak of the first two, and raise NoRun where a run is missing.
    """

    seeds: Runs
    once: Runs = field(default_factory=dict)
    elsewhere: Runs = field(default_factory=dict)

    @classmethod
    def recorded(cls) -> "Evidence":
        """What we ran on TinyShakespeare, and on verse."""
        return cls(study("shakespeare-small"), study("shakespeare-small-once"), study("verse-tiny"))

    def study_of(self, system: str) -> Runs:
        """The study that has a system, and base-dot to compare it with."""
        for runs in (self.seeds, self.once):
            if system in runs and BASE in runs:
                return runs
        raise NoRun(f"no recorded run of {system} beside one of {BASE}")

    def runs(self, system: str) -> list[dict[str, Any]]:
        return self.study_of(system)[system]

    def all(self) -> Iterable[dict[str, Any]]:
        """Every run of both studies."""
        return (r for part in (self.seeds, self.once) for runs in part.values() for r in runs)

    def gain(self, system: str, kind: str) -> Gain:
        """The loss of a kind ("ordered", "honest", ...) minus that of the baseline."""
        runs, base = self.runs(system), self.study_of(system)[BASE]
        d = compare(runs, base, kind)
        if d is None:
            raise NoRun(f"{system} and {BASE} share no seed: a paired difference needs one")
        if d["low"] is None:
            a, b = (r[0]["losses"][kind]["se"] for r in (runs, base))
            half = 4 * math.hypot(a, b)
            return Gain(d["mean"], d["mean"] - half, d["mean"] + half, 1)
        return Gain(d["mean"], d["low"], d["high"], len(d["values"]))

    def loss(self, system: str, kind: str) -> float:
        """Mean over seeds, in nats per token."""
        return mean(r["losses"][kind]["mean"] for r in self.runs(system))

    def seed_by_seed(self, systems: Sequence[str], kind: str) -> list[list[float]]:
        """The losses of some systems, a row for each seed that all of them have."""
        losses = [{r["seed"]: r["losses"][kind]["mean"] for r in self.runs(s)} for s in systems]
        shared = sorted(set.intersection(*(set(by_seed) for by_seed in losses)))
        if not shared:
            raise NoRun(f"{', '.join(systems)} share no seed")
        return [[by_seed[seed] for by_seed in losses] for seed in shared]

    def verdict(self, system: str) -> str:
        """What the audits of all seeds say; "mixed" where they differ."""
        found = {r["audit"]["verdict"] for r in self.runs(system)}
        return found.pop() if len(found) == 1 else "mixed"

    def safe_kind(self, system: str) -> str:
        """The most exact loss that the future cannot touch: the ordered one of a causal system, else the honest one."""
        return "ordered" if self.verdict(system) == "causal" else "honest"

    def owed(self, system: str) -> float:
        """Honest minus ordered loss, mean over seeds: what the reported loss owes to tokens after the predicted one."""
        return self.loss(system, "honest") - self.loss(system, "ordered")

    def coverage(self, system: str) -> float | None:
        """Bins that its filters pass at the end (`analysis.coverage`), mean over seeds, layers and heads.

        None for what has no filter along time.
        """
        values = [v for r in self.runs(system) for layer in r["filters"] for v in layer["coverage"]]
        return mean(values) if values else None

    def middle(self, system: str) -> float:
        """The loss in the middle third of the window minus the baseline's there, mean over the seeds of both."""

        def third(runs: list[dict[str, Any]]) -> float:
            return mean(
                nats
                for loss in (r["loss_by_position"] for r in runs)
                for nats in loss[len(loss) // 3 : 2 * len(loss) // 3]
            )

        return third(self.runs(system)) - third(self.study_of(system)[BASE])

    def leaking(self) -> list[str]:
        """The systems that the audit convicts."""
        return [s for s in {**self.seeds, **self.once} if self.verdict(s) == "leaks"]


def mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values)


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Rank correlation: Pearson's of the ranks, equal values sharing the mean of theirs. 0 where all are equal."""

    def centred(values: Sequence[float]) -> list[float]:
        below = [sum(v < u for v in values) - sum(v > u for v in values) for u in values]
        return [b / 2 for b in below]  # the rank above the mean rank

    a, b = centred(x), centred(y)
    scale = math.sqrt(sum(v * v for v in a) * sum(v * v for v in b))
    return sum(u * v for u, v in zip(a, b, strict=True)) / scale if scale else 0.0
