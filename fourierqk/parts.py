"""What filters are made of: units and their conversions, the two ways to filter, checks of signals and settings."""
import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from fourierqk.checks import check_count


def period(tokens: float) -> float:
    """The frequency, in cycles per token, of a wave that repeats every `tokens` tokens."""
    if not tokens > 2:
        raise ValueError(f"a period of {tokens} tokens is not above 2, the shortest a text can hold (Nyquist)")
    return 1 / tokens


def bins(k: float, n: int) -> float:
    """The frequency (or bandwidth), in cycles per token, of `k` bins of a DFT over `n` tokens."""
    return k / check_count(n, "n")


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The precision to compute in, at least float32: in bfloat16 a sum over the whole text loses the text."""
    return torch.promote_types(dtype, torch.float32)


def grid(n: int, like: Tensor) -> Tensor:
    """The non-negative frequencies of a real DFT over `n` tokens, on the device and in the precision of `like`."""
    return torch.fft.rfftfreq(n, dtype=compute_dtype(like.dtype), device=like.device)


def tokens(f: Tensor) -> int:
    """How many tokens a DFT has whose frequencies begin with `f`, as `grid` or fftfreq give them."""
    return 1 if len(f) < 2 else round(1 / (f[1] - f[0]).abs().item())


def circular(x: Tensor, h: Tensor, fades: bool = False) -> Tensor:
    """Multiply the DFT of the whole window. x: (B, heads, T, d), h: (heads | 1, F), at the frequencies of `grid`.

    h of shape (K, heads | 1, F) filters K times and concatenates the features: (B, heads, T, K d). fades: where h is
    small, so is its gradient (see `Filter.fades`). Few bins, as a narrow band has, cost less by two products than all
    of them by FFT.
    """
    check_heads(h, x)
    h = h.reshape(-1, *h.shape[-2:])  # (K, heads | 1, F)
    if x.device.type == "cpu" and (fades or not h.requires_grad) and not torch.compiler.is_compiling():
        k = _passed(h)
        if 3 * len(k) <= min(x.shape[-2], _THIN):
            return _thin(x, h[..., k], k)
    y = torch.fft.irfft(torch.fft.rfft(x, dim=-2) * h[:, None, ..., None], n=x.shape[-2], dim=-2)  # (K, B, heads, T, d)
    return y.movedim(0, 3).flatten(3)  # no copy where K is 1


_THIN = 384  # tokens: in a longer text an FFT of all bins is faster than products with a third of so many


def _passed(h: Tensor) -> Tensor:
    """The bins that pass in any head of any filter: what is left out of a sum is below its round-off."""
    size = h.detach().abs()
    least = torch.finfo(size.dtype).eps * size.amax(-1, keepdim=True)
    return (size > least).flatten(0, 1).any(0).nonzero()[:, 0]


def _thin(x: Tensor, h: Tensor, k: Tensor) -> Tensor:
    """`circular` for bins k (m,) alone, which h (K, heads | 1, m) weighs: by their cosines and sines, no FFT."""
    n, dtype = x.shape[-2], torch.promote_types(x.dtype, h.real.dtype)
    turns = torch.arange(n, device=x.device)[:, None] * k % n  # whole numbers, so that no angle is large
    angles = 2 * math.pi / n * turns.to(dtype)
    waves = torch.cat([angles.cos(), angles.sin()], 1)  # (T, 2 m)
    mirrored = torch.where((k == 0) | (2 * k == n), 1, 2)  # all but DC and Nyquist
    h = (h * mirrored / n).permute(1, 2, 0)[..., None]  # (heads | 1, m, K, 1)
    with torch.autocast(x.device.type, enabled=False):
        z = (waves.T @ x.to(dtype)).unsqueeze(-2)  # (B, heads, 2 m, 1, d)
        y = z * torch.cat([h.real, h.real], 1)
        if h.is_complex():  # it turns a cosine towards a sine
            y = y + z.roll(len(k), 2) * torch.cat([h.imag, -h.imag], 1)
        return waves @ y.flatten(-2)  # (B, heads, T, K d)


def convolve(x: Tensor, kernels: Tensor) -> Tensor:
    """Causal convolutions along time. x: (B, heads, T, d), kernels: (K, heads | 1, taps) -> (B, heads, T, K d).

    Time and memory grow as T, and the future is multiplied by exact zeros or by nothing at all, where an FFT would
    leave round-off. Which of the two ways is the faster was measured (benchmarks/filters.py).
    """
    heads, n = x.shape[1:3]
    h = kernels[..., :n].expand(-1, heads, -1)
    if h.shape[-1] <= _FEW:
        return cast(Tensor, _Shifts.apply(x, h))
    rows = min(n, _BLOCK if x.device.type == "cpu" else 8 * _BLOCK)  # elsewhere, fewer and larger products
    return cast(Tensor, _Blocks.apply(x, _toeplitz(h, rows), len(h)))


_FEW = 4  # taps, up to which it is faster to add shifted copies of the text
_BLOCK = 32  # tokens: shorter ones are many small products, longer ones multiply more zeros


def _toeplitz(h: Tensor, rows: int) -> Tensor:
    """What `rows` tokens hear of themselves and the taps - 1 tokens before them -> (heads, rows * K, columns).

    h: (K, heads, taps). Row t of a kernel has the tap of lag t - s in the column of token s, and zero where there is
    none. The K rows of a token stand together.
    """
    columns = rows + h.shape[-1] - 1
    lags = F.pad(h, (rows - 1, rows - 1)).flip(-1)  # columns - 1 .. -(rows - 1)
    return lags.unfold(-1, columns, 1).flip(-2).permute(1, 2, 0, 3).flatten(1, 2)


def _pieces(n: int, rows: int, columns: int) -> Iterator[tuple[slice, slice, slice]]:
    """A text of n tokens in blocks: the block, what it hears, and the columns of its Toeplitz matrix for that."""
    for start in range(0, n, rows):
        end = min(start + rows, n)
        first = max(0, start + rows - columns)
        yield slice(start, end), slice(first, end), slice(columns - rows - start + first, columns - rows - start + end)


class _Blocks(torch.autograd.Function):
    """Block by block, the product of a Toeplitz matrix and the few tokens that reach into the block.

    By hand, since autograd would make a whole text of zeros for the gradient of each block.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, m: Tensor, k: int) -> Tensor:
        b, heads, n, d = x.shape
        z = x.permute(1, 2, 0, 3).reshape(heads, n, b * d)
        y = x.new_empty(b, heads, n, k, d)
        for block, heard, columns in _pieces(n, m.shape[1] // k, m.shape[2]):
            out = m[:, : k * (block.stop - block.start), columns] @ z[:, heard]
            y[:, :, block] = out.view(heads, -1, k, b, d).permute(3, 0, 1, 2, 4)
        ctx.save_for_backward(m, z if ctx.needs_input_grad[1] else None)
        ctx.shape = b, heads, n, k, d
        return y.flatten(-2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        (m, z), (b, heads, n, k, d) = ctx.saved_tensors, ctx.shape
        dy = grad.unflatten(-1, (k, d)).permute(1, 2, 3, 0, 4)  # (heads, T, K, B, d)
        dz = grad.new_zeros(heads, n, b * d)
        dm = None if z is None else torch.zeros_like(m)
        with torch.autocast(grad.device.type, enabled=False):
            for block, heard, columns in _pieces(n, m.shape[1] // k, m.shape[2]):
                rows = slice(k * (block.stop - block.start))
                g = dy[:, block].reshape(heads, -1, b * d)
                dz[:, heard].baddbmm_(m[:, rows, columns].mT, g)
                if dm is not None:
                    dm[:, rows, columns].baddbmm_(g, z[:, heard].mT)
        return dz.view(heads, n, b, d).permute(2, 0, 1, 3), dm, None


class _Shifts(torch.autograd.Function):
    """A sum of shifted copies of the text, one a tap; by hand, so that they are added in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor) -> Tensor:
        b, heads, n, d = x.shape
        y = x.new_zeros(b, heads, n, len(h), d)
        for k, lag in product(range(len(h)), range(h.shape[-1])):
            y[:, :, lag:, k].addcmul_(x[:, :, : n - lag], h[k, :, lag, None, None])
        ctx.save_for_backward(h, x if ctx.needs_input_grad[1] else None)
        return y.flatten(-2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        h, x = ctx.saved_tensors
        dy = grad.unflatten(-1, (len(h), -1))  # (B, heads, T, K, d)
        n = dy.shape[2]
        dx, dh = torch.zeros_like(dy[:, :, :, 0]), None if x is None else torch.empty_like(h)
        for k, lag in product(range(len(h)), range(h.shape[-1])):
            later = dy[:, :, lag:, k]
            dx[:, :, : n - lag].addcmul_(later, h[k, :, lag, None, None])
            if dh is not None:
                dh[k, :, lag] = (x[:, :, : n - lag] * later).sum((0, 2, 3))
        return dx, dh


def check_signal(x: Tensor) -> None:
    if x.dim() != 4 or not x.is_floating_point() or not x.numel():
        raise ValueError(
            f"a filter expects a real (batch, heads, time, d) signal, none of them 0, got {tuple(x.shape)} of {x.dtype}"
        )


def precise(x: Tensor) -> Tensor:
    """A signal in the precision to compute in. ValueError unless it is real, (batch, heads, time, d)."""
    check_signal(x)
    return x.to(compute_dtype(x.dtype))


def check_heads(h: Tensor, x: Tensor) -> None:
    """A response or kernel h, (..., heads | 1, F or taps), fits a signal x, (batch, heads, time, d)."""
    check_rows(h)
    heads = h.shape[-2]
    if heads not in (1, x.shape[1]):
        raise ValueError(f"this filter has {heads} heads, the signal {x.shape[1]}: build it with heads={x.shape[1]}")


def is_single(h: Tensor) -> bool:
    """Whether an impulse response is that of a filter which keeps d: real, and no bank."""
    return not h.is_complex() and h.dim() <= 2


def check_rows(h: Tensor) -> None:
    """A response or kernel has an axis of heads: (..., heads | 1, F or taps)."""
    if h.dim() < 2:
        raise ValueError(
            f"a response or kernel has shape (heads | 1, frequencies or taps), this one {tuple(h.shape)}: "
            "add an axis in front, h[None], to serve all heads"
        )


def per_head(value: float | Sequence[float] | Tensor, heads: int) -> Tensor:
    """One value a head, as a column (heads, 1): a single value serves all heads."""
    v = torch.as_tensor(value, dtype=torch.get_default_dtype()).reshape(-1, 1)
    heads = check_count(heads, "heads")
    if not len(v) or 1 not in (len(v), heads) and len(v) != heads:
        raise ValueError(f"{len(v)} values for {heads} heads: give one, or one a head")
    return v.expand(max(heads, len(v)), 1).clone()


def check_frequency(f: Tensor) -> Tensor:
    if not ((f > 0) & (f < 0.5)).all():
        raise ValueError(
            f"frequency {f.flatten().tolist()} must lie inside (0, 1/2) cycles per token: 1/2 is Nyquist, one cycle "
            "in two tokens. period(tokens) and bins(k, n) convert."
        )
    return f


def check_width(w: float) -> float:
    if not 1e-9 <= w < math.inf:
        raise ValueError(f"bandwidth {w} must be a finite number of cycles per token, above 0 (at least 1e-9)")
    return float(w)


def shown(value: object) -> str:
    """A setting in a line of text, to three digits: one value, or the lowest and the highest of several heads."""
    v = torch.as_tensor(value).detach()
    low, high = (f"{x:.3g}" if isinstance(x, float) else str(x) for x in (v.min().item(), v.max().item()))
    return low if low == high else f"{low}..{high}"
