"""One probe and its base in several roundings, with what every module reads and writes in them."""
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from fourierqk.causality.limits import VISIBLE
from fourierqk.causality.movement import change
from fourierqk.causality.probes import Pair
from fourierqk.causality.rounding import eps_of
from fourierqk.causality.steadiness import largest
from fourierqk.causality.subject import Roundings, Subject

__all__ = ["INPUTS", "OUTPUTS", "Replay", "Slot", "UnpairedError"]

INPUTS, OUTPUTS = 1, 2
_Trace = list[tuple[Any, ...]]  # module calls in order of completion: path, inputs, outputs


class UnpairedError(Exception):
    """The text, or the rounding, decides which modules run: their calls cannot be compared."""


@dataclass(frozen=True)
class Slot:
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
            return change(*(_past(t, self.axes, self.cut).cpu().double() for t in (a, b))).flatten()[self.index]
        except (IndexError, RuntimeError):  # another rounding, other calls
            raise UnpairedError from None


class Replay:
    """One probe in as many roundings as are asked for, each computed once.

    calls: the path of every module call, in order of completion; slots: what the modules read and write. Both raise
    UnpairedError where the text decides which modules run.
    """

    def __init__(self, subject: Subject, pair: Pair) -> None:
        self.subject, self.pair = subject, pair
        self._outputs: dict[int, tuple[Tensor, Tensor]] = {}
        self._movements: dict[int, list[Tensor] | UnpairedError] = {}
        self.calls: list[str] = []
        self.slots: list[Slot] = []

    @cached_property
    def _rounded(self) -> Roundings:
        return Roundings(self.subject)

    def outputs(self, key: int) -> tuple[Tensor, Tensor]:
        """The logits (1, T, V) of the base and of the text, in the rounding of a key."""
        if key not in self._outputs:
            self._compute(key)
        return self._outputs[key]

    def movements(self, key: int) -> list[Tensor]:
        """How far the followed numbers of each slot move, in the rounding of a key."""
        self.outputs(key)
        found = self._movements[key]
        if isinstance(found, UnpairedError):
            raise found
        return found

    def _compute(self, key: int) -> None:
        subject = self._rounded(key)
        (a, left), (b, right) = (_traced(subject, ids[None]) for ids in (self.pair.base, self.pair.text))
        try:
            if key == 0:
                self.slots = _slots(left, right, self.pair.cut, len(self.pair.base))
                self.calls = [path for path, _, _ in left]
            self._movements[key] = [slot.read((left, right)) for slot in self.slots]
        except UnpairedError as e:
            self._movements[key] = e
        self._outputs[key] = a, b


def _slots(left: _Trace, right: _Trace, cut: int, length: int) -> list[Slot]:
    if [(path, len(i), len(o)) for path, i, o in left] != [(path, len(i), len(o)) for path, i, o in right]:
        raise UnpairedError
    found = []
    for call, (one, other) in enumerate(zip(left, right, strict=True)):
        for side in (INPUTS, OUTPUTS):
            for item, (a, b) in enumerate(zip(one[side], other[side], strict=True)):
                if a.shape != b.shape:
                    raise UnpairedError
                axes = tuple(axis for axis, n in enumerate(a.shape) if n == length)
                if axes:
                    followed = _follow(a.cpu().double(), b.cpu().double(), axes, cut, eps_of(a))
                    found.append(Slot(call, side, item, axes, cut, *followed))
    return found


def _past(t: Tensor, axes: tuple[int, ...], cut: int) -> Tensor:
    for axis in axes:
        t = t.narrow(axis, 0, cut)
    return t


def _follow(a: Tensor, b: Tensor, axes: tuple[int, ...], cut: int, eps: float) -> tuple[Tensor, Tensor, float, float]:
    """Which movements before the cut to follow, the least of each that can count, the largest before and anywhere."""
    moved = change(a, b).abs()
    past = _past(moved, axes, cut).flatten()
    least = _past((VISIBLE * eps * a.abs()).nan_to_num(posinf=0), axes, cut).flatten()
    index = largest(past, least)
    return index, least[index].cpu(), past.max().item(), moved.max().item()


def _traced(subject: Subject, ids: Tensor) -> tuple[Tensor, _Trace]:
    """The logits, and every module call of the forward pass in order of completion: (path, inputs, outputs)."""
    adapter, calls, handles = subject.fresh(), [], []
    pending: list[list[Tensor]] = []

    def enter(module: nn.Module, args: tuple, kwargs: dict) -> None:
        pending.append(_tensors((args, kwargs)))  # cloned on entry: a module may work in place

    def leave(path: str) -> Callable[..., None]:
        return lambda module, args, kwargs, out: calls.append((path, pending.pop(), _tensors(out)))

    for root in adapter.roots:
        for path, m in root.named_modules():
            if isinstance(m, torch.jit.ScriptModule):  # takes no hooks: whoever calls it is as near as one can get
                continue
            handles.append(m.register_forward_pre_hook(enter, with_kwargs=True))
            handles.append(m.register_forward_hook(leave(path), with_kwargs=True))
    try:
        return subject.run(adapter, ids), calls
    finally:
        for h in handles:
            h.remove()


def _tensors(value: object) -> list[Tensor]:
    found = []
    with _disable_current_modes():  # a copy of ours does not round
        for leaf in tree_leaves(value):
            leaf = leaf if isinstance(leaf, Tensor) else getattr(leaf, "logits", None)
            if isinstance(leaf, Tensor):
                found.append((torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf).detach().clone())
    return found
