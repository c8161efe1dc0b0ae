"""How often the causality audit errs, on every processor that can be had or imitated: python benchmarks/audit_rates.py

Random compositions of clean and leaking blocks (tests/leak_hard.py), audited by this library under one setting after
another: instruction sets of torch, MKL and oneDNN, numbers of threads, other orders of summation, other transforms. The
table counts clean models that are not called causal, and leaking ones that are, although brute force hears the future;
beside each count stands the upper end of its binomial (Clopper-Pearson) 95 % interval.

Answers are kept in a file, one line a model, and what stands there is not asked again: a run that was cut short goes
on, and settings can be added. A processor takes no note of a setting that it does not know: the table then repeats.
"""
import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from scipy.stats import beta

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    "two threads": {"OMP_NUM_THREADS": "2"},
    **{f"ATen {name}": {"ATEN_CPU_CAPABILITY": name} for name in ("default", "avx2", "avx512")},
    **{f"MKL branch {name}": {"MKL_CBWR": name} for name in ("COMPATIBLE", "AVX2", "AVX512")},
    **{f"MKL {name}": {"MKL_ENABLE_INSTRUCTIONS": name} for name in ("SSE4_2", "AVX2", "AVX512")},
    **{f"oneDNN {name}": {"ONEDNN_MAX_CPU_ISA": name} for name in ("SSE41", "AVX2", "AVX512_CORE")},
    **{name: {"PROCESSOR": name} for name in ("another order of sums", "plain transforms", "coarse transforms")},
}


def audits(seeds: Iterable[int]) -> None:
    """Audit these compositions in this process, an answer a line."""
    import torch
    from leak_hard import compose, hears_the_future
    from leak_zoo import V
    from processors import PROCESSORS

    from fourierqk import audit

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    for seed in seeds:
        model, length, leaky = compose(seed)
        with PROCESSORS[os.environ.get("PROCESSOR", "this one")]():
            verdict = audit(model.double() if seed % 3 == 1 else model, V, length, draws=8, seed=seed).verdict
        missed = leaky and verdict == "causal" and hears_the_future(model.eval(), length)
        print(json.dumps({"seed": seed, "leaky": leaky, "verdict": verdict, "missed": missed}), flush=True)


def ask(setting: str, seeds: list[int], file: Path) -> None:
    """The same in a process of its own under a setting, whose answers go to the file as they come."""
    command = [sys.executable, __file__, "--here", *map(str, seeds)]
    environment = {"OMP_NUM_THREADS": "1", **os.environ, **SETTINGS[setting]}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    with process, file.open("a") as out:
        for line in process.stdout:
            print(json.dumps({"setting": setting, **json.loads(line)}), file=out, flush=True)
    if process.returncode:
        raise SystemExit(f"the audits under the setting {setting!r} ended with exit status {process.returncode}")


def answers(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def rate(errors: int, of: int) -> str:
    """A count with the upper end of its 95 % interval, in per cent."""
    upper = beta.ppf(0.975, errors + 1, of - errors) if errors < of else 1.0
    return f"{errors:4d} (<= {100 * upper:5.2f} %)"


def table(found: list[dict]) -> str:
    lines = [f"{'setting':24s} {'clean':>6s} {'inconclusive':>17s} {'leaks':>17s} {'leaky':>6s} {'missed':>17s}"]
    for setting in [*dict.fromkeys(r["setting"] for r in found), "all"]:
        rows = [r for r in found if setting in (r["setting"], "all")]
        clean, leaky = [r for r in rows if not r["leaky"]], [r for r in rows if r["leaky"]]
        wrong = [rate(sum(r["verdict"] == v for r in clean), len(clean)) for v in ("inconclusive", "leaks")]
        missed = rate(sum(r["missed"] for r in leaky), len(leaky))
        lines.append(f"{setting:24s} {len(clean):6d} {wrong[0]:>17s} {wrong[1]:>17s} {len(leaky):6d} {missed:>17s}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first composition")
    parser.add_argument("--count", type=int, default=400, help="compositions for each setting")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS, metavar="SETTING")
    parser.add_argument("--file", type=Path, default=Path("audit_rates.jsonl"), help="where answers are kept")
    parser.add_argument("--here", type=int, nargs="+", help=argparse.SUPPRESS)
    how = parser.parse_args()
    if how.here:
        return audits(how.here)
    for setting in how.settings:
        done = {r["seed"] for r in answers(how.file) if r["setting"] == setting}
        left = [s for s in range(how.first, how.first + how.count) if s not in done]
        if left:
            ask(setting, left, how.file)
    print(table(answers(how.file)))


if __name__ == "__main__":
    main()
