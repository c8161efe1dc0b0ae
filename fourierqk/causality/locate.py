"""Where a leak enters: the first module whose inputs hold still before the cut and whose outputs move."""
from dataclasses import dataclass, replace

from fourierqk.adapter import RefusedError
from fourierqk.causality.limits import EXACT
from fourierqk.causality.replay import INPUTS, OUTPUTS, Replay, UnpairedError
from fourierqk.causality.steadiness import steadiness

__all__ = ["Location", "locate"]


@dataclass(frozen=True)
class Location:
    """A module path (the class, for the model itself); for a leak in its own code, between which children."""

    path: str
    detail: str = ""
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
            if call.inputs is False and call.outputs:  # inner modules complete first: this is the innermost
                return _location(replay, path, calls)
            if _jumps(replay, i):
                jumps.append(replace(_location(replay, path, calls), steady=False))
            calls.append(call)
    except (UnpairedError, RefusedError):  # or the model does not let itself be rounded otherwise
        pass
    return jumps[0] if jumps else None


def _location(replay: Replay, path: str, calls: list[_Call]) -> Location:
    root = type(replay.subject.adapter.roots[0]).__name__  # the top module has no path: its class stands for it
    return Location(path or root, _between(calls, path))


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


def _between(calls: list[_Call], parent: str) -> str:
    """In which stretch of the parent's own code the leak arises: after the last clean child, before the first dirty."""
    prefix = f"{parent}." if parent else ""
    inside = [(c.path[len(prefix) :], c) for c in calls if c.path.startswith(prefix)]
    inside = [(name, c) for name, c in inside if name and "." not in name]  # direct children
    dirty = next((i for i, (_, c) in enumerate(inside) if c.inputs), len(inside))
    clean = [name for name, c in inside[:dirty] if c.outputs is False]
    stretch = [f"after {name}" for name in clean[-1:]] + [f"before {name}" for name, _ in inside[dirty : dirty + 1]]
    return ", ".join(["in its own code", *stretch]) if stretch else ""
