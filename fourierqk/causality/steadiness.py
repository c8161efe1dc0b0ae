"""Do movements repeat from rounding to rounding, or do they scatter? A test of means against spreads, errors stated.

Round-off is drawn anew in every rounding, up to a part that is frozen in the constants of a library (see `LOUDER` in
`rounding`): its mean is at most `FROZEN` standard deviations. A dependence has a mean of `DEPENDENCE` standard
deviations or more (`limits` says how this was measured). Between the two lies the gap that the test needs. Where
round-off is normal, the mean of a sample over its standard deviation has a non-central t distribution (Johnson and
Welch 1940), which gives the critical values below, whatever the machine.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from fourierqk.causality.limits import DEPENDENCE, EXACT, FALSE_LEAK, FOLLOWED, FROZEN, LOOKS, MISSED_LEAK, PLAIN

__all__ = ["Steadiness", "acquitting", "convicting", "largest", "steadiness"]


@dataclass(frozen=True)
class Steadiness:
    """Whether movements repeat from rounding to rounding.

    repeats: True for a dependence, False for round-off, None where no rounding could be had. noise: the largest
    standard deviation, what round-off can do here. which: the steadiest of the movements.
    """

    repeats: bool | None
    noise: float = 0.0
    which: int | None = None


def steadiness(move: Callable[[int], tuple[Tensor, Tensor]], after: float) -> Steadiness:
    """Do movements repeat? They are chosen in the machine's own rounding and judged in others.

    move: key (0: no rounding of ours; up to LOOKS[-1]) -> (movements (N,), the least of each that can count (N,)),
    float64. after: the largest movement that is certainly real, in the same units.

    At the first look the median of the PLAIN largest movements decides: few roundings could agree by chance on one of
    many numbers that are rounded coarsely inside. Later the steadiest of all decides.
    """
    moved, least = move(0)
    index = largest(moved.abs(), least)
    if not len(index):
        return Steadiness(False)
    plain = moved[index].abs().topk(min(PLAIN, len(index))).indices
    runs = torch.empty(0, len(index), dtype=torch.float64)
    for look in LOOKS:
        fresh = [move(key)[0][index] for key in range(len(runs) + 1, look + 1)]
        runs = torch.cat([runs, torch.stack(fresh)])
        ratio = _ratio(runs, least[index], after)
        if look == LOOKS[0]:  # the median exceeds a value at most twice as often as one of them
            repeats = ratio[plain].median().item() > convicting(look, 2)
        else:
            repeats = ratio.max().item() > convicting(look, len(index))
        if repeats or ratio.max().item() < acquitting(look):
            break
    return Steadiness(repeats, runs.std(0).max().item(), int(index[ratio.argmax()]) if repeats else None)


def largest(size: Tensor, least: Tensor) -> Tensor:
    """Where to look: the largest movements, and the largest beside the number that moved."""
    live = (size > least).nonzero()[:, 0]
    if len(live) <= FOLLOWED:
        return live
    ways = (size[live], size[live] / least[live].clamp(min=1e-300))
    return live[torch.cat([w.topk(FOLLOWED).indices for w in ways]).unique()]


def _ratio(runs: Tensor, least: Tensor, after: float) -> Tensor:
    """(R, N) movements -> mean over standard deviation of each (N,)."""
    mean, spread = runs.mean(0).abs(), runs.std(0)
    exact = torch.where(mean > EXACT * after, torch.inf, 0)
    return torch.where(spread > 0, mean / spread, exact) * (mean > least)


def convicting(runs: int, candidates: int) -> float:
    """Mean over standard deviation that round-off exceeds in any of so many movements with probability FALSE_LEAK.

    By Bonferroni's inequality over looks and movements, so it holds however these depend on each other.
    """
    return _critical(runs, FROZEN, FALSE_LEAK / len(LOOKS) / 2 ** math.ceil(math.log2(candidates)))


def acquitting(runs: int) -> float:
    """Mean over standard deviation that a dependence stays below with probability MISSED_LEAK."""
    return _critical(runs, DEPENDENCE, 1 - MISSED_LEAK / len(LOOKS))


@cache
def _critical(runs: int, ratio: float, tail: float) -> float:
    """What the mean over the standard deviation of so many normal numbers exceeds with probability `tail`.

    ratio: that of the true mean to the true deviation. With u the deviation of the sample as a share of the true one
    (chi by the root of runs - 1), the ratio exceeds x with probability E[Phi((ratio - x u) sqrt(runs))]: a sum over u.
    """
    dof = runs - 1
    u = torch.linspace(-12, 2, 1001, dtype=torch.float64).exp()
    weight = (dof * (u.log() - u.square() / 2)).softmax(0)  # the density of log u

    def exceeded(x: float) -> float:
        return (weight * torch.special.ndtr((ratio - x * u) * math.sqrt(runs))).sum().item()

    low, high = 0.0, 1.0
    while exceeded(high) > tail:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeded(middle) > tail else (low, middle)
    return high
