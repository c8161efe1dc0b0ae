"""A model that somebody else wrote: made by their code, in a file or a package, with weights from a checkpoint."""
import importlib
import importlib.util
import inspect
import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from fourierqk.adapter import Model, beside_ids
from fourierqk.checks import nearest
from fourierqk.wrappers import bare

__all__ = ["load_model"]

NESTED = ("state_dict", "model_state_dict", "model")  # under which trainers keep the weights in a checkpoint


def load_model(place: str, checkpoint: Path | None = None) -> Model:
    """The model that `path/to/file.py:name` or `package.module:name` stands for.

    name: a function (or class) that makes the model without arguments, or the model itself: an nn.Module or a function
    ids (B, T) -> logits (B, T, V). A package is looked for in the working folder first. checkpoint: a .safetensors
    file, or a state_dict that torch.save wrote; nothing but tensors is ever unpickled. The module itself is run.
    FileNotFoundError, ImportError, ValueError: what is missing or does not fit.
    """
    home, _, name = place.rpartition(":")
    with _found_first(str(Path(home).parent.resolve()) if home.endswith(".py") else ""):  # "": the working folder
        model = _made(place, home, name)
    if checkpoint is not None:
        _load(model, checkpoint)
    return model


def _made(place: str, home: str, name: str) -> Model:
    module = _run(Path(home)) if home.endswith(".py") else _import(home)
    found = getattr(module, name, None)
    if not callable(found):
        meant = nearest(name, [n for n, x in vars(module).items() if callable(x)])
        way_out = meant or "name a function that makes the model"
        raise ValueError(f"{home} has no {name!r} that could be called: {way_out}")
    try:
        model = found if isinstance(found, nn.Module) or _reads_ids(found, place) else found()
    except SystemExit as e:
        raise ValueError(f"{name}() in {home} ends the program ({e.code}) instead of making a model") from e
    if not callable(model):
        raise ValueError(f"{name}() in {home} made {type(model).__name__}, no callable ids (B, T) -> logits (B, T, V)")
    if needed := beside_ids(model):
        given = ", ".join(f"{argument}=..." for argument in needed)
        raise ValueError(f"{place} needs {', '.join(needed)} beside ids, and is called with ids alone: name a function "
                         f"that fills them in, def {name}_of_ids(ids): return {name}(ids, {given})")  # fmt: skip
    return model


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: give path/to/file.py:make_model")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise ValueError(f"{path} is no Python file: give path/to/file.py:make_model")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]  # a .py file has one
    except SystemExit as e:
        raise ValueError(f"{path} ends the program when it is run ({e.code}): guard it with `if __name__ ...`") from e
    except ImportError as e:
        if "relative import" not in str(e):
            raise
        raise ValueError(f"{path} imports from its own package ({e}): name it as package.module:NAME instead") from e
    return module


def _import(name: str) -> ModuleType:
    """A module by its dotted name, as `python -m` would find it."""
    try:
        return importlib.import_module(name)
    except SystemExit as e:
        raise ValueError(f"{name} ends the program when it is imported ({e.code})") from e


@contextmanager
def _found_first(folder: str) -> Iterator[None]:
    """While a model is made, imports look into a folder first; what is imported later is none of its business."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:  # a stranger's code may have taken it out
            sys.path.remove(folder)


def _reads_ids(found: Any, place: str) -> bool:
    """Whether what was found is called with ids, and is no maker: it needs one argument. ValueError: it needs more."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # made in C: it says nothing of its arguments
        return True
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(needed) > 1 or (needed and isinstance(found, type)):
        raise ValueError(f"{place} needs arguments ({', '.join(needed)}): name a function that makes the model without")
    return bool(needed)


def _load(model: Model, path: Path) -> None:
    if not isinstance(model, nn.Module):
        raise ValueError(f"{path} holds weights, but a {type(model).__name__} has none to fill: give an nn.Module")
    weights = _weights(path)
    if weights.keys() != model.state_dict().keys():
        weights = {bare(name): value for name, value in _inside(weights, model).items()}
    try:
        model.load_state_dict(weights)
    except RuntimeError as e:  # torch lists every missing and every unexpected name
        raise ValueError(f"the weights in {path} do not fit the model: {e}") from e


def _inside(weights: Mapping[str, Tensor], model: nn.Module) -> Mapping[str, Tensor]:
    """Their names within what holds them all, if the model has nothing of its name: Lightning's "model", say."""
    holders = {name.partition(".")[0] if "." in name else "" for name in weights}
    if len(holders) != 1 or holders <= {"", *(name.partition(".")[0] for name in model.state_dict())}:
        return weights
    return {name.partition(".")[2]: value for name, value in weights.items()}


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
    except (pickle.UnpicklingError, RuntimeError, EOFError) as e:  # whose advice to unpickle it all the same is none
        raise ValueError(f"{path} holds more than tensors, or is damaged: save model.state_dict() alone") from e
    held = next((held[name] for name in NESTED if isinstance(held, Mapping) and name in held), held)
    if not isinstance(held, Mapping) or not all(isinstance(v, Tensor) for v in held.values()):
        raise ValueError(f"{path} holds no state_dict, neither at its top nor under {', '.join(NESTED)}")
    return held
