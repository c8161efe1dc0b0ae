"""Carry out a study on a Ray cluster: each run a task on some node, done again elsewhere if that node dies.

The nodes need Ray, Python, torch, numpy and safetensors, the first two in the versions that are here. Library and text
travel with the study, and no disk need be shared: a task trains in a temporary folder of its node and sends back what
it made. The folder of the study is written here alone, as `pool.conduct` writes it, so that either can go on with what
the other left.
"""
import hashlib
import io
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from types import ModuleType
from typing import Any

import torch

from fourierqk.checks import check_count
from fourierqk.data import Corpus
from fourierqk.progress import progress_bar
from fourierqk.records import provenance
from fourierqk.storage import Busy, hold, sweep, taken, write_atomic, write_json
from fourierqk.studies.design import Run
from fourierqk.studies.runs import carry_out, reason, record_path, workplace
from fourierqk.studies.tally import Tally
from fourierqk.training import CHECKPOINT, RECORD

__all__ = ["conduct_on_ray"]

LIBRARY = Path(__file__).resolve().parents[1]
PAUSE = 0.5  # seconds between two looks at what has ended
NEEDS = "ray>=2.52"  # as pyproject.toml says it
UV = "RAY_ENABLE_UV_RUN_RUNTIME_ENV"
RETRIES = 5  # of a run whose worker died; one that kills its workers must end some time


def conduct_on_ray(
    runs: Sequence[Run], folder: str | Path, *, cpus: int = 1, gpus: float | None = None, progress: bool | None = None
) -> dict[str, str]:
    """Carry out all runs that have no record in the folder yet -> what failed: the name of the run, and why.

    Repeated after a stop of any kind, it goes on with the runs that have no record. Records, locks and failures are
    those of `pool.conduct`. Ray does as many runs at a time as the nodes have room for, and repeats a run whose worker
    or node dies. The cluster is that of RAY_ADDRESS, else the one that this machine belongs to.

    cpus: cores that a run asks for, and the threads it computes with; the last digits of a loss depend on them, so keep
    the number. gpus: cards that a run asks for, 0.25 packs four runs on one; None means one if the cluster has any.
    progress: as for `train`; False prints nothing.

    ImportError where Ray is not installed, ConnectionError where no cluster can be reached, ValueError where a corpus
    is unknown, OSError where the folder cannot be written.
    """
    check_count(cpus, "cpus")
    if gpus is not None and (gpus < 0 or gpus > 1 and gpus % 1):
        raise ValueError(f"gpus = {gpus} must be a part of one card, or whole cards")
    ray = _import_ray()
    tally = Tally(runs, folder)
    with (
        redirect_stdout(io.StringIO()),  # Ray prints the logs of nodes that die
        progress_bar(progress, tally.total, tally.steps()) as bar,
        _Cluster(ray, tally, cpus, gpus) as cluster,
    ):
        tally.start(bar)
        while tally.waiting or cluster.busy:
            while run := tally.next():
                try:
                    cluster.start(run)
                except Busy:  # somebody was faster
                    tally.waiting.append(run)
            for run, seconds, why in cluster.ended():
                tally.settle(run, seconds, why)
            tally.show()
            for line in cluster.news():
                tally.tell(line)
    return tally.failed


def _import_ray() -> ModuleType:
    """Ray, told before it is imported to leave the nodes their own Python: under `uv run` it would start uv there."""
    os.environ.setdefault(UV, "0")
    try:
        import ray
    except ImportError as e:
        raise ImportError(f'a study on a cluster needs Ray: pip install "{NEEDS}", or uv add "{NEEDS}"') from e
    return ray


def _connect(ray: ModuleType) -> None:
    """Join the cluster, and let its workers import the library as it is here, whatever else they could import."""
    address = os.environ.get("RAY_ADDRESS") or "auto"
    host, _, port = address.rpartition(":")
    try:
        if port.isdigit() and "/" not in host:
            socket.create_connection((host, int(port)), timeout=10).close()  # Ray itself tries for minutes
        with tempfile.TemporaryDirectory() as home:
            shutil.copytree(LIBRARY, Path(home) / LIBRARY.name, ignore=shutil.ignore_patterns("__pycache__"))
            ray.init(address, runtime_env={"working_dir": home}, logging_level="ERROR", log_to_driver=False)
    except (OSError, RuntimeError, ValueError, ImportError) as e:
        where, said = "on this machine" if address == "auto" else f"at {address}", " ".join(str(e).split()).rstrip(".")
        raise ConnectionError(f"no Ray cluster can be used {where}: {said}. {_way_out(said)}") from e


def _way_out(said: str) -> str:
    """What to do where Ray says this."""
    if "uv run" in said:  # it was imported by somebody else, before it could be told
        return f"Set {UV}=0: library and text travel by themselves"
    if "ersion mismatch" in said:
        return "Install the cluster's versions here, or start one of this machine's with `ray start --head`"
    return "Start one with `ray start --head`, or name one in RAY_ADDRESS"


@dataclass(frozen=True)
class _Task:
    run: Run
    lock: ExitStack  # on the run, held until its record is written


