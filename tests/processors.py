"""Other processors than this one, imitated: the same mathematics with other round-off.

Kernels differ from processor to processor in the order of summation and in how they transform. MKL's transforms on an
Intel with AVX-512, for one, err by several units in the last place where the length has a large prime factor.
"""
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Shuffled(TorchDispatchMode):
    """While active, matrix products and sums add their terms in another order."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        if func in (aten.mm.default, aten.bmm.default):
            a, b = args
            order = _order(a.shape[-1])
            args = a[..., order], b[..., order, :]
        elif func is aten.addmm.default:
            c, a, b = args
            order = _order(a.shape[-1])
            args = c, a[..., order], b[..., order, :]
        elif func in (aten.sum.dim_IntList, aten.mean.dim) and args[1]:
            x = args[0]
            for d in args[1]:
                x = x.index_select(d, _order(x.shape[d]))
            args = x, *args[1:]
        return func(*args, **(kwargs or {}))


@cache
def _order(n: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(n))


class Twiddled(TorchDispatchMode):
    """While active, transforms are plain sums with twiddle factors that are off by up to `ulps` units each."""

    def __init__(self, ulps: float) -> None:
        super().__init__()
        self.ulps = ulps

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204
        name = func._schema.name
        if not name.startswith("aten::_fft_") or len(args[1]) != 1:
            return func(*args, **(kwargs or {}))
        x, (axis,), norm, last = args
        x = x.movedim(axis, -1)
        if name == "aten::_fft_r2c":
            n = x.shape[-1]
            y = self.transform(torch.complex(x, torch.zeros_like(x)), -1)[..., : n // 2 + 1 if last else n]
        elif name == "aten::_fft_c2c":
            n = x.shape[-1]
            y = self.transform(x, -1 if last else 1)
        else:
            n = last
            half = x[..., : n // 2 + 1].clone()
            half[..., 0].imag.zero_()
            if n % 2 == 0:
                half[..., -1].imag.zero_()
            y = self.transform(torch.cat([half, half[..., 1 : (n + 1) // 2].conj_physical().flip(-1)], -1), 1).real
        return (y * (1, n**-0.5, 1 / n)[norm]).movedim(-1, axis).contiguous()

    def transform(self, x: Tensor, sign: int) -> Tensor:
        return x @ _matrix(x.shape[-1], sign, self.ulps, x.dtype)


@cache
def _matrix(n: int, sign: int, ulps: float, dtype: torch.dtype) -> Tensor:
    k = torch.arange(n)
    exact = torch.polar(torch.ones(n, dtype=torch.float64), sign * 2 * torch.pi * k.double() / n)
    off = 2 * torch.rand(n, 2, generator=torch.Generator().manual_seed(n), dtype=torch.float64) - 1
    off[0] = 0
    factors = exact + ulps * torch.finfo(dtype).eps * torch.view_as_complex(off)
    return factors.to(dtype)[k[:, None] * k % n]


PROCESSORS: dict[str, Callable[[], AbstractContextManager]] = {
    "this one": nullcontext,
    "another order of sums": Shuffled,
    "plain transforms": lambda: Twiddled(1),
    "coarse transforms": lambda: Twiddled(8),
}
