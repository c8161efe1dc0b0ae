"""Does a study survive kill -9? python benchmarks/kill_study.py [KILLS]

A study of six small runs, two at a time, is killed so often at random moments, the whole of it or one of its workers,
and begun again each time. At the end its records must equal those of an undisturbed study, losses to 1e-6, none
missing, doubled or torn. Takes about ten seconds a kill.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from fourierqk.records import runs_in
from fourierqk.storage import read_json
from fourierqk.studies import Run, conduct, workplace
from fourierqk.training import Preset, TrainConfig, steps_done

HOW = TrainConfig(steps=300, batch=4, lr=3e-3, warmup=2, eval_every=10, eval_windows=8, device="cpu")
SHAPE = dict(n_layer=1, n_head=2, n_embd=16, dropout=0.1)
SYSTEMS = ("base-dot", "multifourier-qk", "phase-randomised")


def runs(text: Path) -> list[Run]:
    sizes = [Preset(SHAPE, 16, replace(HOW, seed=seed)) for seed in range(2)]
    return [Run(system, str(text), "kill", size) for size in sizes for system in SYSTEMS]


def write_text(path: Path) -> Path:
    draw = random.Random(0)
    path.write_text("".join(draw.choice(["to be ", "or not ", "that is ", "the question.\n"]) for _ in range(2000)))
    return path


def workers(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def progress(place: Path) -> int:
    """Steps in all checkpoints, and ten thousand a record."""
    return sum(map(steps_done, place.glob("runs/*/*.safetensors"))) + 10_000 * len([*place.glob("*.json")])


def kill_once(command: list[str], place: Path, dice: random.Random) -> str:
    """Begin the study; kill it or a worker up to 3 s after it has got further, or at any time -> what was killed."""
    before, blind = progress(place), dice.random() < 0.2
    study = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while study.poll() is None and not blind and progress(place) <= before:
        time.sleep(0.05)
    end = time.monotonic() + dice.uniform(0, 10 if blind else 3)
    while study.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if study.poll() is not None:
        return "nothing: it had ended"
    pool = workers(study.pid)
    victim = dice.choice(pool) if pool and dice.random() < 0.5 else study.pid
    os.kill(victim, signal.SIGKILL)
    if victim != study.pid:
        time.sleep(dice.uniform(0, 2))
        study.kill()
    study.wait()
    return "the study" if victim == study.pid else "a worker, then the study"


def differences(a: object, b: object, name: str = "") -> list[str]:
    """Where two records differ, numbers by more than 1e-6; but for clocks, memory, and commits made meanwhile."""
    if isinstance(a, dict) and isinstance(b, dict):
        skip = {"seconds", "tokens_per_second", "peak_memory", "wall_seconds", "written", "commit",
                "uncommitted_changes"}  # fmt: skip
        keys = dict.fromkeys([*a, *b])
        return [d for k in keys if k not in skip for d in differences(a.get(k), b.get(k), f"{name}.{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b, strict=True)) for d in differences(x, y, f"{name}[{i}]")]
    if isinstance(a, float) and isinstance(b, float):
        return [] if abs(a - b) <= 1e-6 else [f"{name}: {a} and {b}"]
    return [] if a == b else [f"{name}: {str(a)[:80]} and {str(b)[:80]}"]


def main(kills: int) -> None:
    dice = random.Random()
    with tempfile.TemporaryDirectory() as folder:
        text, place = write_text(Path(folder) / "text.txt"), Path(folder) / "killed"
        command = [sys.executable, __file__, "--study", str(text), str(place)]
        done = 0
        while done < kills:
            what = kill_once(command, place, dice)
            made = sorted(path.stem for path in place.glob("*.json"))
            for name in made:
                read_json(place / f"{name}.json")
            done += what[0] != "n"
            print(f"{done:3d}: killed {what}; {len(made)} records, {progress(place) % 10_000} steps", flush=True)
            if len(made) > dice.randrange(4, 7):  # keep something to kill: lose a record, a run, or everything
                lost = dice.choice(runs(text))
                (place / f"{lost.name}.json").unlink(missing_ok=True)
                for file in workplace(place, lost).glob("*"):
                    file.unlink()
        if subprocess.run(command).returncode:
            sys.exit("the study does not end well")
        if failed := conduct(runs(text), Path(folder) / "whole", jobs=2, progress=False):
            sys.exit(f"the undisturbed study does not end well: {failed}")
        (killed, torn), (whole, _) = runs_in(place), runs_in(Path(folder) / "whole")
        by_name = [{f"{r['system']}-s{r['seed']}": r for r in records} for records in (killed, whole)]
        wrong = [*torn, *differences(*by_name)] + ["a run is there twice"] * (len(killed) != len(runs(text)))
        sys.exit("\n".join(wrong) or print(f"{kills} kills: {len(killed)} records, all equal to the undisturbed ones"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--study"]:
        sys.exit(bool(conduct(runs(Path(sys.argv[2])), Path(sys.argv[3]), jobs=2)))
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
