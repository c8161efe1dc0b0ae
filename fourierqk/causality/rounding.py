"""Round-off or a dependence? Compute the same thing in several roundings: a dependence repeats, round-off scatters.

Monte Carlo arithmetic (Parker 1997; stochastic arithmetic, Vignes 1993): every operation rounds to other numbers, by
about as much as its own precision allows. What a model computes then scatters by its round-off, whatever its
precision, its amplitudes and its transforms; what it depends on stays.
"""
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _pop_mode_temporarily,
)

from fourierqk.causality.limits import HALF_PRECISION, LOUDER

__all__ = ["Rounding", "eps_of", "perturb", "unrounded"]


def eps_of(*tensors: Tensor) -> float:
    """The spacing of numbers next to 1 in the coarsest floating-point type among them; 0 where there is none."""
    return max((torch.finfo(t.dtype).eps for t in tensors if t.is_floating_point() or t.is_complex()), default=0.0)


def _dice(x: Tensor, key: int) -> Tensor:
    """Uniform in [-1, 1), a function of the bits of each number and a key: equal numbers get equal dice.

    Ties must survive: a model that takes the first of two equal scores would else change its mind.
    """
    size = x.element_size()
    bits = x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[size])
    spread, mix, half = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 32) if size == 8 else (0x1E3779B1, 0x2C1B3C6D, 15)
    h = (bits.int() if size == 2 else bits) * spread  # integers wrap around
    h += (mix * key) % 2 ** (8 * h.element_size() - 1)
    h ^= h >> half
    h *= mix
    return h.to(torch.promote_types(x.dtype, torch.float32)).mul_(2.0 ** (1 - 8 * h.element_size()))


def perturb(t: Tensor, eps: float, key: int, dims: tuple[int, ...] = ()) -> None:
    """Add round-off to a tensor in place: of each number's size and, for a transform along `dims`, of the signal's.

    A transform of n points errs by a share of the whole signal, not of each number: by sqrt(log n) units of its rms
    at best, by sqrt(n) where twiddle factors come by recurrence or a prime length is summed plainly (Higham, Accuracy
    and Stability, 2002, section 24.1). The second, since which of the two depends on processor, library and length.
    Small whole numbers are left alone: counts, masks and token ids are exact.
    """
    x = torch.view_as_real(t) if t.is_complex() else t
    dice = _dice(x, key)
    whole = x.round() == x.clamp(-(eps**-0.5), eps**-0.5)
    noise = (x * dice).masked_fill_(whole, 0).nan_to_num_(0, 0, 0)
    if dims:
        norm = t.abs().square().sum(dims, keepdim=True).sqrt()  # sqrt(n) times the rms
        noise += (norm[..., None] if t.is_complex() else norm) * dice
    x += noise.mul_(eps if eps > HALF_PRECISION else LOUDER * eps).to(x.dtype)


class Rounding(TorchDispatchMode):
    """While active, every operation of torch rounds otherwise; a key gives the same roundings again."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key

    def __enter__(self) -> "Rounding":
        self.step = 0
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.step += 1
        read = [*_dense(args), *_dense((kwargs or {}).values())]
        made = [t for t in _dense((out,)) if t.numel()]
        homes = {t.untyped_storage().data_ptr() for t in read} if _views(func) else set()
        for t in made:
            if (t.is_floating_point() or t.is_complex()) and t.untyped_storage().data_ptr() not in homes:  # no view
                perturb(t, eps_of(t, *(r for r in read if r.dim())), 1009 * self.key + self.step, _mixed(func, args, t))
        return out


@cache
def _views(func: Any) -> bool:
    """Whether what an operation makes may be what it read, seen otherwise; what it works on in place is new."""
    schema = func._schema
    silent = schema.name in ("aten::_unsafe_view", "aten::lift")  # their schemas do not say so
    return silent or (not schema.is_mutable and any(a.alias_info for a in schema.arguments))


def unrounded() -> AbstractContextManager:
    """For what is no arithmetic of the model's, such as a copy of ours: it is not rounded."""
    mode = _get_current_dispatch_mode()
    if mode is None:
        return nullcontext()
    return _pop_mode_temporarily() if isinstance(mode, Rounding) else _disable_current_modes()  # the first is faster


def _dense(values: Iterable) -> Iterator[Tensor]:
    """The strided tensors among what an operation reads or makes: values, and lists of values."""
    for x in values:
        if isinstance(x, Tensor):
            if x.layout == torch.strided:
                yield x
        elif isinstance(x, list | tuple):
            yield from _dense(x)


def _mixed(func: Any, args: tuple, out: Tensor) -> tuple[int, ...]:
    """The axes along which an operation mixes all numbers at once."""
    name = func._schema.name
    if name.startswith("aten::_fft_"):
        return tuple(args[1])
    return tuple(range(2, out.dim())) if "convolution" in name else ()
