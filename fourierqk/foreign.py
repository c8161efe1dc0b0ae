"""A model that somebody else wrote: made from a Python file, with weights from a checkpoint."""
import importlib.util
import inspect
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from fourierqk.adapter import Model

__all__ = ["from_file"]

NESTED = ("state_dict", "model_state_dict", "model")  # under which trainers keep the weights in a checkpoint


def from_file(place: str, checkpoint: Path | None = None) -> Model:
    """The model that `path/to/file.py:name` stands for.

    name: a function (or class) that makes the model without arguments, or the model itself: an nn.Module or a function
    ids (B, T) -> logits (B, T, V). checkpoint: a .safetensors file, or a state_dict that torch.save wrote; nothing but
    tensors is ever unpickled. The file itself is run. FileNotFoundError, ValueError: what is missing or does not fit.
    """
    file, _, name = place.rpartition(":")
    path = Path(file)
    found = getattr(_run(path), name, None)
    if not callable(found):
        raise ValueError(f"{path} has no {name!r} that could be called: name a function that makes the model")
    try:
        model = found() if not isinstance(found, nn.Module) and _takes_nothing(found) else found
    except SystemExit as e:
        raise ValueError(f"{name}() in {path} ends the program ({e.code}) instead of making a model") from e
    if not callable(model):
        raise ValueError(f"{name}() in {path} made {type(model).__name__}, no callable ids (B, T) -> logits (B, T, V)")
    if checkpoint is not None:
        _load(model, checkpoint)
    return model


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: give path/to/file.py:make_model")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ValueError(f"{path} is no Python file: give path/to/file.py:make_model")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))  # its own imports are beside it
    sys.modules.setdefault(path.stem, module)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except SystemExit as e:
        raise ValueError(f"{path} ends the program when it is run ({e.code}): guard it with `if __name__ ...`") from e
    return module


def _takes_nothing(found: Any) -> bool:
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        return False
    return True


def _load(model: Model, path: Path) -> None:
    if not isinstance(model, nn.Module):
        raise ValueError(f"{path} holds weights, but a {type(model).__name__} has none to fill: give an nn.Module")
    try:
        model.load_state_dict(_weights(path))
    except RuntimeError as e:  # torch lists every missing and every unexpected name
        raise ValueError(f"the weights in {path} do not fit the model: {e}") from e


def _weights(path: Path) -> Mapping[str, Tensor]:
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint {path}")
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except SafetensorError as e:
            raise ValueError(f"{path} is no .safetensors file: {e}") from e
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as e:
        raise ValueError(f"{path} holds more than tensors, or is damaged: save model.state_dict() alone ({e})") from e
    held = next((held[name] for name in NESTED if isinstance(held, Mapping) and name in held), held)
    if not isinstance(held, Mapping) or not all(isinstance(v, Tensor) for v in held.values()):
        raise ValueError(f"{path} holds no state_dict, neither at its top nor under {', '.join(NESTED)}")
    return held
