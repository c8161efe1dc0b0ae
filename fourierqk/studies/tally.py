"""The account of a study in progress: which runs are done, failed or waiting, and what to say of it."""
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fourierqk.storage import make_folder, taken, write_atomic
from fourierqk.studies.design import Run, open_corpus
from fourierqk.studies.runs import recorded, workplace
from fourierqk.training import CHECKPOINT, steps_done

__all__ = ["Tally"]


class Tally:
    """The runs of a study, sorted by what is in its folder: `waiting`, `done` and `failed` (name -> why).

    Whoever conducts the study begins (`start`), takes the `next` run and says how it ended (`settle`). ValueError where
    a corpus is unknown or does not fit a run.
    """

    def __init__(self, runs: Sequence[Run], folder: str | Path) -> None:
        self.runs, self.folder = runs, Path(folder)
        self.corpora = {name: open_corpus(name) for name in {run.corpus for run in runs}}
        self.waiting: list[Run] = []
        self.failed: dict[str, str] = {}
        self.done: set[str] = set()
        self.told: set[str] = set()
        self.total = sum(run.size.train.steps for run in runs)
        for run in runs:
            run.check(self.corpora[run.corpus])
            self.look(run)

    def look(self, run: Run) -> None:
        """Sort a run by what is in the folder."""
        try:
            record = self.record(run)
        except (ValueError, OSError) as e:
            self.failed[run.name] = str(e)
            return
        if record:
            self.done.add(run.name)
        else:
            self.waiting.append(run)

    def record(self, run: Run) -> dict[str, Any] | None:
        """The record of a run, None where it is still to be made. Errors: those of `recorded`."""
        return recorded(self.folder, run, self.corpora[run.corpus])

    def start(self, bar: Any) -> None:
        """Say how things stand, from now on through a bar. OSError where the folder cannot be written."""
        _try_to_write(make_folder(self.folder / "runs"))
        self.bar, self.began, self.before = bar, time.monotonic(), self.steps()
        self.shown = self.before
        if self.done:
            self.say(f"{len(self.done)} of {len(self.runs)} runs are done already")
        for name, why in self.failed.items():
            self.say(f"{name} FAILED: {why}")

    def next(self) -> Run | None:
        """The next run that nobody is at; those that others have ended are settled on the way."""
        for run in [*self.waiting]:
            if taken(workplace(self.folder, run)):
                self.tell(f"{run.name}: another process is at it, or was just killed; waiting")
                continue
            self.waiting.remove(run)
            self.look(run)
            if run in self.waiting:
                self.waiting.remove(run)
                return run
            self.announce(run, None)
        return None

    def settle(self, run: Run, seconds: float, why: str) -> None:
        """Take note that a run ended after so many seconds; why it failed, if there is no record of it."""
        self.look(run)
        if run in self.waiting:
            self.waiting.remove(run)
            self.failed[run.name] = why
        self.announce(run, seconds)

    def announce(self, run: Run, seconds: float | None) -> None:
        """Say how a run ended; seconds: how long it took, None where another process did it."""
        if run.name in self.failed:
            self.say(f"{run.name} FAILED: {self.failed[run.name]}")
            return
        losses = self.record(run)["losses"]  # type: ignore[index]  # what did not fail has one
        said = ", ".join(f"{name} {losses[name]['mean']:.3f}" for name in ("ordered", "honest"))
        took = "by another process" if seconds is None else f"{seconds:.0f} s"
        self.say(f"[{len(self.done)}/{len(self.runs)}] {run.name}: {said} ({took}); {self.left()}")

    def steps(self) -> int:
        """Training steps done so far, whoever did them."""
        at_work = (run for run in self.runs if run.name not in self.done)
        done = sum(run.size.train.steps for run in self.runs if run.name in self.done)
        return done + sum(steps_done(workplace(self.folder, run) / CHECKPOINT) for run in at_work)

    def left(self) -> str:
        """How long the rest takes at the pace so far."""
        steps, passed = self.steps() - self.before, time.monotonic() - self.began
        rest = len(self.runs) - len(self.done) - len(self.failed)
        if not rest or not steps:
            return f"{rest} to go"
        return f"{rest} to go, about {_span(passed * (self.total - self.steps()) / steps)}"

    def show(self, at_work: Iterable[Run] = ()) -> None:
        """Bring the bar up to date."""
        steps, names = self.steps(), ",".join(run.name for run in at_work)
        self.bar.update(steps - self.shown)
        self.shown = steps
        self.bar.set_postfix(runs=f"{len(self.done)}/{len(self.runs)}", **({"now": names} if names else {}))

    def tell(self, line: str) -> None:
        """Say it once."""
        if line not in self.told:
            self.told.add(line)
            self.say(line)

    def say(self, line: str) -> None:
        """Print a line to the standard error, past the bar."""
        self.bar.write(line, file=sys.stderr)


def _try_to_write(folder: Path) -> None:
    """OSError now, rather than after hours, where files cannot be made."""
    probe = folder / f".probe.{os.getpid()}"
    write_atomic(probe, b"x" * 4096)
    probe.unlink()


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else "a minute"
