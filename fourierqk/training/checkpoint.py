"""The file of a run: weights, optimiser, best weights and history, and what run they are of."""
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fourierqk.data import Corpus
from fourierqk.filters import Centre, FeatureMap
from fourierqk.model import Attention
from fourierqk.records import INCIDENTAL, differences
from fourierqk.storage import read_tensors, write_tensors
from fourierqk.wrappers import bare

__all__ = [
    "CHECKPOINT", "architecture", "best_weights", "check", "fill", "identity", "restore", "save", "state", "steps_done",
]  # fmt: skip

CHECKPOINT = "checkpoint.safetensors"


def architecture(model: nn.Module) -> dict[str, Any]:
    """The shape of a model and all its filters, as far as numbers, words and what is never learned tell them apart."""
    filters = {bare(name): _constants(m) for name, m in model.named_modules() if isinstance(m, FeatureMap | Centre)}
    filters |= {f"{bare(name)}.on": m.on for name, m in model.named_modules() if _is_placed(m)}
    cfg: Any = model.cfg
    return json.loads(json.dumps({"model": asdict(cfg), "filters": filters}))


def _is_placed(m: nn.Module) -> bool:
    """Whether a filter serves other signals than the queries and keys of the paper."""
    return isinstance(m, Attention) and m.on != "qk"


def _constants(part: nn.Module) -> dict[str, Any]:
    """Its class, the numbers and words among its attributes, and its tensors that are never learned."""
    own = {k: v for k, v in vars(part).items() if k != "training" and type(v) in (bool, int, float, str, tuple, list)}
    fixed = [*part.named_buffers(recurse=False)]
    fixed += [(k, p) for k, p in part.named_parameters(recurse=False) if not p.requires_grad]
    return {"type": type(part).__name__, **own, **{k: _fingerprint(t) for k, t in fixed if t.numel()}}


def _fingerprint(t: Tensor) -> str:
    """Shape and one mixed sum, to so few digits that another machine's round-off does not make it another tensor."""
    flat = torch.view_as_real(t).flatten() if t.is_complex() else t.flatten()
    mixed = flat.cpu().to(torch.float64) * torch.arange(1, len(flat) + 1, dtype=torch.float64).sin()
    return f"{tuple(t.shape)}: {mixed.sum():.4g}"


def state(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model by the names that they have where none of its layers is compiled apart."""
    return {bare(name): value for name, value in model.state_dict().items()}


def identity(model: nn.Module, corpus: Corpus, training: Mapping[str, Any]) -> dict[str, Any]:
    """What must agree for a checkpoint to be of this run: shape, filters, text and training, but not where it runs.

    A record names its system (`records.identity`); here any model may be trained, so its filters speak for it.
    """
    text = {"name": corpus.name, "sha256": corpus.sha256}
    train = {k: v for k, v in training.items() if k not in INCIDENTAL}
    return {**architecture(model), "corpus": text, "train": json.loads(json.dumps(train))}


def save(
    path: Path, run: Mapping[str, Any], history: Mapping[str, Any], best: Mapping[str, Tensor],
    model: nn.Module | None = None, opt: torch.optim.Optimizer | None = None,
) -> None:  # fmt: skip
    """Write a checkpoint, atomically; without model and optimiser it is the file of a finished run."""
    parts = {f"best.{k}": v for k, v in best.items()}
    if model is not None and opt is not None:
        parts |= {f"model.{k}": v for k, v in state(model).items()}
        parts |= {f"optimiser.{i}.{k}": v for i, s in opt.state_dict()["state"].items() for k, v in s.items()}
    write_tensors(path, parts, {"run": run, "history": history})


def restore(
    path: Path, run: Mapping[str, Any], model: nn.Module, opt: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Fill model and optimiser from a checkpoint -> (best weights, history).

    None where it is of a run, this or another, that never reached an evaluation: there is nothing to go on from, and
    nothing to lose. ValueError where the file is torn, foreign, or of another run than `run`: it says what differs.
    """
    way_out = "Take another folder, or start anew with resume=False"
    try:
        tensors, about = read_tensors(path)
        there, history = about["run"], about["history"]
        if not isinstance(there, dict) or not isinstance(history, dict):
            raise TypeError(f"{path} tells of no run")
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(f"cannot resume: {e}. {way_out}") from e
    if not history.get("steps"):
        return None
    if differ := differences(there, run):
        raise ValueError(f"{path} is of another run: {'; '.join(differ)}. {way_out}")
    best, weights = _part(tensors, "best."), _part(tensors, "model.")
    fill(model, weights or best, path)
    if weights:
        states: dict[int, dict[str, Tensor]] = {}
        for name, value in _part(tensors, "optimiser.").items():
            i, key = name.split(".")
            states.setdefault(int(i), {})[key] = value
        opt.load_state_dict({**opt.state_dict(), "state": states})
    return best, history


def best_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The best weights in a checkpoint, and what it knows of its run."""
    tensors, about = read_tensors(path)
    best = _part(tensors, "best.")
    if not best:
        raise ValueError(f"{path} holds no evaluated weights yet: let the run reach its first evaluation")
    return best, {**about["run"], "history": about["history"]}


def check(model: nn.Module, about: Mapping[str, Any], path: Path) -> None:
    """ValueError where a model is not that whose weights are in a checkpoint; about: its run, from `best_weights`."""
    here = architecture(model)
    if differ := differences({part: about[part] for part in here}, here):
        raise ValueError(f"the weights in {path} do not fit this model: {'; '.join(differ)}")


def steps_done(path: Path) -> int:
    """How many training steps a checkpoint holds; 0 where there is none, or none that can be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "pt") as f:
            return json.loads(f.metadata()["fourierqk"])["history"]["steps"][-1]
    except (OSError, SafetensorError, ValueError, LookupError, TypeError):
        return 0


def fill(model: nn.Module, weights: Mapping[str, Tensor], place: str | Path) -> None:
    """Load weights, as `state` names them, into a model; ValueError where they do not fit."""
    own = {bare(name): name for name in model.state_dict()}
    try:
        model.load_state_dict({own.get(name, name): value for name, value in weights.items()})
    except RuntimeError as e:
        raise ValueError(f"the weights in {place} do not fit this model: {e}") from e


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
