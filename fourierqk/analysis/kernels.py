"""What a filter passes, and how far it hears. Frequencies in cycles per token, lags in tokens."""
import copy

import torch
from torch import Tensor

from fourierqk.checks import check_count
from fourierqk.filters import Filter

__all__ = ["coverage", "future_share", "reach"]


@torch.no_grad()
def coverage(filter: Filter, n: int) -> Tensor:
    """The effective number of bins a filter passes in a window of n tokens -> (heads | 1,), float64.

    The participation ratio (sum p)^2 / sum p^2 of the energies p = |response|^2 over the n // 2 + 1 bins of a real
    DFT: equal energy in m bins counts as m (Hill's number of order 2, Hill 1973). One-sided: a bin and its mirror
    image are one bin, to which a complex filter brings the mean of the two energies. A bank adds its filters' energies.
    So AllPass has n // 2 + 1, a Tone 1, a Gaussian well inside the band sqrt(2 pi) widths. No gain matters.
    Raises ValueError where nothing passes.
    """
    filter = _on_cpu(filter)
    f = torch.arange(check_count(n, "n") // 2 + 1, dtype=torch.float64) / n
    p = (filter.response(f).abs().double() ** 2 + filter.response(-f).abs().double() ** 2) / 2
    p = p.reshape(-1, *p.shape[-2:]).sum(0)  # over the filters of a bank
    _check_energy(filter, n, p)
    return p.sum(-1) ** 2 / (p**2).sum(-1)


@torch.no_grad()
def reach(filter: Filter, n: int, share: float = 0.99) -> tuple[Tensor, Tensor]:
    """How far a filter hears, its receptive field, in a window of n tokens: (past, future), each (heads | 1,) tokens.

    Lags -future .. past hold at least `share` of the kernel's energy, that of all features together; what is left out
    is taken from both sides in proportion to their energies. So a symmetric kernel has past = future, and a causal
    one future = 0. Circular filters have lags -n/2 .. n/2, causal ones 0 .. n - 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"share = {share} must lie inside (0, 1)")
    energy = _lags(filter, n)
    ahead, behind = energy[:, : n - 1].flip(-1), energy[:, n:]  # each from lag 1 outwards
    total = energy.sum(-1, keepdim=True)
    sides = (ahead + behind).sum(-1, keepdim=True).clamp_min(torch.finfo(energy.dtype).tiny)
    given_up = (1 - share) * total / sides

    def least(side: Tensor) -> Tensor:
        beyond = side.flip(-1).cumsum(-1).flip(-1)  # entry r: the energy of lags above r
        return (beyond > given_up * side.sum(-1, keepdim=True) + 1e-12 * total).sum(-1)

    return least(behind), least(ahead)


def future_share(filter: Filter, n: int) -> Tensor:
    """The share of a filter's kernel energy at negative lags, in a window of n tokens -> (heads | 1,), float64.

    0 for a causal filter. Do not rank leaks by it: trained weights may amplify a share of one in a million until the
    predictions depend on it, and every symmetric kernel has about one half (all but lag 0), however much or little
    the model uses it. Whether a model leaks is for `audit` to say, how much it gains for `honest_loss`.
    """
    energy = _lags(filter, n)
    return energy[:, : n - 1].sum(-1) / energy.sum(-1)


@torch.no_grad()
def _lags(filter: Filter, n: int) -> Tensor:
    """A filter's kernel energy over n tokens, at lags -(n - 1) .. n - 1 -> (heads | 1, 2n - 1), float64.

    Asked of `forward`, since an impulse response does not say whether its last lags are far past or near future:
    a delta at the first token, in the middle and at the last token.
    """
    filter, n = _on_cpu(filter), check_count(n, "n")
    half, heads = n // 2, filter.impulse(1).shape[-2]
    x = torch.zeros(3, heads, n, 1, dtype=torch.float64)
    x[0, :, 0] = x[1, :, half] = x[2, :, -1] = 1
    first, middle, last = filter(x).double().square()  # (heads, n, features) each
    causal = last[:, :-1].sum(1, keepdim=True) == 0  # (heads, 1, features): nobody hears the last token early
    around = (middle * ~causal).sum(-1)  # lags -half .. n - 1 - half
    if n % 2 == 0:  # on a ring, n/2 tokens back is n/2 tokens ahead: half to either side
        edge = around[:, :1] / 2
        around = torch.cat([edge, around[:, 1:], edge], -1)
    energy = torch.zeros(heads, 2 * n - 1, dtype=torch.float64)
    energy[:, n - 1 :] = (first * causal).sum(-1)
    energy[:, n - 1 - half : n + half] += around
    _check_energy(filter, n, energy)
    return energy


def _on_cpu(filter: Filter) -> Filter:
    """A copy on the CPU, where float64 exists, that draws nothing."""
    if not isinstance(filter, Filter):
        raise ValueError(f"expected a Filter along time, got {type(filter).__name__}: take the filter of one attention")
    return copy.deepcopy(filter).cpu().eval()


def _check_energy(filter: Filter, n: int, energy: Tensor) -> None:
    if not (energy.sum(-1) > 0).all():
        raise ValueError(f"{type(filter).__name__} passes nothing in a window of {n} tokens: take more tokens")
