"""A model under probes: copied, re-seeded before every call, and computed in other precisions and roundings."""
import copy
import random
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fourierqk.adapter import Adapter
from fourierqk.causality.rounding import Rounding, eps_of, perturb

__all__ = ["Roundings", "Subject"]


@dataclass(frozen=True)
class Subject:
    """A model as it is probed: re-seeded before each call, and copied anew where it keeps state between calls."""

    adapter: Adapter
    seed: int = 0
    forgetful: bool = False  # a copy that has seen nothing for every call
    training: bool = False  # in training mode instead of eval mode
    copies: int = 1  # of each text in a batch: some models behave otherwise in a batch of one
    beside: Tensor | None = field(default=None, compare=False)  # other texts (N, T), the same in every batch
    key: int = 0  # of the rounding (see `rounding`); 0 is the machine's own
    eps: float = 0.0  # of the precision that the weights were given in, before any cast of ours

    @property
    def precision(self) -> torch.dtype:
        """Of the weights; float32 where there are none."""
        return next((t.dtype for t in self.adapter.weights if t.is_floating_point()), torch.float32)

    def fresh(self) -> Adapter:
        """The model to call, its dice re-seeded."""
        _reseed_torch(self.seed)
        random.seed(self.seed)
        np.random.seed(self.seed % 2**32)
        return self.adapter.around(copy.deepcopy(self.adapter.model)) if self.forgetful else self.adapter

    def run(self, adapter: Adapter, ids: Tensor) -> Tensor:
        """ids (B, T) -> the logits (B, T, V) of a fresh adapter, in float32 at least, detached, on its device."""
        arithmetic = Rounding(self.key) if self.key else nullcontext()
        with adapter.at_rest(self.training), arithmetic:
            z = adapter.logits(self._batch(ids).to(adapter.device))[: len(ids) * self.copies : self.copies]
            z = z.detach().clone()  # a model may use its output's memory again
        return z if z.dtype == torch.float64 else z.float()

    def _batch(self, ids: Tensor) -> Tensor:
        """What is computed together with ids (B, T)."""
        rows = ids.repeat_interleave(self.copies, 0)
        return rows if self.beside is None else torch.cat([rows, self.beside[:, : ids.shape[1]].to(ids)])

    def __call__(self, ids: Tensor) -> Tensor:
        return self.run(self.fresh(), ids)

    def copied(self, dtype: torch.dtype | None = None) -> "Subject | None":
        """A copy, in float32 or float64 if given; None where the model cannot be copied.

        Complex weights stay as they are: a spectrum rounded to complex64 does not get finer by being cast.
        """
        adapter = self.adapter.copied()
        if adapter is None:
            return None
        eps = self.eps or eps_of(*adapter.weights)
        if dtype:  # .to(dtype) would drop imaginary parts
            model: Any = adapter.model
            try:
                model.double() if dtype == torch.float64 else model.float()
            except TypeError:  # its device has no float64 (MPS)
                model.cpu().double()
        return replace(self, adapter=adapter, eps=eps)


class Roundings:
    """A subject in other roundings, its weights moved by the precision that they were given in."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.copy = subject, subject.copied()
        self.weights = self.copy.adapter.weights if self.copy else []
        self.given = [t.detach().clone() for t in self.weights]

    def __call__(self, key: int) -> Subject:
        """key: of the rounding; 0 is the machine's own. The answer holds until the next key is asked for."""
        if not key or self.copy is None:
            return replace(self.subject, key=key)
        eps = min(self.copy.eps, torch.finfo(torch.float32).eps)
        for t, given in zip(self.weights, self.given, strict=True):
            t.data.copy_(given)
            perturb(t.data, eps, key)
        return replace(self.copy, key=key)


def _reseed_torch(seed: int) -> None:
    """As torch.manual_seed, which also leaves word for every absent device: dear in a loop over small models."""
    if _only_a_cpu():
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@cache
def _only_a_cpu() -> bool:
    """Whether no device beside it throws dice."""
    return not any(device.is_available() for device in (torch.cuda, torch.backends.mps, torch.xpu))
