"""Where a leak enters: the first module whose inputs hold still before the cut and whose outputs move."""
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fourierqk.adapter import RefusedError
from fourierqk.causality.limits import CONFIRMED, EXACT
from fourierqk.causality.probes import Pair
from fourierqk.causality.replay import INPUTS, OUTPUTS, Glance, Replay, UnpairedError
from fourierqk.causality.steadiness import steadiness

__all__ = ["Location", "every", "locate", "soonest"]


@dataclass(frozen=True)
class Location:
    """A module path (the class, for the model itself); for a leak in its own code, between which children."""

    path: str
    detail: str = ""
    call: int = 0  # of the module, among all in order of completion
    order: float = 0  # where the leak lies among them: between two calls, for a leak in a module's own code
    steady: bool = True  # whether the movement was seen to repeat

    def __str__(self) -> str:
        return f"{self.path} ({self.detail})" if self.detail else self.path


@dataclass(frozen=True)
class _Call:
    """One call of a module: whether its inputs and outputs move before the cut (None: no time axis to judge by)."""

    path: str
    inputs: bool | None
    outputs: bool | None


def locate(replay: Replay) -> Location | None:
    """Compare the runs on a probe and its base. None: no module shows the leak (an opaque function).

    A choice between equals can change with the rounding. So, where no movement repeats, what moves far out of perfect
    stillness will do.
    """
    calls: list[_Call] = []
    jumps: list[Location] = []
    try:
        replay.movements(0)
        for i, path in enumerate(replay.calls):
            call = _Call(path, *(_moves(replay, i, side) for side in (INPUTS, OUTPUTS)))
            if call.inputs is False and call.outputs and i not in replay.mended:
                return _location(replay, path, calls)  # inner modules complete first: this is the innermost
            if _jumps(replay, i):
                jumps.append(replace(_location(replay, path, calls), steady=False))
            calls.append(call)
    except (UnpairedError, RefusedError):  # or the model does not let itself be rounded otherwise
        pass
    return jumps[0] if jumps else None


def soonest(
    known: Location | None, glance: Glance, pairs: Iterable[Pair], mended: frozenset[int] = frozenset()
) -> Location | None:
    """Where the leak enters in the earliest module that any of several probes shows, if not where it is known to.

    A glance at each probe says which might begin earlier; roundings decide for a few of these.
    """
    best = known
    limit = best.order if best else float("inf")
    begin = [(at, pair) for pair in pairs if (at := _begins(glance, pair, mended, limit)) < limit]
    for _, pair in sorted(begin, key=lambda b: b[0])[:CONFIRMED]:
        found = locate(Replay(glance.subject, pair, mended))
        if found and found.steady and found.call not in mended and (best is None or found.order < best.order):
            return found
    return best


def every(known: Location | None, glance: Glance, pairs: list[Pair]) -> Iterator[Location]:
    """Every place where a leak enters, known the first of them: the last one found is mended, and the next shows."""
    mended: frozenset[int] = frozenset()
    while known:
        yield known
        mended |= {known.call}
        known = soonest(None, glance, pairs, mended)


def _begins(glance: Glance, pair: Pair, mended: frozenset[int], until: float) -> float:
    try:
        return glance.start(pair, mended, until)
    except (UnpairedError, RefusedError):
        return float("inf")


def _location(replay: Replay, path: str, calls: list[_Call]) -> Location:
    root = type(replay.subject.adapter.roots[0]).__name__  # the top module has no path: its class stands for it
    detail, order = _between(calls, path)
    return Location(path or root, detail, len(calls), order)


def _jumps(replay: Replay, call: int) -> bool:
    """Whether a call makes much movement before the cut out of none at all, in the machine's own rounding."""
    still = all(s.before == 0 for s in replay.slots if (s.call, s.side) == (call, INPUTS))
    return still and any(s.before > EXACT * s.most for s in replay.slots if (s.call, s.side) == (call, OUTPUTS))


def _moves(replay: Replay, call: int, side: int) -> bool | None:
    """Whether any tensor on one side of a call moves before the cut, in every rounding; None without a time axis."""
    found = [j for j, slot in enumerate(replay.slots) if (slot.call, slot.side) == (call, side)]
    return any(_repeats(replay, j) for j in found) if found else None


def _repeats(replay: Replay, j: int) -> bool | None:
    slot = replay.slots[j]
    if not len(slot.index):
        return False
    return steadiness(lambda key: (replay.movements(key)[j], slot.least), slot.most).repeats


def _between(calls: list[_Call], parent: str) -> tuple[str, float]:
    """In which stretch of the parent's own code the leak arises: after the last clean child, before the first dirty.

    With it the place among all calls: before the first call inside the dirty child, if there is one.
    """
    prefix = f"{parent}." if parent else ""
    inside = [(c.path[len(prefix) :], c) for c in calls if c.path.startswith(prefix)]
    inside = [(name, c) for name, c in inside if name and "." not in name]  # direct children
    dirty = next((i for i, (_, c) in enumerate(inside) if c.inputs), len(inside))
    clean = [name for name, c in inside[:dirty] if c.outputs is False]
    stretch = [f"after {name}" for name in clean[-1:]] + [f"before {name}" for name, _ in inside[dirty : dirty + 1]]
    order = float(len(calls))
    if dirty < len(inside):
        first = prefix + inside[dirty][0]
        order = next(i for i, c in enumerate(calls) if c.path == first or c.path.startswith(f"{first}.")) - 0.5
    return ", ".join(["in its own code", *stretch]) if stretch else "", order
