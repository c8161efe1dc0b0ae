"""Write book/records/future: three small models of verse, weights and losses, which the FutureEditor runs in the page.

    python tools/future_models.py

Weights are whole numbers of eight bits, a scale a row; the losses are of the model with these very weights. Run it from
a commit without changes, or the records say otherwise.
"""
import base64
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fourierqk.data import Corpus, verse
from fourierqk.losses import excess, honest_loss, ordered_loss
from fourierqk.model import GPTConfig, LanguageModel, attentions
from fourierqk.prefix import PrefixFilter
from fourierqk.records import provenance
from fourierqk.storage import write_json
from fourierqk.training import PRESETS, train
from fourierqk.zoo import build

__all__ = ["NAMES", "PRESET", "main", "measure", "restored"]

FOLDER = Path(__file__).resolve().parents[1] / "book" / "records" / "future"
NAMES = ("base-dot", "fourier-qk", "prefix-fourier-qk")
PRESET = PRESETS["tiny"].changed(
    n_embd=32, n_head=2, block_size=32, steps=2500, batch=32, lr=4e-3, eval_every=500, seed=0
)


def measure(name: str, corpus: Corpus) -> dict[str, Any]:
    """The record of a system, trained now."""
    torch.manual_seed(PRESET.train.seed)
    model = build(name, PRESET.gpt(len(corpus.vocab)))
    train(model, corpus, PRESET.train)
    record = {
        "system": name, "vocab": "".join(corpus.vocab), "corpus": {"name": corpus.name, "sha256": corpus.sha256},
        "model": asdict(model.cfg), "train": asdict(PRESET.train), "filter": _filter(model),
        "weights": {key: _packed(w) for key, w in model.state_dict().items() if key != "head.weight"},
    }  # fmt: skip
    model = restored(record)
    ordered, honest = ordered_loss(model, corpus), honest_loss(model, corpus)
    over = excess(ordered, corpus)
    losses = {"ordered": ordered.as_dict(), "honest": honest.as_dict(), "floor": {"below": over.below}}
    return record | {"losses": losses, "floor": ordered.mean - over.mean}  # the oracle's loss, alike for all systems


def restored(record: dict[str, Any]) -> LanguageModel:
    """The model of a record, with the weights as the page reads them."""
    model = build(record["system"], GPTConfig(**record["model"]))
    weights = {key: _unpacked(packed) for key, packed in record["weights"].items()}
    model.load_state_dict(weights | {"head.weight": weights["tokens.weight"]})
    return model.eval()


def _filter(model: LanguageModel) -> dict[str, Any] | None:
    """What the page needs to know of the filter beside its frequencies; None where there is none."""
    own = attentions(model)[0].filter
    prefix = isinstance(own, PrefixFilter)
    band = getattr(own.inner if prefix else own, "inner", None)
    return band and {"of": "prefix" if prefix else "window", "width": band.width}


def _packed(w: Tensor) -> dict[str, Any]:
    """A matrix by rows, each so many times its scale; a vector, or a frequency a head, as it is."""
    if w.dim() < 2 or w.shape[1] == 1:
        return {"shape": [*w.shape], "values": [float(f"{v:.7g}") for v in w.flatten().tolist()]}
    scale = torch.tensor([float(f"{v:.5g}") for v in (w.abs().amax(1) / 127).tolist()]).clamp_min(1e-8)
    whole = (w / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
    text = base64.b64encode(whole.numpy().tobytes()).decode()
    return {"shape": [*w.shape], "scale": [float(f"{v:.5g}") for v in scale.tolist()], "bytes": text}


def _unpacked(packed: dict[str, Any]) -> Tensor:
    shape = packed["shape"]
    if "values" in packed:
        return torch.tensor(packed["values"]).reshape(shape)
    whole = torch.frombuffer(bytearray(base64.b64decode(packed["bytes"])), dtype=torch.int8).reshape(shape)
    return whole * torch.tensor(packed["scale"])[:, None]


def main() -> None:
    corpus = verse()
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        write_json(FOLDER / f"{name}.json", measure(name, corpus) | provenance())
        print(f"wrote {FOLDER / name}.json")


if __name__ == "__main__":
    main()
