"""What differs between recorded runs, seed by seed, and how much of it may be chance."""
import math
from collections.abc import Iterable
from typing import Any

__all__ = ["compare", "t_quantile"]


def compare(
    runs: Iterable[dict[str, Any]], base: Iterable[dict[str, Any]], kind: str = "honest"
) -> dict[str, Any] | None:
    """The loss of some runs minus that of others, paired by seed: {"values", "mean", "low", "high"}, nats per token.

    low, high: Student's 95 % interval of the mean over seeds, None with fewer than two pairs: the spread of trainings.
    The error over windows is another thing, and stands beside each loss. None where no seed is in both. ValueError
    where either side has a seed twice.
    """
    ours, theirs = (_by_seed(side, kind) for side in (runs, base))
    d = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
    if not d:
        return None
    n, mean = len(d), sum(d) / len(d)
    found = {"values": d, "mean": mean, "low": None, "high": None}
    if n > 1:
        half = t_quantile(n - 1) * math.sqrt(sum((x - mean) ** 2 for x in d) / (n - 1) / n)
        found |= {"low": mean - half, "high": mean + half}
    return found


def _by_seed(runs: Iterable[dict[str, Any]], kind: str) -> dict[int, float]:
    """The loss of each seed."""
    found: dict[int, float] = {}
    for r in runs:
        if r["seed"] in found:
            raise ValueError(f"two records of {r.get('system')}, seed {r['seed']}, in one comparison: leave one out")
        found[r["seed"]] = r["losses"][kind]["mean"]
    return found


def t_quantile(df: int) -> float:
    """The 97.5 % quantile of Student's t with a whole number of degrees of freedom, by bisection of its closed form."""
    low, high = 0.0, 20.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, df) < 0.95 else (low, middle)
    return low


def _within(t: float, df: int) -> float:
    """P(|T| < t) (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(df))
    odd = df % 2
    term = total = (math.cos(angle) if df > 1 else 0.0) if odd else 1.0
    for k in range(2 + odd, df - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
