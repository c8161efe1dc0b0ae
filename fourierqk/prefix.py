"""The paper's two-sided filter made honest: each query sees queries and keys filtered within what has been read."""
from collections.abc import Callable

import torch
from torch import Tensor

from fourierqk.contract import check_map
from fourierqk.filters import GRID, FeatureMap, Filter
from fourierqk.parts import check_heads, convolve, is_single, precise
from fourierqk.streaming import Cache, convolution

__all__ = ["PrefixFilter"]


class PrefixFilter(FeatureMap):
    """A two-sided filter, run for each position i on the tokens up to i alone, as if the text ended there.

    On a prefix the filter is a sum over lags of either sign, silence around: of queries, q~_i = sum_{m <= i} h(i - m)
    q_m; of keys, k~_j = sum_{m <= i} h(j - m) k_m, which differs from prefix to prefix, since the keys that a filter
    hears after j end at i. No features can say so, but the scores can: with the mask M, M_im = 1 for m <= i, and the
    Toeplitz matrix H_mj = h(j - m),

        scores = ((Q~ K^T) . M) H

    because q~_i . k~_j = sum_{m <= i} (q~_i . k_m) h(j - m). It costs one product of T x T matrices a head more than
    attention. Nothing after i enters row i, exactly: its zeros are zeros.
    """

    def __init__(self, inner: Filter) -> None:
        super().__init__()
        check_map(inner, Filter)
        if not is_single(inner.impulse(2)):
            raise ValueError("a filter of prefixes must be real and single, so neither a pair nor a bank")
        self.inner = inner

    def kernel(self, n: int) -> Tensor:
        """The lags 1 - n .. n - 1 of the filter on the line, the most negative first -> (heads | 1, 2 n - 1).

        Sampled on the grid on which `Unit` weighs it, or, for a longer text, on one twice as long as the text.
        """
        size = GRID
        while size < 2 * n:
            size *= 2
        h = self.inner.impulse(size)
        return torch.cat([h[..., size - n + 1 :], h[..., :n]], -1)

    def forward(self, x: Tensor) -> Tensor:
        """The filtered signal as its last token hears it: two-sided on the whole of x, silence around."""
        z, n = precise(x), x.shape[-2]
        return (self._toeplitz(z, n).mT @ z).to(x.dtype)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """q, k: (B, heads, T, d) -> (B, heads, T, T): row i is of the prefix that ends at i, j > i means nothing."""
        a, b, n = precise(q), precise(k), q.shape[-2]
        with torch.autocast(q.device.type, enabled=False):
            past = convolve(a, self.kernel(n)[None, ..., n - 1 :].to(a.dtype))  # (B, heads, T, d)
            read = (past @ b.mT).tril()  # (B, heads, T, T): column m of row i is 0 for m > i
            return read @ self._toeplitz(b, n)

    def growing(self, keys: Cache) -> Callable[[Tensor, Tensor], Tensor]:
        """`scores` of a text that arrives piece by piece, by the kernel for as many tokens as there is room for.

        Called with the next queries and keys, (B, heads, t, d), it answers with their rows, (B, heads, t, n), of n
        tokens so far. keys: where the keys are kept, unfiltered, since each row filters them anew.
        """
        return _Growing(self.kernel(keys.room), keys)

    def _toeplitz(self, x: Tensor, n: int) -> Tensor:
        """H, H_mj = h(j - m) -> (heads | 1, n, n), in the precision of x."""
        h = self.kernel(n)
        check_heads(h, x)
        m = torch.arange(n, device=x.device)
        return h.to(x.dtype)[:, m - m[:, None] + n - 1]


class _Growing:
    """Rows of scores of a text that grows; the product of a row with H by a DFT, in room for all lags."""

    def __init__(self, kernel: Tensor, keys: Cache) -> None:
        room, past = keys.room, kernel[..., keys.room - 1 :]
        self.queries, self.keys, self.size = convolution(past[None]), keys, 2 * room
        ring = torch.cat([past, torch.zeros_like(past[..., :1]), kernel[..., : room - 1]], -1)  # 0, 1 .. -2, -1
        self.response = torch.fft.rfft(ring)  # (heads | 1, room + 1)

    def __call__(self, q: Tensor, k: Tensor) -> Tensor:
        a, b = self.queries(precise(q)), self.keys(precise(k))
        with torch.autocast(q.device.type, enabled=False):
            read = (a @ b.mT).tril(b.shape[-2] - a.shape[-2])  # (B, heads, t, n): 0 where a key comes later
            waves = torch.fft.rfft(read, n=self.size) * self.response[:, None].to(read.dtype.to_complex())
            return torch.fft.irfft(waves, n=self.size)[..., : b.shape[-2]]
