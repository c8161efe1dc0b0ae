"""Round-off or a dependence? Compute the same thing in several roundings: a dependence repeats, round-off scatters.

Monte Carlo arithmetic (Parker 1997; stochastic arithmetic, Vignes 1993): every operation rounds to other numbers, by
about as much as its own precision allows. What a model computes then scatters by its round-off, whatever its
precision, its amplitudes and its transforms; what it depends on stays.
"""
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["EXACT", "ULPS", "Rounding", "Steadiness", "grain", "largest", "shake", "steadiness"]

RUNS = 6  # roundings in which movements are chosen, and again as many in which the choice is confirmed
KEYS = 1 + 4 * RUNS  # where that leaves a doubt, in twice as many
# Mean over standard deviation: above which to follow a movement, to call it a dependence at the second look, at the
# third with its more runs; below which to call it round-off. Round-off alone exceeds STEADY once in 10^4 audits.
CHOSEN, STEADY, STEADIER, UNSTEADY = 2.5, 6.0, 4.0, 2.0
ULPS = 30  # a movement of fewer units in the last place of the number that moved is never a dependence
EXACT = 1e-4  # what does not scatter at all was computed out of our sight: then only a size far from round-off counts
LOUDER = 8  # times the precision: round-off that is frozen in constants repeats, and must drown
HALF = 1e-4  # a coarser precision is half: what is rounded so much needs no more
KEPT = 4096  # movements followed, at most


def grain(*tensors: Tensor) -> float:
    """The spacing of numbers next to 1 in the coarsest floating-point type among them; 0 where there is none."""
    return max((torch.finfo(t.dtype).eps for t in tensors if t.is_floating_point() or t.is_complex()), default=0.0)


def _dice(x: Tensor, key: int) -> Tensor:
    """Uniform in [-1, 1), a function of the bits of each number and a key: equal numbers get equal dice.

    Ties must survive: a model that takes the first of two equal scores would else change its mind.
    """
    size = x.element_size()
    bits = x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[size])
    h = (bits.int() if size == 2 else bits) * 0x1E3779B1  # integers wrap around
    h += 0x2545F491 * key % 2**31
    h ^= h >> 15
    h *= 0x2C1B3C6D
    h ^= h >> 12
    h *= 0x297A2D39
    return h.to(torch.promote_types(x.dtype, torch.float32)).mul_(2.0 ** (1 - 8 * h.element_size()))


def shake(t: Tensor, eps: float, key: int, dims: tuple[int, ...] = ()) -> None:
    """Add round-off to a tensor in place: of each number's size and, for a transform along `dims`, of its rms there.

    Small whole numbers are left alone: counts, masks and token ids are exact.
    """
    x = torch.view_as_real(t) if t.is_complex() else t
    dice = _dice(x, key)
    noise = (x * dice).masked_fill_((x == x.round()) & (x.abs() < eps**-0.5), 0).nan_to_num_(0, 0, 0)
    if dims:  # the error of a fast transform is a share of the whole signal, not of each number
        rms = t.abs().square().mean(dims, keepdim=True).sqrt()
        noise += (rms[..., None] if t.is_complex() else rms) * dice
    x += noise.mul_(eps if eps > HALF else LOUDER * eps).to(x.dtype)


class Rounding(TorchDispatchMode):
    """While active, every operation of torch rounds otherwise; a key gives the same roundings again."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key

    def __enter__(self) -> "Rounding":
        self.step = 0
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.step += 1
        read = [*_dense(args), *_dense((kwargs or {}).values())]
        made = [t for t in _dense((out,)) if t.numel()]
        homes = set() if func._schema.is_mutable else {t.untyped_storage().data_ptr() for t in read}
        for t in made:
            if (t.is_floating_point() or t.is_complex()) and t.untyped_storage().data_ptr() not in homes:  # no view
                shake(t, grain(t, *(r for r in read if r.dim())), 1009 * self.key + self.step, _mixed(func, args, t))
        return out


def _dense(values: Iterable) -> Iterator[Tensor]:
    """The strided tensors among what an operation reads or makes: values, and lists of values."""
    for x in values:
        if isinstance(x, Tensor):
            if x.layout == torch.strided:
                yield x
        elif isinstance(x, list | tuple):
            yield from _dense(x)


def _mixed(func, args: tuple, out: Tensor) -> tuple[int, ...]:
    """The axes along which an operation mixes all numbers at once."""
    name = func._schema.name
    if name.startswith("aten::_fft_"):
        return tuple(args[1])
    return tuple(range(2, out.dim())) if "convolution" in name else ()


@dataclass(frozen=True)
class Steadiness:
    """Whether movements repeat from rounding to rounding.

    repeats: True for a dependence, False for round-off, None where neither is certain. noise: the largest standard
    deviation, what round-off can do here. which: the steadiest of the movements.
    """

    repeats: bool | None
    noise: float = 0.0
    which: int | None = None


def steadiness(move: Callable[[int], tuple[Tensor, Tensor]], after: float) -> Steadiness:
    """Do movements repeat? Chosen in some roundings and confirmed in others, so that chance does not choose itself.

    move: key (0: no rounding of ours; up to KEYS - 1) -> (movements (N,), the least of each that can count (N,)),
    float64. after: the largest movement that is certainly real, in the same units.
    """
    moved, least = move(0)
    index = largest(moved.abs(), least)
    if not len(index):
        return Steadiness(False)
    runs = torch.stack([move(key)[0][index] for key in range(1, RUNS + 1)])
    noise = runs.std(0).max().item()
    index = index[_ratio(runs, least[index], after) > CHOSEN]
    for keys, enough in ((range(RUNS + 1, 2 * RUNS + 1), STEADY), (range(2 * RUNS + 1, KEYS), STEADIER)):
        if not len(index):
            return Steadiness(False, noise)
        ratio = _ratio(torch.stack([move(key)[0][index] for key in keys]), least[index], after)
        best = ratio.max().item()
        if best > enough or best < UNSTEADY:
            return Steadiness(best > enough, noise, int(index[ratio.argmax()]))
        index = index[ratio > UNSTEADY]
    return Steadiness(None, noise)


def largest(size: Tensor, least: Tensor) -> Tensor:
    """Where to look: the largest movements, and the largest beside the number that moved."""
    live = (size > least).nonzero()[:, 0]
    ways = (size[live], size[live] / least[live].clamp(min=1e-300))
    return live[torch.cat([w.topk(min(KEPT, len(live))).indices for w in ways]).unique()]


def _ratio(runs: Tensor, least: Tensor, after: float) -> Tensor:
    """(R, N) movements -> mean over standard deviation of each (N,)."""
    mean, spread = runs.mean(0).abs(), runs.std(0)
    exact = torch.where(mean > EXACT * after, torch.inf, 0)
    return torch.where(spread > 0, mean / spread, exact) * (mean > least)
