"""What differs between recorded runs, seed by seed, and how much of it may be chance."""
import math
from collections.abc import Callable, Iterable, Mapping
from statistics import NormalDist, fmean, variance
from typing import Any, NamedTuple

from fourierqk.records.identity import named

__all__ = ["FEW_WINDOWS", "Interval", "compare", "contrast", "holm", "interval", "t_quantile"]

# Below so many windows that a text holds side by side, a standard error over windows is not to be believed: those that
# are drawn overlap, and one of 30 independent ones is itself uncertain by an eighth.
FEW_WINDOWS = 30


def compare(
    runs: Iterable[dict[str, Any]], base: Iterable[dict[str, Any]], kind: str = "honest"
) -> dict[str, Any] | None:
    """The loss of some runs minus that of others, paired by seed, in nats per token; None where no seed is in both.

    values, mean: of the seeds. seeds_se, windows_se: standard errors of the mean, over trainings and over the windows
    that all of them share. low, high, p: 95 % `interval` of both errors together, and the chance of a mean so far
    from 0. Of a single pair seeds_se, low, high and p are None. ValueError where either side has a seed twice.
    """
    ours, theirs = (_by_seed(side) for side in (runs, base))
    pairs = [(ours[seed]["losses"], theirs[seed]["losses"]) for seed in ours if seed in theirs]
    if not pairs:
        return None
    d = [a[kind]["mean"] - b[kind]["mean"] for a, b in pairs]
    windows = math.sqrt(fmean(_windows_se(a, kind) ** 2 + _windows_se(b, kind) ** 2 for a, b in pairs))
    return _weighed(d, windows)


def contrast(*sides: tuple[float, Iterable[dict[str, Any]]]) -> dict[str, Any] | None:
    """A weighted sum of ordered losses on the test text, paired by seed and by window, as `compare` gives a difference.

    sides: (1, runs), (-1, base) is a difference of two systems; four sides make an interaction, the difference of two
    differences. Windows are paired, since all runs are tested on the same ones: what is hard for all drops out.
    ValueError for runs without test losses, or with losses of another number of windows.
    """
    found = [(weight, _by_seed(runs)) for weight, runs in sides]
    seeds = [s for s in found[0][1] if all(s in runs for _, runs in found)]
    if not seeds:
        return None
    by_seed = [_weighted([(weight, _window_losses(runs[s])) for weight, runs in found]) for s in seeds]
    d, windows = [fmean(values) for values in by_seed], [fmean(column) for column in zip(*by_seed, strict=True)]
    return _weighed(d, math.sqrt(variance(windows) / len(windows)))


def _weighed(d: list[float], windows_se: float) -> dict[str, Any]:
    """Differences, one a seed, with both errors of their mean; the error over seeds and the interval need two."""
    found = {"values": d, "mean": fmean(d), "seeds_se": None, "windows_se": windows_se}
    if len(d) == 1:
        return {**found, "low": None, "high": None, "p": None}
    seeds = math.sqrt(variance(d) / len(d))
    return {**found, "seeds_se": seeds, **interval(fmean(d), seeds, len(d) - 1, windows_se)._asdict()}


def _window_losses(run: Mapping[str, Any]) -> list[float]:
    if "test" not in run:
        raise ValueError(f"the run of {named(run)} has no test losses: train it on a text with a test split")
    values: list[float] = run["test"]["ordered"]["values"]
    return values


def _weighted(sides: list[tuple[float, list[float]]]) -> list[float]:
    """The weighted sum of losses, window by window."""
    if len({len(values) for _, values in sides}) > 1:
        raise ValueError("only losses on the same windows can be paired")
    weights, columns = zip(*sides, strict=True)
    return [sum(w * x for w, x in zip(weights, row, strict=True)) for row in zip(*columns, strict=True)]


def _by_seed(runs: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for r in runs:
        if r["seed"] in found:
            both = f"{named(found[r['seed']])}, and {named(r)}"
            raise ValueError(f"one seed twice in one comparison, {both}: leave one out")
        found[r["seed"]] = r
    return found


def _windows_se(losses: Mapping[str, Any], kind: str) -> float:
    """The standard error of a loss over windows; of its distance to the oracle where that is known.

    Two systems are evaluated on the same windows, and what is hard there for the oracle is hard for both.
    """
    floor = losses.get("floor") if kind == "ordered" else losses[kind].get("floor")
    return (floor or losses[kind])["se"]


class Interval(NamedTuple):
    """A 95 % interval of a mean, and the chance of a mean at least so far from 0 if nothing differed."""

    low: float
    high: float
    p: float


def interval(mean: float, seeds_se: float, df: int, windows_se: float) -> Interval:
    """Of a mean with two independent errors: over seeds, with df degrees of freedom, and over windows, well known.

    Half its width is the root of the sum of squares of both halves, Student's over seeds and the normal one over
    windows: never narrower than either. p is one minus the level at which the interval would end at 0.
    """

    def half(p: float) -> float:
        q = 1 - p / 2
        return math.hypot(t_quantile(df, q) * seeds_se, NormalDist().inv_cdf(q) * windows_se)

    reach = half(0.05)
    return Interval(mean - reach, mean + reach, _falls_to(half, abs(mean)))


def _falls_to(f: Callable[[float], float], value: float) -> float:
    """Where in (0, 1) a falling function that ends at 0 has a value, by bisection; at least 1e-12."""
    low, high = 1e-12, 1.0
    while high - low > 1e-6 * high:
        middle = math.sqrt(low * high)  # chances span decades
        low, high = (middle, high) if f(middle) >= value else (low, middle)
    return high


def holm(chances: Mapping[str, float], level: float = 0.05) -> list[str]:
    """The names whose differences remain when there are many (Holm 1979): at most `level` chance of one false one."""
    left = []
    for i, name in enumerate(sorted(chances, key=lambda name: chances[name])):
        if chances[name] > level / (len(chances) - i):
            break
        left.append(name)
    return left


def t_quantile(df: int, q: float = 0.975) -> float:
    """A quantile in (0.5, 1) of Student's t with a whole number of degrees of freedom: bisection of its closed form."""
    low, high = 0.0, 20.0
    while _within(high, df) < 2 * q - 1:
        low, high = high, 2 * high
    while high - low > 1e-10 * max(1.0, low):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, df) < 2 * q - 1 else (low, middle)
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
