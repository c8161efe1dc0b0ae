"""What is asked of a model, and whether it can be: the sizes of the texts, and the probes that are made of them."""
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fourierqk.adapter import Model
from fourierqk.causality.probes import KINDS, Plan, plan_edits, plan_redraws
from fourierqk.checks import check_count, unknown_name
from fourierqk.sizes import block_size

__all__ = ["Question", "check_question"]


@dataclass(frozen=True)
class Question:
    """What to ask of a model."""

    vocab_size: int
    length: int
    draws: int
    seed: int
    text: Tensor | None
    positions: int
    every: bool = False  # whether to name every module that leaks

    def redraws(self, draws: int, seed: int) -> Plan:
        return plan_redraws(self.vocab_size, self.length, draws, seed, self.text)

    def turns(self, seed: int) -> Plan:
        """One re-drawn suffix at each cut, each kind in its turn."""
        n, plan = len(KINDS), self.redraws(len(KINDS), seed)
        return plan.take([n * i + i % n for i in range(len(plan) // n)])

    def edits(self, base: Tensor) -> Plan:
        """Probes of the map: all positions, or evenly spaced ones with both ends."""
        repeats = max(1, min(4, 128 // self.length))  # a short text leaves time to edit each token more than once
        spread = {round(i) for i in torch.linspace(0, self.length - 1, self.positions).tolist()} | {*range(8)}
        where = sorted(spread & {*range(self.length)}) if self.length > self.positions else [*range(self.length)]
        return plan_edits(base, self.vocab_size, where, repeats, self.seed)

    @property
    def estimate(self) -> int:
        """About how many probes the answer takes."""
        return min(self.length, self.positions) + 25 * (self.draws + min(self.draws, 4))


def check_question(
    model: Model, ask: Question, lengths: Sequence[int], axes: Sequence[str], known: Sequence[str]
) -> None:
    """ValueError where a number or a name cannot be asked for. known: the axes that can."""
    for name, least in (("vocab_size", 2), ("draws", 1), ("positions", 2), ("seed", 0)):
        check_count(getattr(ask, name), name, least)
    if not isinstance(lengths, Sequence):
        raise ValueError(f"lengths = {lengths!r} must be a list of whole numbers")
    longest = block_size(model)
    for n in (ask.length, *lengths):
        if check_count(n, "length", 2) > (longest or n):  # a past and a future
            raise ValueError(f"length = {n}: the model says that it reads at most {longest} tokens, take no more")
    if isinstance(axes, str):
        raise ValueError(f"axes = {axes!r} must be a list: [{axes!r}]")
    for axis in axes:
        if axis not in known:
            raise ValueError(unknown_name("axis", axis, known))
    if ask.text is not None:
        _check_text(ask.text, max(ask.length, *lengths, 2), ask.vocab_size)


def _check_text(text: Tensor, length: int, vocab_size: int) -> None:
    ok = isinstance(text, Tensor) and text.dim() == 1 and not (text.is_floating_point() or text.is_complex())
    if not (ok and len(text) >= length and 0 <= text.min() <= text.max() < vocab_size):
        raise ValueError(f"text must be ids (N,) with N >= {length} and values in 0 .. {vocab_size - 1}")
