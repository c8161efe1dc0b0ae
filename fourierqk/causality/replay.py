"""One probe and its base in several roundings, with what every module reads and writes in them."""
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from fourierqk.causality.limits import HUGE, VISIBLE
from fourierqk.causality.movement import change
from fourierqk.causality.probes import Pair
from fourierqk.causality.rounding import eps_of, unrounded
from fourierqk.causality.steadiness import largest
from fourierqk.causality.subject import Roundings, Subject

__all__ = ["INPUTS", "OUTPUTS", "Glance", "Replay", "Slot", "UnpairedError"]

INPUTS, OUTPUTS = 1, 2
_Trace = list[tuple[Any, ...]]  # module calls in order of completion: path, inputs, outputs
_Mend = Callable[[int, Any], Any]  # a call and its output -> what to put in its place


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
    UnpairedError where the text decides which modules run. mended: calls whose outputs before the cut are those of the
    base, so that what leaks beside them can be seen.
    """

    def __init__(self, subject: Subject, pair: Pair, mended: frozenset[int] = frozenset()) -> None:
        self.subject, self.pair, self.mended = subject, pair, mended
        self._outputs: dict[int, tuple[Tensor, Tensor]] = {}
        self._movements: dict[int, list[Tensor] | UnpairedError] = {}
        self.calls: list[str] = []
        self.slots: list[Slot] = []

    @cached_property
    def _rounded(self) -> Roundings:
        return Roundings(self.subject)

    def outputs(self, key: int) -> tuple[Tensor, Tensor]:
        """The logits (1, T, V) of the base and of the text, or (B, T, V) of batches, in the rounding of a key."""
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
        a, left = _traced(subject, self.pair.base)
        b, right = _traced(subject, self.pair.text, _mending(self.pair, left, self.mended))
        try:
            if key == 0:
                self.slots = _slots(left, right, self.pair)
                self.calls = [path for path, _, _ in left]
            self._movements[key] = [slot.read((left, right)) for slot in self.slots]
        except UnpairedError as e:
            self._movements[key] = e
        self._outputs[key] = a, b


class Glance:
    """Where probes begin to move anything before their cuts, in the machine's own rounding alone: a hint, no proof.

    share: of the largest movement of a tensor, what counts. Of neighbours with the same base the base runs once.
    """

    def __init__(self, subject: Subject, share: float) -> None:
        self.subject, self.share = subject, share
        self._base: tuple[Tensor, _Trace] | None = None

    def start(self, pair: Pair, mended: frozenset[int], until: float) -> float:
        """The first call whose outputs move, or half a call before the first whose inputs do; infinity if none does.

        until: where to stop. UnpairedError where the text decides which modules run.
        """
        if self._base is None or not torch.equal(self._base[0], pair.base):
            self._base = pair.base, _traced(self.subject, pair.base)[1]
        left = self._base[1]
        right = _traced(self.subject, pair.text, _mending(pair, left, mended), until)[1]
        for call, side, _, a, b, axes in _paired(left[: len(right)], right, pair.extent):
            moved = change(a, b).abs().clamp(max=HUGE)
            if _past(moved, axes, pair.cut).max() > self.share * moved.max():
                return call if side == OUTPUTS else call - 0.5
        return math.inf


def _paired(
    left: _Trace, right: _Trace, extent: int
) -> Iterator[tuple[int, int, int, Tensor, Tensor, tuple[int, ...]]]:
    """The tensors of both traces that can be cut -> call, side, item, the one, the other, the axes to cut."""
    if [(path, len(i), len(o)) for path, i, o in left] != [(path, len(i), len(o)) for path, i, o in right]:
        raise UnpairedError
    for call, (one, other) in enumerate(zip(left, right, strict=True)):
        for side in (INPUTS, OUTPUTS):
            for item, (a, b) in enumerate(zip(one[side], other[side], strict=True)):
                if a.shape != b.shape:
                    raise UnpairedError
                axes = _axes(a, extent)
                if axes and a.numel():
                    yield call, side, item, a.cpu().double(), b.cpu().double(), axes


def _axes(t: Tensor, extent: int) -> tuple[int, ...]:
    return tuple(axis for axis, n in enumerate(t.shape) if n == extent)


def _slots(left: _Trace, right: _Trace, pair: Pair) -> list[Slot]:
    return [
        Slot(call, side, item, axes, pair.cut, *_follow(a, b, axes, pair.cut, eps_of(left[call][side][item])))
        for call, side, item, a, b, axes in _paired(left, right, pair.extent)
    ]


def _mending(pair: Pair, left: _Trace, mended: frozenset[int]) -> _Mend | None:
    """Puts the past of the base's outputs in the place of the text's, for some calls."""
    if not mended:
        return None

    def mend(call: int, out: Any) -> Any:
        if call not in mended or call >= len(left):
            return out
        known = iter(left[call][OUTPUTS])
        with unrounded():
            return tree_map(lambda leaf: _with_past(leaf, known, pair) if isinstance(leaf, Tensor) else leaf, out)

    return mend


def _with_past(out: Tensor, known: Iterator[Tensor], pair: Pair) -> Tensor:
    base, mended = next(known, None), out.clone()
    real = torch.view_as_real(mended) if mended.is_complex() else mended
    if base is not None and base.shape == real.shape and (axes := _axes(base, pair.extent)):
        _past(real, axes, pair.cut).copy_(_past(base, axes, pair.cut))
    return mended


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


class _EnoughError(BaseException):
    """All calls that are asked for were seen."""


def _traced(
    subject: Subject, ids: Tensor, mend: _Mend | None = None, until: float = math.inf
) -> tuple[Tensor, _Trace]:
    """The logits, and every module call of the forward pass in order of completion: (path, inputs, outputs).

    ids: (T,) or (B, T). until: the call at which to stop; there are no logits then.
    """
    adapter, handles = subject.fresh(), []
    calls: _Trace = []
    pending: list[list[Tensor]] = []

    def enter(module: nn.Module, args: tuple, kwargs: dict) -> None:
        pending.append(_tensors((args, kwargs)))  # cloned on entry: a module may work in place

    def leave(path: str) -> Callable[..., Any]:
        def hook(module: nn.Module, args: tuple, kwargs: dict, out: Any) -> Any:
            out = mend(len(calls), out) if mend else out
            calls.append((path, pending.pop(), _tensors(out)))
            if len(calls) > until:
                raise _EnoughError
            return out

        return hook

    for root in adapter.roots:
        for path, m in root.named_modules():
            if isinstance(m, torch.jit.ScriptModule):  # takes no hooks: whoever calls it is as near as one can get
                continue
            handles.append(m.register_forward_pre_hook(enter, prepend=True, with_kwargs=True))
            handles.append(m.register_forward_hook(leave(path), with_kwargs=True))
    try:
        return subject.run(adapter, torch.atleast_2d(ids)), calls
    except _EnoughError:
        return torch.empty(0), calls
    finally:
        for h in handles:
            h.remove()


def _tensors(value: object) -> list[Tensor]:
    found = []
    with unrounded():
        for leaf in tree_leaves(value):
            leaf = leaf if isinstance(leaf, Tensor) else getattr(leaf, "logits", None)
            if isinstance(leaf, Tensor):
                found.append((torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf).detach().clone())
    return found
