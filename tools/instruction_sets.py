"""Run the tests as other processors would: no outcome may depend on the instruction set or the number of threads.

    python tools/instruction_sets.py                         # the tests of `make test FAST=1`, under every setting
    python tools/instruction_sets.py tests/test_model.py     # these tests alone, with pytest's own words behind them
    python tools/instruction_sets.py --nbval book/dft.ipynb  # a chapter, against the outputs that its notebook stores

torch, MKL and oneDNN choose their kernels by the processor, and can be told to choose as on an older one. What this
processor does not have, they leave out by themselves. Exit status 1 if a test fails under any setting.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["SETTINGS", "main"]

ROOT = Path(__file__).resolve().parents[1]
CHOICES = {
    "ATEN_CPU_CAPABILITY": ("default", "avx2", "avx512"),
    "MKL_CBWR": ("COMPATIBLE", "AVX2", "AVX512"),
    "MKL_ENABLE_INSTRUCTIONS": ("SSE4_2", "AVX2", "AVX512"),
    "ONEDNN_MAX_CPU_ISA": ("SSE41", "AVX2"),
    "OMP_NUM_THREADS": ("1", "2"),
}
OLDEST = {name: values[0] for name, values in CHOICES.items()}  # all of them at once
SETTINGS = [OLDEST, *({name: value} for name, values in CHOICES.items() for value in values)]


def run(setting: dict[str, str], words: list[str]) -> tuple[str, list[str]]:
    """pytest's last line under a setting, and the names of the tests that failed."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-r", "fE", "-p", "no:cacheprovider", *words]
    env = {k: v for k, v in os.environ.items() if k not in CHOICES} | setting
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    *_, last = done.stdout.strip().split("\n")
    if done.returncode not in (0, 1):
        sys.exit(f"pytest stopped with status {done.returncode} under {setting}:\n{done.stdout[-2000:]}{done.stderr}")
    return last.partition(" in ")[0], re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)


def main(words: list[str]) -> int:
    """Print setting, result and failed tests, a line each."""
    failed = False
    for setting in SETTINGS:
        name = "the oldest of all" if setting is OLDEST else "=".join(*setting.items())
        last, bad = run(setting, words or ["-m", "not slow"])
        print(f"{name:32} {last}", *(f"    {test}" for test in bad), sep="\n", flush=True)
        failed |= bool(bad)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
