"""What a filter of one's own must fulfil, and what to write where it does not."""
import inspect

import torch
from torch import Tensor

from fourierqk.filters import GRID, CausalFilter, CircularFilter, FeatureMap, Filter
from fourierqk.parts import check_rows, grid

__all__ = ["check_map"]

# what is called of which kind, and with which arguments
CALLED: dict[str, tuple[type[FeatureMap], tuple[str, ...]]] = {
    "kernel": (CausalFilter, ("self",)), "response": (CircularFilter, ("self", "f")),
    "forward": (FeatureMap, ("self", "x")),
}  # fmt: skip


def check_map(given: object, kind: type[FeatureMap] = FeatureMap) -> None:
    """ValueError unless `given` is a feature map of the kind, ready for use.

    Of a filter the kernel or the response is looked at: a tensor (heads | 1, taps or frequencies), finite everywhere.
    NotImplementedError where it defines neither.
    """
    if isinstance(given, type):
        raise ValueError(f"{given.__name__} is a class: write {given.__name__}(...), a filter made from it")
    if not isinstance(given, kind):
        parents = "CircularFilter or CausalFilter" if issubclass(kind, Filter) else "FeatureMap, or of a Filter"
        raise ValueError(f"expected a {kind.__name__}, got a {type(given).__name__}: write a subclass of {parents}")
    _check_signatures(type(given))
    if isinstance(given, Filter):
        _check_forward(type(given))
        with torch.no_grad():
            _check_answer(given)


def _check_signatures(kind: type[FeatureMap]) -> None:
    """Its methods take what they are called with."""
    for name, (called, arguments) in CALLED.items():
        try:
            inspect.signature(getattr(kind, name) if issubclass(kind, called) else _anything).bind(*arguments)
        except TypeError:
            written = f"def {name}({', '.join(arguments)})"
            raise ValueError(f"{kind.__name__} has a {name} that takes other arguments: write {written}") from None


def _anything(*_: object) -> None: ...


def _check_forward(kind: type[Filter]) -> None:
    """A kernel or a response is all that is asked of a filter: `Unit` and `Bank` pass by a `forward` of its own."""
    parent = next((p for p in (CircularFilter, CausalFilter) if issubclass(kind, p)), None)
    if parent and kind.forward is not parent.forward and kind.amplified is parent.amplified:
        method = "kernel()" if parent is CausalFilter else "response(f)"
        raise ValueError(
            f"{kind.__name__} has a forward of its own, which filters around it pass by: define {method} alone, or "
            "make it a subclass of Filter"
        )


def _check_answer(filter: Filter) -> None:
    """The kernel of a causal filter, or the response of another, is what it must be."""
    f, name, causal = grid(GRID, filter._like), type(filter).__name__, isinstance(filter, CausalFilter)
    h = filter.kernel() if isinstance(filter, CausalFilter) else filter.response(f)
    if not isinstance(h, Tensor):
        raise ValueError(f"{name} answers with a {type(h).__name__}: return a tensor, made by functions of torch")
    check_rows(h)
    if not causal and h.shape[-1] != len(f):
        raise ValueError(f"{name} answers {h.shape[-1]} numbers to {len(f)} frequencies: return one for each")
    finite = h.isfinite().reshape(-1, h.shape[-1]).all(0)
    if not finite.all():
        first = int((~finite).nonzero()[0])
        where = f"lag {first}" if causal else f"{f[first].item():g} cycles per token"
        raise ValueError(f"{name} answers infinity or NaN at {where}: every number must be finite")
