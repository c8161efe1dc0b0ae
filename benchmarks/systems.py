"""What each system of the paper costs beside base-dot: python benchmarks/systems.py

- a training step at the presets tiny, small and paper, all systems and base-dot in turn;
- the filters alone, forward and backward, as attention asks for them, from T = 256 to T = 16384.

A row shows the median time, and the median and the quartiles of its ratio to the first row in the same turn, so that a
busy machine slows all alike; `benchmarks/filters.py` says how. All of it takes an hour on one free core. Less:

    python benchmarks/systems.py --sizes tiny small --turns 5 --systems fourier-qk causal-morlet --lengths 256 1024

Take OMP_NUM_THREADS=1 where others share the cores.
"""
import argparse
from collections.abc import Callable

import torch
from filters import DEVICE, race

from fourierqk.training import PRESETS
from fourierqk.zoo import SYSTEMS, build, system

BATCH = 16
TOKENS = 16384  # in a batch of the filters alone, whatever the length


def training_step(name: str, preset: str) -> Callable[[], None]:
    torch.manual_seed(0)
    cfg = PRESETS[preset].gpt(vocab_size=65)
    model = build(name, cfg).to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters())
    ids = torch.randint(65, (BATCH, cfg.block_size), device=DEVICE)

    def run() -> None:
        optimiser.zero_grad()
        model(ids, ids)[1].backward()
        optimiser.step()

    return run


def filtering(name: str, length: int) -> Callable[[], None]:
    """Queries and keys of the preset paper through the filter of a system, and back."""
    cfg = PRESETS["paper"].gpt(vocab_size=65)
    filter = system(name).filter(cfg).to(DEVICE)
    shape = (TOKENS // length, length, cfg.n_head, cfg.n_embd // cfg.n_head)
    q, k = (torch.randn(shape, device=DEVICE).transpose(1, 2).requires_grad_() for _ in range(2))

    def run() -> None:
        q.grad = k.grad = None
        sum(y.sum() for y in filter.together(q, k)).backward()

    return run


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--sizes", nargs="*", default=["tiny", "small", "paper"], help="presets of the training steps")
    ask.add_argument("--lengths", nargs="*", type=int, default=[256, 1024, 4096, 16384], help="T of the filters alone")
    ask.add_argument("--systems", nargs="+", default=[*SYSTEMS], help="beside base-dot, which comes first")
    ask.add_argument("--turns", type=int, default=9, help="of each measurement; the preset paper takes a third of them")
    todo = ask.parse_args()
    names = ["base-dot", *(name for name in todo.systems if name != "base-dot")]
    print(f"torch {torch.__version__}, {DEVICE}, {torch.get_num_threads()} threads, float32")
    for size in todo.sizes:
        turns = max(3, todo.turns // 3) if size == "paper" else todo.turns
        race(f"Training step, {size}, batch {BATCH}", {name: training_step(name, size) for name in names}, turns)
    for length in todo.lengths:
        runs = {name: filtering(name, length) for name in names if system(name).filter}
        race(f"Filters alone, forward and backward, of {TOKENS // length} texts of {length} tokens", runs, todo.turns)


if __name__ == "__main__":
    main()
