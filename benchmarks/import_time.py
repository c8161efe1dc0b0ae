"""What importing the library costs beside importing torch: python benchmarks/import_time.py

Each turn is a new process that imports one after the other and asks the clock in between. A row shows the median and
the least of all turns. The target: `import fourierqk` takes at most 0.1 s beyond `import torch`.
"""
import argparse
import statistics
import subprocess
import sys

STEPS = ("import torch", "import fourierqk", "from fourierqk import *")
WORKER = f"""
import time
for step in {STEPS}:
    start = time.perf_counter()
    exec(step)
    print(time.perf_counter() - start)
"""


def turn() -> list[float]:
    """Seconds of each step."""
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    how = parser.parse_args()
    turn()  # files are read from the disk once
    turns = [turn() for _ in range(how.turns)]
    for step, seconds in zip(STEPS, zip(*turns, strict=True), strict=True):
        print(f"{step:26s}{1e3 * statistics.median(seconds):8.1f} ms, at best{1e3 * min(seconds):8.1f} ms")


if __name__ == "__main__":
    main()
