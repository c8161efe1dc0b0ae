"""Where a leak enters: the first module whose inputs hold still before the cut and whose outputs move."""
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from fourierqk.adapter import at_rest, logits, roots
from fourierqk.causality.probes import Pair, Subject, change
from fourierqk.causality.rounding import ULPS, grain
from fourierqk.causality.steadiness import EXACT, largest, steadiness

__all__ = ["Place", "locate"]


@dataclass(frozen=True)
class Place:
    """A module path (the class, for the model itself); for a leak in its own code, between which children."""

    path: str
    detail: str = ""
    steady: bool = True  # whether the movement was seen to repeat

    def __str__(self) -> str:
        return f"{self.path} ({self.detail})" if self.detail else self.path


INPUTS, OUTPUTS = 1, 2
_Trace = list[tuple[str, list[Tensor], list[Tensor]]]  # module calls in order of completion: path, inputs, outputs


@dataclass(frozen=True)
class _Call:
    """One call of a module: whether its inputs and outputs move before the cut (None: no time axis to judge by)."""

    path: str
    inputs: bool | None
    outputs: bool | None


class _UnpairedError(Exception):
    """The text, or the rounding, decides which modules run: their calls cannot be compared."""


def locate(subject: Subject, pair: Pair) -> Place | None:
    """Compare the runs on a probe and its base. None: no module shows the leak (an opaque function).

    A choice between equals can change with the rounding. So, where no movement repeats, what moves far out of perfect
    stillness will do.
    """
    calls, jumps = [], []
    try:
        first = _traces(subject, pair)
        slots = _slots(first, pair.cut, len(pair.base))

        @cache
        def read(key: int) -> list[Tensor]:
            traces = _traces(subject.rounded(key), pair)
            return [slot.read(traces) for slot in slots]

        for i, (path, _, _) in enumerate(first[0]):
            call = _Call(path, *(_moves(slots, read, i, side) for side in (INPUTS, OUTPUTS)))
            if call.inputs is False and call.outputs:  # inner modules complete first: this is the innermost
                return _place(subject, path, calls)
            if _jumps(slots, i):
                jumps.append(replace(_place(subject, path, calls), steady=False))
            calls.append(call)
    except (_UnpairedError, ValueError):  # or the model does not let itself be rounded otherwise
        pass
    return jumps[0] if jumps else None


def _place(subject: Subject, path: str, calls: list[_Call]) -> Place:
    root = type(roots(subject.model)[0]).__name__  # the top module has no path: its class stands for it
    return Place(path or root, _between(calls, path))


def _traces(subject: Subject, pair: Pair) -> tuple[_Trace, _Trace]:
    a, b = _trace(subject, pair.base), _trace(subject, pair.text)
    if [(path, len(i), len(o)) for path, i, o in a] != [(path, len(i), len(o)) for path, i, o in b]:
        raise _UnpairedError
    return a, b


@dataclass(frozen=True)
class _Slot:
    """One tensor of a call, the axes along which time may run, and the movements before the cut to follow there.

    Scores of all pairs of tokens have two such axes: there the past is where both lie before the cut. Of every tensor
    only the largest movements are kept: all activations in all roundings would not fit.
    """

    call: int
    side: int
    item: int
    axes: tuple[int, ...]
    cut: int
    index: Tensor
    least: Tensor
    before: float  # the largest movement before the cut
    most: float  # and anywhere

    def read(self, traces: tuple[_Trace, _Trace]) -> Tensor:
        try:
            a, b = (trace[self.call][self.side][self.item] for trace in traces)
            return change(*(_past(t, self.axes, self.cut).double() for t in (a, b))).flatten()[self.index].cpu()
        except (IndexError, RuntimeError):  # another rounding, other calls
            raise _UnpairedError from None


def _slots(traces: tuple[_Trace, _Trace], cut: int, length: int) -> list[_Slot]:
    found = []
    for call, (left, right) in enumerate(zip(*traces, strict=True)):
        for side in (INPUTS, OUTPUTS):
            for item, (a, b) in enumerate(zip(left[side], right[side], strict=True)):
                if a.shape != b.shape:
                    raise _UnpairedError
                axes = tuple(axis for axis, n in enumerate(a.shape) if n == length)
                if axes:
                    followed = _follow(a.double(), b.double(), axes, cut, grain(a))
                    found.append(_Slot(call, side, item, axes, cut, *followed))
    return found


