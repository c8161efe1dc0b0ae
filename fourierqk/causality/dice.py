"""Random numbers that a model throws: a text that throws others than its base moves everything, and proves nothing.

Dropout after an expert has picked its tokens is an example. With the same seed the same numbers come in the same order,
so as many of them, in tensors of the same shapes, fall on the same places.
"""
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fourierqk.causality.probes import Plan
from fourierqk.causality.subject import Subject

__all__ = ["same_dice", "throws_dice"]


class _Counted(TorchDispatchMode):
    """Keeps the shapes of all random numbers that torch draws."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[tuple[int, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags:
            drawn = out if isinstance(out, tuple) else (out,)
            self.shapes += [tuple(t.shape) for t in drawn if isinstance(t, Tensor)]
        return out


def _dice(subject: Subject, text: Tensor) -> list[tuple[int, ...]]:
    with _Counted() as counted:
        subject(text[None])
    return counted.shapes


def same_dice(subject: Subject, plan: Plan) -> Plan:
    """The probes that throw the same dice as their bases."""
    known = [_dice(subject, base) for base in plan.bases]
    return plan.take([p for p in range(len(plan)) if _dice(subject, plan.ids[p]) == known[plan.base[p]]])


def throws_dice(subject: Subject, text: Tensor) -> bool:
    """Whether a call draws any random number, of torch, of Python or of numpy."""
    drawn = _dice(subject, text)
    python, numpy = random.Random(subject.seed), np.random.RandomState(subject.seed % 2**32)
    return bool(drawn) or random.getstate() != python.getstate() or str(np.random.get_state()) != str(numpy.get_state())
