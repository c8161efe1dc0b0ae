"""Step times of every system, then as much of a study as the time allows: see gpu_study.sh."""
import argparse
import os
import signal
import statistics
import sys
import tarfile
import time
from pathlib import Path

import torch

from fourierqk.records import markdown, provenance, rows, runs_in
from fourierqk.storage import write_json
from fourierqk.studies import conduct, find_preset, find_study
from fourierqk.training import Preset, describe, pick_device, pick_precision
from fourierqk.training.loop import _step, optimiser
from fourierqk.zoo import SYSTEMS, build

TRIED = ("base-dot", "fourier-qk")  # whether to compile is tried on one system without and one with a filter


def step_time(name: str, size: Preset, device: torch.device, compiled: bool, seconds: float) -> dict[str, float]:
    """Median milliseconds of a training step at a size's own batch, and the seconds that the first three took."""
    torch.manual_seed(0)
    model = build(name, size.gpt(vocab_size=65)).to(device)
    through, opt = torch.compile(model) if compiled else model, optimiser(model, size.train)
    ids = torch.randint(65, (size.train.batch, size.block_size + 1), device=device)
    precision = pick_precision("auto", device)

    def step() -> float:
        began = time.perf_counter()
        _step(through, opt, ids[:, :-1], ids[:, 1:], size.train.clip, precision).item()  # .item() waits for the GPU
        return time.perf_counter() - began

    first, times = sum(step() for _ in range(3)), []
    while len(times) < 5 or sum(times) < seconds:
        times.append(step())
    return {"ms": 1e3 * statistics.median(times), "first_seconds": first}


def race(names: list[str], size: Preset, device: torch.device, seconds: float, compile_too: bool) -> dict:
    """The step time of each system and its ratio to base-dot's; of two also that of the compiled model."""
    found = {}
    for name in names:
        found[name] = step_time(name, size, device, False, seconds)
        found[name]["ratio"] = found[name]["ms"] / found[names[0]]["ms"]
        print(f"  {name:24s}{found[name]['ms']:8.2f} ms   x {found[name]['ratio']:.2f}")
        if compile_too and name in TRIED:
            found[name]["compiled"] = attempt(name, size, device, seconds)
    return found


def attempt(name: str, size: Preset, device: torch.device, seconds: float) -> dict:
    """The same of the compiled model, or why there is none."""
    try:
        timed = step_time(name, size, device, True, seconds)
    except Exception as e:  # compilers fail in many ways, and the study does without
        print(f"    cannot be compiled: {type(e).__name__}")
        return {"failed": f"{type(e).__name__}: {e}"[:500]}
    print(f"    compiled{timed['ms']:20.2f} ms, the first three steps {timed['first_seconds']:.0f} s")
    return timed


def pays(timed: dict, steps: int) -> bool:
    """Whether a whole run is shorter when compiled."""
    compiled = timed.get("compiled", {"failed": "not tried"})
    return "failed" not in compiled and compiled["first_seconds"] < 1e-3 * steps * (timed["ms"] - compiled["ms"])


def bundle(place: Path, out: Path) -> None:
    """All records in one file."""
    with tarfile.open(out / "records.tar.gz", "w:gz") as tar:
        for path in sorted(place.glob("*.json")):
            tar.add(path, path.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("out", type=Path, help="folder for step_times.json and records.tar.gz")
    add("--place", type=Path, default=Path("runs/gpu"), help="folder of the study")
    add("--minutes", type=float, default=9.3, help="for all of it")
    add("--jobs", type=int, default=4, help="runs at a time on the card")
    add("--study", default="shakespeare-paper")
    add("--systems", nargs="*", help="these alone")
    add("--preset"), add("--corpus"), add("--seeds", type=int), add("--steps", type=int), add("--text", type=Path)
    add("--seconds", type=float, default=0.5, help="to time each system for")
    add("--no-compile", action="store_true")
    ask = parser.parse_args()
    end = time.monotonic() + 60 * ask.minutes
    if ask.text:
        os.environ["FOURIERQK_DATA"] = str(ask.text)
    changes = {k: getattr(ask, k) for k in ("preset", "corpus", "seeds", "steps")}
    chosen = find_study(ask.study, **changes, systems=ask.systems and tuple(ask.systems))
    runs, size, device = chosen.runs(), find_preset(chosen.preset), pick_device()
    print(f"torch {torch.__version__}, {describe(device)}, {pick_precision('auto', device)}: step times")
    names = [*dict.fromkeys([TRIED[0], *(ask.systems or SYSTEMS)])]
    timed = race(names, size, device, ask.seconds, not ask.no_compile)
    about = {"preset": chosen.preset, "device": describe(device), "precision": pick_precision("auto", device)}
    write_json(ask.out / "step_times.json", about | {"systems": timed} | provenance())
    steps = runs[0].size.train.steps
    verdict = {name: pays(timed.get(name, {}), steps) for name in TRIED}
    compiled = {s for s in chosen.systems if verdict[s if s in TRIED else TRIED[1]]}
    print(f"{len(runs)} runs, {ask.jobs} at a time; compiled: {', '.join(sorted(compiled)) or 'none'}")
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("the time is up: what was still at work is lost"))
    signal.setitimer(signal.ITIMER_REAL, max(1.0, end - time.monotonic()))
    try:
        budget = end - time.monotonic() - 5
        conduct(runs, ask.place, jobs=ask.jobs, budget=budget, compiled=compiled)
    finally:
        bundle(ask.place, ask.out)
        print(markdown(rows(runs_in(ask.place)[0])))


if __name__ == "__main__":
    main()
