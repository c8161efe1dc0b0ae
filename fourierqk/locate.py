"""Where a leak enters: the first module whose inputs agree before the cut and whose outputs do not."""
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from fourierqk.probes import Subject
from fourierqk.subject import at_rest, device_of, logits, modules_of

__all__ = ["Place", "locate"]


@dataclass(frozen=True)
class Place:
    """A module path (the class, for the model itself); for a leak in its own code, between which children."""

    path: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.detail})" if self.detail else self.path


@dataclass
class _Call:
    """One call of a module: whether its inputs and outputs differ before the cut (None: no time axis to judge by)."""

    path: str
    inputs: bool | None
    outputs: bool | None


def _tensors(value: object) -> list[Tensor]:
    found = []
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tensor):
            found.append(leaf.detach().clone())
        elif hasattr(leaf, "logits") and isinstance(leaf.logits, Tensor):
            found.append(leaf.logits.detach().clone())
    return found


def _record(subject: Subject, ids: Tensor) -> list[tuple[str, list[Tensor], list[Tensor]]]:
    """Every module call of one forward pass, in order of completion: (path, inputs, outputs)."""
    model, calls, handles = subject.instance(), [], []
    pending: list[list[Tensor]] = []

    def enter(module: nn.Module, args: tuple, kwargs: dict) -> None:
        pending.append(_tensors((args, kwargs)))  # cloned on entry: a module may work in place

    def leave(path: str):
        return lambda module, args, kwargs, out: calls.append((path, pending.pop(), _tensors(out)))

    for root in modules_of(model):
        for path, m in root.named_modules():
            handles.append(m.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(m.register_forward_hook(leave(path), with_kwargs=True))
    try:
        with at_rest(model):
            logits(model, ids.to(device_of(model)))
    finally:
        for h in handles:
            h.remove()
    return calls


def _differs(a: Tensor, b: Tensor, cut: int, length: int, tolerance: float) -> bool | None:
    """Whether two tensors of a batch of one differ before the cut, along time; None when no axis has its length.

    Where several axes have that length, one along which the past agrees clears the tensor.
    """
    if a.shape != b.shape:
        return True
    axes = [i for i, n in enumerate(a.shape) if n == length]
    if not axes:
        return None
    a, b = (torch.view_as_real(t) if t.is_complex() else t for t in (a, b))
    d = (a.double() - b.double()).abs()
    d = torch.where((a == b) | (a.isnan() & b.isnan()), 0, d).nan_to_num(nan=torch.inf)
    slack = tolerance if a.is_floating_point() else 0
    for axis in axes:
        before, after = d.narrow(axis, 0, cut).max(), d.narrow(axis, cut, length - cut).max()
        if before <= slack * after:
            return False
    return True


def _judge(pairs: list[tuple[Tensor, Tensor]], *how: object) -> bool | None:
    known = [v for v in (_differs(a, b, *how) for a, b in pairs) if v is not None]
    return any(known) if known else None


def locate(subject: Subject, x: Tensor, y: Tensor, cut: int, tolerance: float) -> Place | None:
    """Compare the runs on two texts (T,) that agree before the cut. None: no module shows it (an opaque function)."""
    first, second = (_record(subject, ids[None]) for ids in (x, y))
    if [c[0] for c in first] != [c[0] for c in second]:
        return None  # the text decides which modules run: their calls cannot be paired
    how = (cut, len(x), tolerance)
    calls = [
        _Call(path, _judge(list(zip(ia, ib, strict=False)), *how), _judge(list(zip(oa, ob, strict=False)), *how))
        for (path, ia, oa), (_, ib, ob) in zip(first, second, strict=True)
    ]
    for i, call in enumerate(calls):
        if call.inputs is False and call.outputs:  # inner modules complete first: this is the innermost
            root = type(modules_of(subject.model)[0]).__name__  # the top module has no path: its class stands for it
            return Place(call.path or root, _between(calls[:i], call.path))
    return None


def _between(calls: list[_Call], parent: str) -> str:
    """In which stretch of the parent's own code the leak arises: after the last clean child, before the first dirty."""
    prefix = f"{parent}." if parent else ""
    inside = [(c.path[len(prefix) :], c) for c in calls if c.path.startswith(prefix)]
    inside = [(name, c) for name, c in inside if name and "." not in name]  # direct children
    dirty = next((i for i, (_, c) in enumerate(inside) if c.inputs), len(inside))
    clean = [name for name, c in inside[:dirty] if c.outputs is False]
    stretch = [f"after {name}" for name in clean[-1:]] + [f"before {name}" for name, _ in inside[dirty : dirty + 1]]
    return ", ".join(["in its own code", *stretch]) if stretch else ""
