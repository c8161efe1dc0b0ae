"""Rotary positions: queries and keys turned by where they stand, so that a score depends on their distance."""
import torch
from torch import Tensor

from fourierqk.checks import check_count
from fourierqk.filters import FeatureMap
from fourierqk.parts import compute_dtype, precise
from fourierqk.streaming import Counted, Stream

__all__ = ["Rotary"]


class Rotary(FeatureMap):
    """Turn each pair of channels by an angle that grows with the position (Su et al. 2021, arXiv 2104.09864).

    At position t, channels c and c + d/2 turn by t base^(-2c/d) radians. Turns of queries and keys cancel but for their
    distance: (R_i q) . (R_j k) = q . R_(j-i) k. A map of single tokens, so causal, but none that a filter along time
    commutes with: turning shifts a signal in frequency, by base^(-2c/d) / 2 pi cycles per token, and what a filter
    passes after the turn it may have stopped before.

    d: the channels of a head, an even number. Features wider than d, of a complex filter or a bank, are several blocks
    of d channels; each is turned alike.
    """

    def __init__(self, d: int, base: float = 10000.0) -> None:
        super().__init__()
        if check_count(d, "d") % 2:
            raise ValueError(f"d = {d} channels cannot be paired: rotary positions need an even number")
        if not base > 1:
            raise ValueError(f"base = {base} must be above 1: channels turn at speeds from 1 down to about 1 / base")
        self.d, self.base = d, float(base)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """(batch, heads, time, K d) -> the same shape. start: the position of the first token."""
        z = precise(x)
        if z.shape[-1] % self.d:
            raise ValueError(f"these rotary positions are for heads of {self.d} channels, the signal has {z.shape[-1]}")
        t = torch.arange(start, start + z.shape[-2], device=z.device, dtype=compute_dtype(z.dtype))
        speed = self.base ** -(torch.arange(0, self.d, 2, dtype=torch.float64) / self.d)  # (d / 2,), radians per token
        angle = t[:, None, None] * speed.to(z)  # (T, 1, d / 2), one row for all blocks
        a, b = z.unflatten(-1, (-1, 2, self.d // 2)).unbind(-2)  # (B, nh, T, K, d / 2) each
        turned = torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -2)
        return turned.flatten(-3).to(x.dtype)

    def stream(self) -> Stream:
        return Counted(self)

    def settings(self) -> dict[str, object]:
        return {"d": self.d, "base": self.base}