class _Cluster:
    """The tasks at work. When the cluster is left all of them end; when this process is killed, they end too."""

    def __init__(self, ray: ModuleType, tally: Tally, cpus: int, gpus: float | None) -> None:
        self.ray, self.tally, self.cpus, self.gpus = ray, tally, cpus, gpus
        self.busy: dict[Any, _Task] = {}  # result -> task
        self.seen: set[str] = set()  # the nodes that were alive
        self.made_by = provenance()  # by the code that is here, and travels
        self.code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(LIBRARY.rglob("*.py")))).hexdigest()

    def __enter__(self) -> "_Cluster":
        _connect(self.ray)
        if self.gpus is None:
            self.gpus = min(1, int(self.ray.cluster_resources().get("GPU", 0)))
        resources = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        # one call a process, as in a pool: neither memory nor its peak is another run's
        self.task = self.ray.remote(max_retries=RETRIES, max_calls=1, **resources)(_carry_out)
        self.corpora = {name: self.ray.put(corpus) for name, corpus in self.tally.corpora.items()}
        return self

    def __exit__(self, *_: object) -> None:
        self.ray.shutdown()
        for task in self.busy.values():
            task.lock.close()

    def start(self, run: Run) -> None:
        """Hand a run to Ray. Busy where another process is at it, or has just ended it."""
        with ExitStack() as lock:
            lock.enter_context(hold(workplace(self.tally.folder, run)))
            if (path := record_path(self.tally.folder, run)).exists():
                raise Busy(f"{path} has just been written")
            desk = f"fourierqk-{run.name}-{self._digest(run)}"
            result = self.task.options(name=run.name).remote(run, self.corpora[run.corpus], desk, self.cpus)
            self.busy[result] = _Task(run, lock.pop_all())

    def ended(self) -> Iterator[tuple[Run, float, str]]:
        """Wait a little -> the runs that have ended, their seconds, and why there is no record if there is none."""
        if not self.busy:
            time.sleep(PAUSE)
            return
        for result in self.ray.wait([*self.busy], timeout=PAUSE)[0]:
            task = self.busy.pop(result)
            with task.lock:
                seconds, why = self._receive(task.run, result)
            yield task.run, seconds, why

    def _receive(self, run: Run, result: Any) -> tuple[float, str]:
        try:
            record, weights = self.ray.get(result)
            self._keep(run, record, weights)
            return record["wall_seconds"], ""
        except self.ray.exceptions.RayTaskError as e:
            return 0.0, reason(e.cause)
        except self.ray.exceptions.RayError as e:
            return 0.0, f"{shorten(str(e).rstrip('. '), 250)}. The same command goes on with it"
        except (ValueError, OSError) as e:
            return 0.0, reason(e)

    def _keep(self, run: Run, record: dict[str, Any], weights: bytes) -> None:
        """Write what a task made into the folder of the study: the record last, since it says that all is there."""
        code = {key: self.made_by[key] for key in ("commit", "uncommitted_changes")}
        versions = record["versions"] | {"fourierqk": self.made_by["versions"]["fourierqk"]}
        record = record | code | {"versions": versions}
        out = workplace(self.tally.folder, run)
        for path in (out / CHECKPOINT, out / RECORD, record_path(self.tally.folder, run)):
            sweep(path)
        write_atomic(out / CHECKPOINT, weights)
        write_json(out / RECORD, record)
        write_json(record_path(self.tally.folder, run), record)

    def _digest(self, run: Run) -> str:
        """Tells tasks apart that must not meet in a folder: other runs, other code, other studies."""
        study = [socket.gethostname(), str(self.tally.folder.resolve()), self.tally.corpora[run.corpus].sha256]
        return hashlib.sha256(json.dumps([run.as_dict(), self.cpus, self.code, study]).encode()).hexdigest()[:16]

    def news(self) -> Iterator[str]:
        """What a reader should know of the nodes; the same lines each time."""
        nodes, need = self.ray.nodes(), {"CPU": self.cpus, "GPU": self.gpus}
        alive = [node for node in nodes if node["Alive"]]
        self.seen |= {node["NodeID"] for node in alive}
        for node in nodes:
            if node["NodeID"] in self.seen and not node["Alive"]:
                name = f"{node['NodeManagerHostname']} ({node['NodeID'][:6]})"
                yield f"Lost the node {name}: what it was at is begun again on another"
        if self.busy and not any(all(node["Resources"].get(k, 0) >= n for k, n in need.items()) for node in alive):
            asked = f"{self.cpus} CPU" + (f" and {self.gpus:g} GPU" if self.gpus else "")
            yield f"No node of the cluster has {asked}, which a run asks for; waiting for one"


def _carry_out(run: Run, corpus: Corpus, desk: str, threads: int) -> tuple[dict[str, Any], bytes]:
    """The task, on a node: train and measure one run -> its record, and its file of weights."""
    torch.set_num_threads(threads)
    with _desk(desk) as out:
        record = carry_out(run, corpus, out, progress=False)
        return record, (out / CHECKPOINT).read_bytes()


@contextmanager
def _desk(name: str) -> Iterator[Path]:
    """A temporary folder of this node, for one task at a time. It goes when all is done, so that a checkpoint stays."""
    out = Path(tempfile.gettempdir()) / name
    while taken(out):  # by the task of a study that was killed, and is not dead yet
        time.sleep(PAUSE)
    with hold(out):
        yield out
        shutil.rmtree(out)
