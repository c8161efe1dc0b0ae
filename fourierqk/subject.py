"""Talking to a model we did not write: any callable ids (B, T) -> logits (B, T, V).

An nn.Module, a function around one, a model that returns (logits, loss) or an object with `.logits`: measured as it
is, in eval mode, and left as it was found.
"""
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Model", "at_rest", "block_size", "device_of", "logits", "modules_of"]

Model = Callable[[Tensor], Any]  # ids (B, T) -> logits (B, T, V), or a tuple, dict or object that holds them


def modules_of(model: Model) -> list[nn.Module]:
    """The nn.Modules behind a callable: itself, the object of a bound method, or what a function closes over."""
    if isinstance(model, nn.Module):
        return [model]
    if isinstance(model, functools.partial):
        held = [model.func, *model.args, *model.keywords.values()]
    elif inspect.ismethod(model):
        held = [model.__self__]
    elif inspect.isfunction(model):
        known = inspect.getclosurevars(model)
        held = [*known.nonlocals.values(), *known.globals.values()]
    else:
        held = list(getattr(model, "__dict__", {}).values())
    return [m for m in held if isinstance(m, nn.Module)]


def device_of(model: Model) -> torch.device:
    """Where the model's weights live; the CPU when it has none."""
    for m in modules_of(model):
        for t in (*m.parameters(), *m.buffers()):
            return t.device
    return torch.device("cpu")


def block_size(model: Model) -> int | None:
    """The longest text a model says it can read (`cfg` or `config`, the usual names), None when it does not say."""
    for m in (model, *modules_of(model)):
        for holder in (getattr(m, "cfg", None), getattr(m, "config", None)):
            for name in ("block_size", "n_positions", "max_position_embeddings", "sequence_len"):
                n = getattr(holder, name, None)
                if isinstance(n, int) and n > 0:
                    return n
    return None


@contextmanager
def at_rest(model: Model) -> Iterator[None]:
    """Eval mode, no gradients, no autocast; every module's own mode is put back afterwards."""
    modes = [(m, m.training) for root in modules_of(model) for m in root.modules()]
    try:
        for m, _ in modes:
            m.training = False  # not eval(): a mode is a flag of each module, and some override train()
        with torch.no_grad(), torch.autocast(device_of(model).type, enabled=False):
            yield
    finally:
        for m, mode in modes:
            m.training = mode


def _unwrap(out: Any) -> Any:
    if isinstance(out, dict) and "logits" in out:
        return out["logits"]
    if isinstance(getattr(out, "logits", None), Tensor):  # before tuples: a named tuple may hold them anywhere
        return out.logits
    return out[0] if isinstance(out, tuple | list) and out else out


def _takes_targets(model: Model) -> bool:
    return isinstance(model, nn.Module) and "targets" in inspect.signature(model.forward).parameters


def logits(model: Model, ids: Tensor) -> Tensor:
    """The model's logits, (B, T, V) in its own precision. ValueError when it fails or returns something else."""
    b, t = ids.shape
    try:
        out = _unwrap(model(ids.clone()))  # a model may write into what it is given
        if isinstance(out, Tensor) and out.dim() == 3 and out.shape[1] == 1 < t and _takes_targets(model):
            # nanoGPT returns the last position alone unless it is given targets: fixed ones, which tell it nothing
            out = _unwrap(model(ids.clone(), targets=torch.zeros_like(ids)))
    except Exception as e:
        raise ValueError(
            f"the model failed on ids of shape {(b, t)} with values {int(ids.min())} to {int(ids.max())} "
            f"({type(e).__name__}: {e}). Check vocab_size and length: some models take one length only"
        ) from e
    if not isinstance(out, Tensor) or out.dim() != 3 or tuple(out.shape[:2]) != (b, t) or not out.is_floating_point():
        got = f"{tuple(out.shape)} of {out.dtype}" if isinstance(out, Tensor) else type(out).__name__
        raise ValueError(
            f"expected logits (batch, time, vocabulary) = ({b}, {t}, V) for ids {(b, t)}, got {got}: give a callable "
            "that returns them, or a tuple that starts with them, or an object with .logits"
        )
    return out
