"""Recorded runs as evidence: what a system gains, with and without the future, and what it reads."""
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance
from typing import Any

from fourierqk.records import BASE, FEW_WINDOWS, check_once, compare, interval, leaf, named, ngram_loss, study, unlike

__all__ = ["Evidence", "Gain", "NoRun", "blank", "spearman"]

WORTH = 0.05  # nats per token: a gain below this is none, beside gains of 0.4 to 1.2 that are claimed
ALIASES = {"collapse-real": "fourier-qk"}  # one filter by two names, trained in both studies
ALWAYS = {"blank", "short"}  # the doubts that void every verdict which losses decide
# what claims are judged by, beside what makes a record one of a run (`records.missing`)
JUDGED = {"filters": list, "loss_by_position": list, "losses.shuffled.gap": int | float, "history.frequencies": dict}

Runs = Mapping[str, list[dict[str, Any]]]  # by system, one a seed


class NoRun(ValueError):
    """The evidence has no run that could tell; the message says of what."""


@dataclass(frozen=True)
class Gain:
    """How much higher one system's loss is than another's, in nats per token, paired by seed: below 0 is better.

    low, high, p: 95 % interval of the errors over seeds and over windows together, and the chance of a mean so far
    from 0 (`records.interval`). Where there is one seed, the spread over seeds is that of the systems that have
    several; where no system has, nothing bounds it: the interval is infinite.
    """

    mean: float
    low: float
    high: float
    seeds: int
    p: float = 1.0

    @property
    def side(self) -> str:
        """Where the whole interval lies: "lower", "higher", or "level" where it holds 0."""
        return "lower" if self.high < 0 else "higher" if self.low > 0 else "level"

    @property
    def counts(self) -> bool:
        """Whether it is a gain beyond chance, and large enough to matter."""
        return self.high < 0 and self.mean <= -WORTH

    @property
    def excluded(self) -> bool:
        """Whether the interval leaves no room for a gain that would matter."""
        return self.low > -WORTH

    def __neg__(self) -> "Gain":
        """How much higher the other system's loss is."""
        return Gain(-self.mean, -self.high, -self.low, self.seeds, self.p)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"{self.mean:+.3f} (one seed, no interval)"
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f}{', one seed' * (self.seeds == 1)})"


