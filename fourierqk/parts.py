"""What filters are made of: units and their conversions, the two ways to filter, checks of signals and settings."""
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

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


def circular(x: Tensor, h: Tensor) -> Tensor:
    """Multiply the DFT of the whole window. x: (B, heads, T, d), h: (heads | 1, F), at the frequencies of `grid`.

    h of shape (K, heads | 1, F) filters K times and concatenates the features: (B, heads, T, K d).
    """
    check_heads(h, x)
    h = h.reshape(-1, 1, *h.shape[-2:], 1)  # (K, 1, heads, F, 1)
    y = torch.fft.irfft(torch.fft.rfft(x, dim=-2) * h, n=x.shape[-2], dim=-2)  # (K, B, heads, T, d)
    return torch.cat(y.unbind(0), -1)


def convolve(x: Tensor, kernel: Tensor) -> Tensor:
    """Causal convolution along time. x: (B, heads, T, d), kernel: (heads | 1, taps).

    A product with the lower-triangular Toeplitz matrix: the future is multiplied by exact zeros, where an FFT would
    leave round-off, and at T up to several hundred it is the fastest on a CPU (benchmarks/filters.py).
    """
    b, heads, n, d = x.shape
    h = kernel[:, :n]
    h = F.pad(h, (n - 1, n - h.shape[-1])).flip(-1)  # lags n - 1 .. -(n - 1), zero where there is no tap
    toeplitz = h.unfold(-1, n, 1).flip(-2).expand(heads, -1, -1)  # entry (t, s): the tap at lag t - s
    y = toeplitz @ x.permute(1, 2, 0, 3).reshape(heads, n, b * d)
    return y.view(heads, n, b, d).permute(2, 0, 1, 3)


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
