"""Carry out a whole study: several runs at a time, each in a process of its own, whatever is killed on the way."""
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fourierqk.checkpoint import CHECKPOINT, steps_done
from fourierqk.lock import make, taken
from fourierqk.progress import progress_bar
from fourierqk.records import write_atomic
from fourierqk.runs import BUSY, order, recorded, workplace
from fourierqk.studies import Run, open_corpus

__all__ = ["conduct"]

PAUSE = 0.2  # seconds between two looks at what has ended


def conduct(
    runs: Sequence[Run], folder: str | Path, *, jobs: int = 1, budget: float | None = None,
    compiled: Collection[str] = (), progress: bool | None = None,
) -> dict[str, str]:  # fmt: skip
    """Carry out all runs that have no record in the folder yet -> what failed: the name of the run, and why.

    Repeated after a stop of any kind, it goes on where it was. A run that another process is at is waited for, and
    done here if that process dies. A run that fails stops no other. jobs: runs at a time, which share the cores: the
    last digits of a loss depend on the number of threads, so keep it. budget: seconds after which, as far as the
    longest run so far can tell, nothing should be at work any more: what would take longer is not begun. compiled: the
    systems to train through torch.compile. progress: as for `train`; False prints nothing.

    ValueError where a corpus is unknown, OSError where the folder cannot be written.
    """
    if jobs < 1:
        raise ValueError(f"jobs = {jobs} must be at least 1")
    folder = Path(folder)
    _try_to_write(make(folder / "runs"))
    state = _State(runs, folder, {name: open_corpus(name).sha256 for name in {run.corpus for run in runs}})
    with progress_bar(progress, state.total, state.steps()) as bar, _Crew(folder, jobs, compiled) as crew:
        state.start(bar)
        while state.waiting or crew.busy:
            while len(crew.busy) < jobs and not state.is_late(budget, crew) and (run := state.next()):
                crew.start(run)
            time.sleep(PAUSE)
            for ended in crew.ended():
                state.settle(ended)
            state.show(crew)
            if state.waiting and not crew.busy and state.is_late(budget, crew):
                state.say(f"The time is up: {len(state.waiting)} of {len(runs)} runs not begun")
                break
    return state.failed


def _try_to_write(folder: Path) -> None:
    """OSError now, rather than after hours, where files cannot be made."""
    probe = folder / f".probe.{os.getpid()}"
    write_atomic(probe, b"x" * 4096)
    probe.unlink()


@dataclass(frozen=True)
class _Worker:
    run: Run
    process: subprocess.Popen
    log: IO[bytes]  # what it writes to its standard error
    began: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def last_words(self) -> str:
        """Why it failed, in a line."""
        status = self.process.returncode
        if status < 0:
            why = ", perhaps for want of memory" if status == -signal.SIGKILL else ""
            return f"killed by signal {-status}{why}. The same command goes on with it"
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return lines[-1].replace("start anew with resume=False", "delete it") if lines else f"exit status {status}"


class _Crew:
    """The processes at work. When the crew is left, all of them end; when this process is killed, they end too."""

    def __init__(self, folder: Path, jobs: int, compiled: Collection[str]) -> None:
        self.folder, self.compiled, self.busy, self.longest = folder, compiled, [], 0.0
        self.threads = max(1, _cores() // jobs)

    def __enter__(self) -> "_Crew":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.busy:
            worker.process.kill()
            worker.process.wait()
            worker.log.close()

    def start(self, run: Run) -> None:
        home = str(Path(__file__).resolve().parents[1])  # the same library, however this process found it
        path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
        env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(self.threads), "FOURIERQK_PROGRESS": "0"}
        command, log = [sys.executable, "-m", "fourierqk.runs", str(self.folder)], tempfile.TemporaryFile()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=env)
        self.busy.append(_Worker(run, process, log, time.monotonic()))
        try:
            process.stdin.write(order(run, self.threads, run.system in self.compiled))
            process.stdin.flush()  # and stays open: that it closes tells the worker that this process is gone
        except BrokenPipeError:  # it ended already, and its last words say why
            pass

    def ended(self) -> list[_Worker]:
        """Those that have ended since the last call."""
        gone = [w for w in self.busy if w.process.poll() is not None]
        self.busy = [w for w in self.busy if w not in gone]
        self.longest = max([self.longest, *(w.seconds for w in gone if w.process.returncode == 0)])
        return gone


class _State:
    """Which runs are done, failed or waiting, and what to say of it."""

    def __init__(self, runs: Sequence[Run], folder: Path, sha256: dict[str, str]) -> None:
        self.runs, self.folder, self.sha256 = runs, folder, sha256
        self.waiting, self.failed, self.done, self.told = [], {}, set(), set()
        self.total = sum(run.size.train.steps for run in runs)
        for run in runs:
            self.look(run)

    def look(self, run: Run) -> None:
        """Sort a run by what is in the folder."""
        try:
            record = recorded(self.folder, run, self.sha256[run.corpus])
        except (ValueError, OSError) as e:
            self.failed[run.name] = str(e)
            return
        if record:
            self.done.add(run.name)
        else:
            self.waiting.append(run)

    def start(self, bar: Any) -> None:
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
            self.report(run, None)
        return None

    def settle(self, worker: _Worker) -> None:
        """Take note of how a process ended."""
        run = worker.run
        self.look(run)
        if worker.process.returncode != BUSY:
            if run in self.waiting:  # there is no record
                self.waiting.remove(run)
                self.failed[run.name] = worker.last_words()
            self.report(run, worker)
        worker.log.close()

    def report(self, run: Run, worker: _Worker | None) -> None:
        if run.name in self.failed:
            self.say(f"{run.name} FAILED: {self.failed[run.name]}")
            return
        losses = recorded(self.folder, run, self.sha256[run.corpus])["losses"]
        said = ", ".join(f"{name} {losses[name]['mean']:.3f}" for name in ("ordered", "honest"))
        took = f"{worker.seconds:.0f} s" if worker else "by another process"
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

    def show(self, crew: _Crew) -> None:
        steps = self.steps()
        self.bar.update(steps - self.shown)
        self.shown = steps
        self.bar.set_postfix(runs=f"{len(self.done)}/{len(self.runs)}", now=",".join(w.run.name for w in crew.busy))

    def is_late(self, budget: float | None, crew: _Crew) -> bool:
        """Whether a run begun now might not end in time."""
        return budget is not None and time.monotonic() - self.began + crew.longest > budget

    def tell(self, line: str) -> None:
        """Say it once."""
        if line not in self.told:
            self.told.add(line)
            self.say(line)

    def say(self, line: str) -> None:
        self.bar.write(line, file=sys.stderr)


def _cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min" if minutes else "a minute"