@dataclass(frozen=True)
class Evidence:
    """The runs that decide: `seeds`, the main systems with several seeds each, and `once`, every other with one.

    Each study is of one text, size and training, and has base-dot runs of its own. `elsewhere`: runs on another text,
    for what is claimed of any text; the methods speak of the first two, and raise NoRun where a run is missing.
    ValueError where a study mixes texts or sizes, has a run twice, or a loss that is no number.
    """

    seeds: Runs
    once: Runs = field(default_factory=dict)
    elsewhere: Runs = field(default_factory=dict)

    def __post_init__(self) -> None:
        for runs in (self.seeds, self.once, self.elsewhere):
            _check([r for of in runs.values() for r in of])

    @classmethod
    def recorded(cls) -> "Evidence":
        """What we ran on TinyShakespeare, and on verse."""
        return cls(study("shakespeare-small"), study("shakespeare-small-once"), study("verse-tiny"))

    @property
    def systems(self) -> list[str]:
        """Every system with a run in one of the two studies."""
        return [*{**self.seeds, **self.once}]

    @property
    def text(self) -> str:
        """The name of the text of the first study."""
        return next((r["corpus"]["name"] for r in self.all()), "no text")

    def runs(self, system: str) -> list[dict[str, Any]]:
        """The runs of a system, from the first study that has any."""
        for runs in (self.seeds, self.once):
            if system in runs:
                return runs[system]
        raise NoRun(f"no recorded run of {system}")

    def all(self) -> Iterable[dict[str, Any]]:
        """Every run of both studies."""
        return (r for part in (self.seeds, self.once) for runs in part.values() for r in runs)

    def pair(self, system: str, other: str = BASE) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The runs of two systems from one study, of the seeds that both have."""
        for runs in (self.seeds, self.once):
            if system in runs and other in runs:
                seeds = {r["seed"] for r in runs[system]} & {r["seed"] for r in runs[other]}
                if not seeds:
                    raise NoRun(f"{system} and {other} share no seed: a paired difference needs one")
                ours, theirs = ([r for r in runs[s] if r["seed"] in seeds] for s in (system, other))
                return ours, theirs
        raise NoRun(f"no recorded run of {system} beside one of {other}")

    def gain(self, system: str, kind: str, other: str = BASE) -> Gain:
        """The loss of a kind ("ordered", "honest", ...) minus that of the baseline, or of another system."""
        d: Any = compare(*self.pair(system, other), kind)  # not None: they share a seed
        if d["low"] is None:
            d |= self._of_one_seed(d, kind)
        return Gain(d["mean"], d["low"], d["high"], len(d["values"]), d["p"])

    def _of_one_seed(self, d: dict[str, Any], kind: str) -> dict[str, float]:
        """The interval of a single difference, by the spread that systems with several seeds have about their means."""
        base = self.seeds.get(BASE, [])
        found = [compare(runs, base, kind) for s, runs in self.seeds.items() if s != BASE]
        known = [c["values"] for c in found if c and len(c["values"]) > 1]
        df = sum(len(values) - 1 for values in known)
        if not df:
            return {"low": -math.inf, "high": math.inf, "p": 1.0}
        spread = math.sqrt(sum(variance(values) * (len(values) - 1) for values in known) / df)
        return interval(d["mean"], spread, df, d["windows_se"])._asdict()

    def loss(self, system: str, kind: str) -> float:
        """Mean over seeds, in nats per token."""
        return fmean(r["losses"][kind]["mean"] for r in self.runs(system))

    @property
    def room(self) -> float:
        """What the baseline leaves to gain: its ordered loss above the text's entropy rate; infinite if not known."""
        known = [r["losses"]["ordered"]["mean"] - r["corpus"]["entropy_rate"]
                 for r in self.runs(BASE) if r["corpus"].get("entropy_rate")]  # fmt: skip
        return fmean(known) if known else math.inf

    def doubts(self, system: str) -> dict[str, str]:
        """What keeps a difference from the baseline from telling much, in words, by what it is.

        "untrained": the baseline predicts no better than a table of three-token counts: to end below it is no gain.
        "idle": comparing tokens is worth less than 2 WORTH to the baseline (`dc` cannot compare any): neither a gain
        nor its absence tells. "full": so little is left above the text's entropy that no gain has room. And two that
        bear on whatever losses tell, `ALWAYS`. "blank": the baseline predicts no better than counts of single tokens.
        "short": the text holds so few windows side by side that no interval is to be believed.
        """
        base = self.pair(system)[1]
        loss, table = _ordered(base), ngram_loss(leaf(base[0], "corpus.sha256"))
        study = next(runs for runs in (self.seeds, self.once) if base[0] in runs.get(BASE, ()))
        found = {}
        if table is not None and loss >= table:
            found["untrained"] = f"the baseline ends at {loss:.2f}, a table of three-token counts at {table:.2f}"
        if blank(base):
            found["blank"] = f"the baseline ends at {loss:.2f}, counts of single tokens at {_unigram(base):.2f}"
        if (room := leaf(base[0], "losses.ordered.side_by_side")) is not None and room < FEW_WINDOWS:
            found["short"] = f"the text holds {room} windows side by side, too few for an interval"
        if "dc" in study and (worth := _ordered(study["dc"]) - loss) < 2 * WORTH:
            found["idle"] = f"comparing tokens is worth {worth:.2f} nats to the baseline"
        if self.room < 2 * WORTH:
            found["full"] = f"{self.room:.2f} nats are left to gain"
        return found

    def verdict(self, system: str) -> str:
        """What the audits of all seeds say; "mixed" where they differ."""
        found = {r["audit"]["verdict"] for r in self.runs(system)}
        return found.pop() if len(found) == 1 else "mixed"

    def safe_kind(self, system: str) -> str:
        """The most exact loss that the future cannot touch: the ordered one of a causal system, else the honest one."""
        return "ordered" if self.verdict(system) == "causal" else "honest"

    def dependence(self, system: str) -> float:
        """Honest minus ordered loss, mean over seeds: how much the ordered loss depends on the future.

        The sum of what the system gains where the future can be heard and of what it loses where it is missing, both
        against the baseline (`gain`), and of what the baseline's own two losses differ by: luck of the windows.
        """
        return self.loss(system, "honest") - self.loss(system, "ordered")

    def coverage(self, system: str) -> float | None:
        """Bins that its filters pass at the end (`analysis.coverage`), mean over seeds, layers and heads.

        None for what has no filter along time.
        """
        values = [v for r in self.runs(system) for layer in r["filters"] for v in layer["coverage"]]
        return fmean(values) if values else None

    def middle(self, system: str) -> float:
        """The loss in the middle third of the window minus the baseline's there, mean over the seeds of both."""
        runs, base = (fmean(x for r in half for x in _middle(r["loss_by_position"])) for half in self.pair(system))
        return runs - base

    def leaking(self) -> list[str]:
        """The systems that the audit convicts, one that has two names once."""
        found = [s for s in self.systems if self.verdict(s) == "leaks"]
        return [s for s in found if ALIASES.get(s) not in found]


def blank(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether runs predict no better than counts of single tokens do: they learned nothing, as far as records say."""
    counts = _unigram(runs)
    return counts is not None and _ordered(runs) >= counts


def _unigram(runs: Sequence[Mapping[str, Any]]) -> float | None:
    """The entropy of the single tokens of their text; None where a record does not say."""
    found = [leaf(r, "losses.shuffled.unigram_entropy") for r in runs]
    return None if None in found else fmean(found)


def _ordered(runs: Iterable[Mapping[str, Any]]) -> float:
    """Their mean ordered loss."""
    return fmean(r["losses"]["ordered"]["mean"] for r in runs)


def _middle(losses: Sequence[float]) -> Sequence[float]:
    """The middle third."""
    return losses[len(losses) // 3 : 2 * len(losses) // 3]


def _check(records: list[dict[str, Any]]) -> None:
    """ValueError unless the records are runs of one study."""
    check_once(records)
    for r in records:
        if lacks := [part for part, kind in JUDGED.items() if not isinstance(leaf(r, part), kind)]:
            raise ValueError(f"the record of {named(r)} lacks {', '.join(lacks)}: no claim can be judged by it")
        if not all(math.isfinite(loss["mean"]) for kind, loss in r["losses"].items() if kind != "floor"):
            raise ValueError(f"the record of {named(r)} has a loss that is no number")
        if differs := unlike(records[0], r):
            fields = ", ".join(f"{name} ({a} and {b})" for name, (a, b) in differs.items())
            raise ValueError(f"{named(records[0])}, and {named(r)}, differ in {fields}: "
                             "a study is of one text, one size and one training")  # fmt: skip


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Rank correlation: Pearson's of the ranks, equal values sharing the mean of theirs. 0 where all are equal."""

    def centred(values: Sequence[float]) -> list[float]:
        below = [sum(v < u for v in values) - sum(v > u for v in values) for u in values]
        return [b / 2 for b in below]  # the rank above the mean rank

    a, b = centred(x), centred(y)
    scale = math.sqrt(sum(v * v for v in a) * sum(v * v for v in b))
    return sum(u * v for u, v in zip(a, b, strict=True)) / scale if scale else 0.0
