"""Carry out a whole study: several runs at a time, each in a process of its own, whatever is killed on the way.

The processes (worker.py) are told what to do by `order`, and say by their exit status how it went.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from fourierqk.checks import check_count
from fourierqk.progress import progress_bar
from fourierqk.studies.design import Run
from fourierqk.studies.runs import LESS
from fourierqk.studies.tally import Tally

__all__ = ["conduct"]

BUSY = 75  # exit status of a worker whose run another process is at
PAUSE = 0.2  # seconds between two looks at what has ended
LIBRARY = Path(__file__).resolve().parents[1] / "__init__.py"
# A worker begins with this library, named by its file, and finds all else where its Python does. With PYTHONSAFEPATH,
# which its own children inherit, nothing is imported from the working folder: a random.py there is not Python's.
BEGIN = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("fourierqk", sys.argv.pop(1))
sys.modules["fourierqk"] = library = importlib.util.module_from_spec(spec)
spec.loader.exec_module(library)
from fourierqk.studies.worker import work
sys.exit(work(sys.argv[1]))
"""


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
    check_count(jobs, "jobs")
    tally = Tally(runs, folder)
    with progress_bar(progress, tally.total, tally.steps()) as bar, _Pool(folder, jobs, compiled, budget) as pool:
        tally.start(bar)
        while tally.waiting or pool.busy:
            while len(pool.busy) < jobs and not pool.is_late() and (run := tally.next()):
                pool.start(run)
            time.sleep(PAUSE)
            for worker in pool.ended():
                if worker.process.returncode == BUSY:
                    tally.waiting.append(worker.run)
                else:
                    tally.settle(worker.run, worker.seconds, worker.last_words())
                worker.log.close()
            tally.show(worker.run for worker in pool.busy)
            if tally.waiting and not pool.busy and pool.is_late():
                tally.say(f"The time is up: {len(tally.waiting)} of {len(runs)} runs not begun")
                break
    return tally.failed


def order(run: Run, threads: int, compiled: bool) -> bytes:
    """What a worker is told to do, in one line of JSON."""
    return json.dumps({"run": run.as_dict(), "threads": threads, "compiled": compiled}).encode() + b"\n"


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
            why = f", perhaps for want of memory: then {LESS}" if status == -signal.SIGKILL else ""
            return f"killed by signal {-status}{why}. The same command goes on with it"
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return lines[-1].replace("start anew with resume=False", "delete it") if lines else f"exit status {status}"


class _Pool:
    """The processes at work. When the pool is left, all of them end; when this process is killed, they end too."""

    def __init__(self, folder: str | Path, jobs: int, compiled: Collection[str], budget: float | None) -> None:
        self.folder, self.compiled, self.longest = folder, compiled, 0.0
        self.busy: list[_Worker] = []
        self.budget, self.began = budget, time.monotonic()
        self.threads = max(1, _cores() // jobs)

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.busy:
            worker.process.kill()
            worker.process.wait()
            worker.log.close()

    def start(self, run: Run) -> None:
        env = os.environ | {"OMP_NUM_THREADS": str(self.threads), "FOURIERQK_PROGRESS": "0", "PYTHONSAFEPATH": "1"}
        command, log = [sys.executable, "-c", BEGIN, str(LIBRARY), str(self.folder)], tempfile.TemporaryFile()
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=env)
        self.busy.append(_Worker(run, process, log, time.monotonic()))
        stdin = cast(IO[bytes], process.stdin)
        try:
            stdin.write(order(run, self.threads, run.system in self.compiled))
            stdin.flush()  # and stays open: that it closes tells the worker that this process is gone
        except BrokenPipeError:  # it ended already, and its last words say why
            pass

    def ended(self) -> list[_Worker]:
        """Those that have ended since the last call."""
        gone = [w for w in self.busy if w.process.poll() is not None]
        self.busy = [w for w in self.busy if w not in gone]
        self.longest = max([self.longest, *(w.seconds for w in gone if w.process.returncode == 0)])
        return gone

    def is_late(self) -> bool:
        """Whether a run begun now might not end in time."""
        return self.budget is not None and time.monotonic() - self.began + self.longest > self.budget


def _cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
