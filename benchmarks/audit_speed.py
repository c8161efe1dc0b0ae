"""How long an audit takes, in two checkouts of the library side by side: python benchmarks/audit_speed.py OLD [NEW]

Each checkout runs in a process of its own; the two take turns, so that a busy machine slows both alike. A row shows the
median processor time of an audit (preset tiny, 32 tokens of 65) in each, and the median ratio of turns.
"""
import argparse
import statistics
import subprocess
import sys
from pathlib import Path

SYSTEMS = ("fourier-qk", "multifourier-qk", "base-dot", "causal-morlet")
WORKER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch
import fourierqk
from fourierqk import PRESETS, audit, build
assert fourierqk.__file__.startswith(sys.argv[1]), f"{fourierqk.__file__} is not in {sys.argv[1]}"
torch.set_num_threads(1)
for name in sys.stdin:
    torch.manual_seed(0)
    model = build(name.strip(), PRESETS["tiny"].gpt(65))
    start = time.process_time()
    verdict = audit(model, 65, 32, progress=False).verdict
    print(time.process_time() - start, verdict, flush=True)
"""


class Checkout:
    """A library in a process of its own."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", WORKER, str(path.resolve())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def audit(self, system: str) -> tuple[float, str]:
        """-> (seconds of the processor, verdict)."""
        self.process.stdin.write(system + "\n")
        self.process.stdin.flush()
        seconds, verdict = self.process.stdout.readline().split()
        return float(seconds), verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=Path(__file__).resolve().parents[1])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--systems", nargs="+", default=SYSTEMS)
    how = parser.parse_args()
    pair = Checkout(how.old), Checkout(how.new)
    for system in how.systems:
        for checkout in pair:
            checkout.audit(system)  # warm up
        turns = [[checkout.audit(system) for checkout in pair] for _ in range(how.turns)]
        (_, was), (_, now) = turns[0]
        old, new = (statistics.median(turn[i][0] for turn in turns) for i in (0, 1))
        ratio = statistics.median(new[0] / old[0] for old, new in turns)
        same = was if was == now else f"{was} -> {now}"
        print(f"{system:20s} {same:14s} {1e3 * old:8.0f} ms -> {1e3 * new:6.0f} ms   x {ratio:.2f}")
    for checkout in pair:
        checkout.process.communicate()


if __name__ == "__main__":
    main()
