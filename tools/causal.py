"""Write book/records/causal-verse and causal-shakespeare: causal filters, their taps and scales varied one at a time.

    python tools/causal.py verse 0 1 2           # a text and its seeds; finds tiny Shakespeare as the library does

Runs that are recorded already are left alone. Run it from a commit without changes, or the records say otherwise.
"""
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import torch

from fourierqk import PRESETS, SYSTEMS, Causal, Gaussian, Morlet, Unit, bins, shakespeare, train, verse
from fourierqk.causality import audit
from fourierqk.data import Corpus
from fourierqk.filters import Filter
from fourierqk.losses import floor, honest_loss, ordered_loss
from fourierqk.model import GPT, GPTConfig
from fourierqk.records import provenance
from fourierqk.storage import write_json

__all__ = ["FILTERS", "STUDIES", "main", "run"]

RECORDS = Path(__file__).resolve().parents[1] / "book" / "records"
PRESET, STEPS = "tiny", 400  # half the preset's: at its end all causal systems lie together just above verse's floor


def past(taps: int) -> Callable[[GPTConfig], Filter]:
    """The past of the paper's band of S3, so many taps of it."""
    return lambda cfg: Unit(Causal(Gaussian(bins(4, 256), bins(2, 256)), taps))


ZOO = ("base-dot", "causal-gaussian", "causal-mexican-hat", "causal-morlet", "causal-morlet-learned",
       "causal-morlet-identity")  # fmt: skip
FILTERS: dict[str, Callable[[GPTConfig], Filter]] = {name: SYSTEMS[name].filter for name in ZOO} | {
    "past half, 128 taps": past(128),
    "past half, 16 taps": past(16),
    "past half, 2 taps": past(2),
    "scale 4 for 2": lambda cfg: Unit(Morlet([4.0, 4.0, 8.0, 16.0], taps=128)),  # of causal-morlet's 2, 4, 8, 16
    "scale 2 alone": lambda cfg: Unit(Morlet(2.0, taps=128)),  # all of them aliased, against none of them
    "scale 4 alone": lambda cfg: Unit(Morlet(4.0, taps=128)),
}
STUDIES: dict[str, list[str]] = {
    "verse": [*FILTERS],
    "shakespeare": [name for name in FILTERS if name not in ZOO[1:3] + ZOO[4:5]],
}


def run(name: str, corpus: Corpus, seed: int) -> dict:
    """Train a filter of the study and measure it -> its record."""
    preset = PRESETS[PRESET]
    torch.manual_seed(seed)
    cfg, how = preset.gpt(len(corpus.vocab)), replace(preset.train, steps=STEPS, eval_every=50, seed=seed)
    model = GPT(cfg, FILTERS[name](cfg))
    history = train(model, corpus, how)
    losses = {"ordered": ordered_loss(model, corpus).as_dict(), "honest": honest_loss(model, corpus).as_dict()}
    if corpus.oracle is not None:
        d = floor(model, corpus)
        losses["floor"] = {"difference": d.mean, "se": d.se, "below": d.below}
    return {
        "system": name, "preset": PRESET, "seed": seed, "model": asdict(cfg), "train": asdict(how),
        "corpus": {"name": corpus.name, "sha256": corpus.sha256, "entropy_rate": corpus.entropy_rate},
        "losses": losses,  # nats per token
        "audit": {"verdict": audit(model, len(corpus.vocab), cfg.block_size).verdict},
        "history": asdict(history),
    }  # fmt: skip


def main(text: str, seeds: list[int]) -> None:
    corpus, folder = {"verse": verse, "shakespeare": shakespeare}[text](), RECORDS / f"causal-{text}"
    folder.mkdir(exist_ok=True)
    for seed in seeds:
        for name in STUDIES[text]:
            path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name)}-s{seed}.json"
            if not path.exists():
                write_json(path, run(name, corpus, seed) | provenance())
                print(f"wrote {path}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(seed) for seed in sys.argv[2:]])