def _past(t: Tensor, axes: tuple[int, ...], cut: int) -> Tensor:
    for axis in axes:
        t = t.narrow(axis, 0, cut)
    return t


def _follow(a: Tensor, b: Tensor, axes: tuple[int, ...], cut: int, eps: float) -> tuple[Tensor, Tensor, float, float]:
    """Which movements before the cut to follow, the least of each that can count, the largest before and anywhere."""
    moved = change(a, b).abs()
    past = _past(moved, axes, cut).flatten()
    least = _past((ULPS * eps * a.abs()).nan_to_num(posinf=0), axes, cut).flatten()
    index = largest(past, least)
    return index, least[index].cpu(), past.max().item(), moved.max().item()


def _jumps(slots: list[_Slot], call: int) -> bool:
    """Whether a call makes much movement before the cut out of none at all, in the machine's own rounding."""
    still = all(s.before == 0 for s in slots if (s.call, s.side) == (call, INPUTS))
    return still and any(s.before > EXACT * s.most for s in slots if (s.call, s.side) == (call, OUTPUTS))


def _moves(slots: list[_Slot], read: Callable[[int], list[Tensor]], call: int, side: int) -> bool | None:
    """Whether any tensor on one side of a call moves before the cut, in every rounding; None without a time axis."""
    found = [(j, slot) for j, slot in enumerate(slots) if (slot.call, slot.side) == (call, side)]
    steady = [len(slot.index) and steadiness(lambda key: (read(key)[j], slots[j].least), slot.most).repeats  # noqa: B023
              for j, slot in found]  # fmt: skip
    return any(steady) if found else None


def _trace(subject: Subject, ids: Tensor) -> _Trace:
    """Every module call of one forward pass, in order of completion: (path, inputs, outputs)."""
    model, calls, handles = subject.instance(), [], []
    pending: list[list[Tensor]] = []

    def enter(module: nn.Module, args: tuple, kwargs: dict) -> None:
        pending.append(_tensors((args, kwargs)))  # cloned on entry: a module may work in place

    def leave(path: str):
        return lambda module, args, kwargs, out: calls.append((path, pending.pop(), _tensors(out)))

    for root in roots(model):
        for path, m in root.named_modules():
            if isinstance(m, torch.jit.ScriptModule):  # takes no hooks: whoever calls it is as near as one can get
                continue
            handles.append(m.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(m.register_forward_hook(leave(path), with_kwargs=True))
    try:
        with at_rest(model, subject.training), subject.arithmetic():
            logits(model, ids[None].to(subject.device).repeat_interleave(subject.copies, 0))
    finally:
        for h in handles:
            h.remove()
    return calls


def _tensors(value: object) -> list[Tensor]:
    found = []
    with _disable_current_modes():  # a copy of ours does not round
        for leaf in tree_leaves(value):
            leaf = leaf if isinstance(leaf, Tensor) else getattr(leaf, "logits", None)
            if isinstance(leaf, Tensor):
                found.append((torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf).detach().clone())
    return found


def _between(calls: list[_Call], parent: str) -> str:
    """In which stretch of the parent's own code the leak arises: after the last clean child, before the first dirty."""
    prefix = f"{parent}." if parent else ""
    inside = [(c.path[len(prefix) :], c) for c in calls if c.path.startswith(prefix)]
    inside = [(name, c) for name, c in inside if name and "." not in name]  # direct children
    dirty = next((i for i, (_, c) in enumerate(inside) if c.inputs), len(inside))
    clean = [name for name, c in inside[:dirty] if c.outputs is False]
    stretch = [f"after {name}" for name in clean[-1:]] + [f"before {name}" for name, _ in inside[dirty : dirty + 1]]
    return ", ".join(["in its own code", *stretch]) if stretch else ""
