"""Checkers of the chapter on causal filters."""
import math

import torch

from fourierqk.exercises import checker

__all__ = ["apart", "in_a_row", "slow_taps", "stop_dc"]


@checker
def in_a_row(answer: int) -> str | None:
    """The taps of one filter that does what filters of 16 and 64 taps do one after the other: 79."""
    if answer == 80:
        return "nearly: lag 0 after lag 0 is lag 0 again. What are the smallest and the largest lag?"
    if answer == 16 * 64:
        return "lags add, they do not multiply: a token is delayed by the first filter, then by the second."
    if answer == 78:
        return "that is the largest lag. The lags run from 0 to it."
    if answer != 79:
        return "the lags are 0 to 15 and 0 to 63. Which sums of one of each exist?"


@checker
def stop_dc(answer) -> str | None:
    """A function taps (K,) -> taps (K,) that sum to zero, with lag 0 alone changed."""
    t = torch.arange(40.0)
    hat = (1 - (t / 5) ** 2) * torch.exp(-0.5 * (t / 5) ** 2)
    for taps in (hat, torch.polar(torch.exp(-0.5 * (t / 5) ** 2), 6 * t / 5)):
        got = answer(taps.clone())
        if not isinstance(got, torch.Tensor) or got.shape != taps.shape:
            return f"return all the taps, a tensor of {len(taps)} numbers, lag 0 first."
        if taps.is_complex() and not got.is_complex():
            return "the taps of a Morlet are complex: keep their imaginary part."
        if not torch.allclose(got[1:], taps[1:], atol=1e-6):
            return "the lags from 1 on have changed: touch lag 0 alone."
        if not torch.allclose(got.sum(), torch.zeros_like(got[0]), atol=1e-4):
            return f"DC still passes: the taps sum to {abs(got.sum()):.3g}, not to 0."


@checker
def slow_taps(answer: int) -> str | None:
    """The fewest taps of a half Morlet at one cycle in 64 tokens that hold 99 % of its energy: 112, give or take 2."""
    a = 6 * 64 / (2 * math.pi)
    energy = torch.exp(-((torch.arange(2000, dtype=torch.float64) / a) ** 2))
    held = energy.cumsum(0) / energy.sum()
    if answer == 64 or answer == 128:
        return "neither one cycle nor two: add up the energy, exp(-t^2 / a^2), until 99 % of it is there."
    least = int((held < 0.99).sum()) + 1
    if abs(answer - int((held.sqrt() < 0.99).sum()) - 1) <= 2 or abs(answer - 2.5758 * a) <= 3:
        return "energy is the square of the weight: exp(-t^2 / a^2), not exp(-t^2 / 2 a^2)."
    if not abs(answer - least) <= 2:
        share = held[min(max(int(answer), 1), 2000) - 1].item()
        return f"{int(answer)} taps hold {share:.1%} of the energy. The scale is a = 6 * 64 / (2 pi), about 61 tokens."


@checker
def apart(answer: int) -> str | None:
    """Query at 40 and key at 25, both 6 tokens late: what matches lies 15 tokens apart."""
    if answer in (9, 21, 3, 27):
        return "the key is as late as the query. Take the delay off both."
    if answer in (34, 19):
        return "that is where one of the two passages lies. How far apart are they?"
    if answer != 15:
        return "the query at 40 tells of token 40 - 6, the key at 25 of token 25 - 6."
