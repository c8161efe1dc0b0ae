"""What a token costs when the text before it is kept, not read again: python benchmarks/streaming.py

Models of the preset `small`, at the end of a text of 512 tokens:

- a token by the stream of each system against one of base-dot, which keeps keys and values too;
- a prompt in one piece, the same way;
- of each system, a token by its stream against the whole window anew, as `generate` reads where nothing streams.

Streams are first checked to say what the model says. Then contenders take turns, so that a busy machine slows all
alike; a row shows the median time, and the median and the quartiles of its ratio to the first row in the same turn.
"""
import torch
from filters import DEVICE, race  # beside this file
from torch import Tensor

from fourierqk.model import LanguageModel
from fourierqk.training import PRESETS
from fourierqk.zoo import build

NAMES = ("base-dot", "short-conv", "sliding-fourier-qk", "causal-morlet", "prefix-fourier-qk", "taps-resonator")
LENGTH, TURNS, TOKENS = 512, 15, 4  # tokens in a turn


class Reading:
    """The last tokens of a text, some in a turn: what race() warms up with, and its turns, end at the last of them."""

    def __init__(self, model: LanguageModel, ids: Tensor) -> None:
        self.read, self.ids, self.start = model.stream(), ids, LENGTH - (TURNS + 1) * TOKENS
        self.read(ids[:, : self.start])

    def __call__(self) -> None:
        for t in range(self.start, self.start + TOKENS):
            self.read(self.ids[:, t : t + 1])
        self.start += TOKENS


@torch.no_grad()
def anew(model: LanguageModel, ids: Tensor) -> None:
    for t in range(LENGTH - TOKENS, LENGTH):
        model(ids[:, : t + 1])


@torch.no_grad()
def check(name: str, model: LanguageModel, ids: Tensor) -> None:
    read, whole = model.stream(), model(ids)[0]
    pieces = torch.cat([read(piece) for piece in ids.split([500, *[1] * (LENGTH - 500)], 1)], 1)
    if not torch.allclose(pieces, whole, atol=1e-4 * whole.abs().max().item()):
        raise SystemExit(f"{name} says something else in pieces: no use in timing it")


def main() -> None:
    print(f"torch {torch.__version__}, {DEVICE}, {torch.get_num_threads()} threads, float32")
    torch.manual_seed(0)
    cfg = PRESETS["small"].changed(block_size=LENGTH).gpt(vocab_size=65)
    models = {name: build(name, cfg).to(DEVICE).eval() for name in NAMES}
    ids = torch.randint(65, (1, LENGTH), device=DEVICE)
    for name, model in models.items():
        check(name, model, ids)
    race(f"{TOKENS} tokens by a stream, after about {LENGTH}", {n: Reading(m, ids) for n, m in models.items()}, TURNS)
    race(f"A prompt of {LENGTH} tokens", {n: lambda m=m: m.stream()(ids) for n, m in models.items()}, TURNS // 2)
    for name, model in models.items():
        ways = {f"{name}, by a stream": Reading(model, ids), f"{name}, anew": lambda m=model: anew(m, ids)}
        race(f"{TOKENS} tokens after about {LENGTH}", ways, TURNS)


if __name__ == "__main__":
    main()
