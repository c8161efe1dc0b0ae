"""Maps of the channels of queries and keys, token by token: the controls that no filter along time can be.

A channel map mixes no two tokens, so it is causal whatever it does, and it has no frequency response. One matrix M a
head serves queries and keys alike: the score is (M q) . (M k) = q . (M^T M) k.
"""
import torch
from torch import Tensor

from fourierqk.checks import check_count
from fourierqk.filters import FeatureMap, Filter
from fourierqk.parts import check_heads, compute_dtype, is_single, precise
from fourierqk.streaming import Stream

__all__ = ["ChannelCollapse", "ChannelFilter", "ChannelMap", "RandomProjection", "RandomRotation"]


class ChannelMap(FeatureMap):
    """A linear map of the d channels of each token (abstract).

    Its gain is 1: `matrix` is scaled, head by head, so that the scores of white queries and keys vary as their plain
    dot products do, which takes a Gram matrix M^T M of Frobenius norm sqrt(d).
    """

    def matrix(self, d: int) -> Tensor:
        """The map before it is scaled -> (heads | 1, d', d)."""
        raise NotImplementedError

    def scaled(self, d: int) -> Tensor:
        """The map M as it is applied -> (heads | 1, d', d)."""
        m = self.matrix(d)
        m = m.to(compute_dtype(m.dtype))
        power = (m.mT @ m).square().sum((-2, -1), keepdim=True) / d  # of the scores of white queries and keys
        return m * power.clamp_min(1e-30) ** -0.25

    def forward(self, x: Tensor) -> Tensor:
        z = precise(x)
        with torch.autocast(x.device.type, enabled=False):
            m = self.scaled(x.shape[-1]).to(z.dtype)
            check_heads(m[..., 0], x)
            return (z @ m.mT).to(x.dtype)  # (B, heads, T, d) x (heads | 1, d, d') -> (B, heads, T, d')

    def stream(self) -> Stream:
        return self


class ChannelFilter(ChannelMap):
    """A filter along the channels instead of along time: the DFT over the d channels, weighted, and back (S9).

    Its frequencies are in cycles per channel.
    The result is a circulant d x d matrix. No order of the channels means anything, and W_q can absorb M^T M.
    """

    def __init__(self, inner: Filter) -> None:
        super().__init__()
        if not is_single(inner.impulse(2)):
            raise ValueError("a filter along the channels must be real and single, so neither a pair nor a bank")
        self.inner = inner

    def matrix(self, d: int) -> Tensor:
        i = torch.arange(d)
        return self.inner.impulse(d)[:, (i[:, None] - i) % d]


class ChannelCollapse(ChannelFilter):
    """The DFT over the d channels, its frequency axis collapsed to one weighted sum: a scalar a token (S9).

    The sum of all weighted bins is d times the first channel of `ChannelFilter`, one row of its circulant. Scores
    are products of two scalars: a matrix of rank 1, whatever the text.
    """

    def matrix(self, d: int) -> Tensor:
        return super().matrix(d)[:, :1]


class RandomRotation(ChannelMap):
    """A rotation of the channels, one a head, drawn uniformly and never learned (S11).

    It is shared by queries and keys, as every filter here is, so it cancels: (R q) . (R k) = q . k. The model is
    base-dot, with other round-off. Two rotations, one for queries and one for keys, would not cancel, but a W_q turned
    by R_q^T R_k gives the same scores: what such a model can say, base-dot can.
    """

    rotation: Tensor  # (heads, d, d)

    def __init__(self, d: int, heads: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.d, self.seed = check_count(d, "d"), seed
        q, r = torch.linalg.qr(_normal(check_count(heads, "heads"), d, d, seed))
        q = q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None]  # else QR prefers some rotations to others
        q[:, 0] *= torch.linalg.det(q).sign()[:, None]  # no reflections
        self.register_buffer("rotation", q.to(torch.get_default_dtype()))

    def matrix(self, d: int) -> Tensor:
        _check_width(d, self.d)
        return self.rotation

    def settings(self) -> dict[str, object]:
        return {"d": self.d, "heads": len(self.rotation), "seed": self.seed}


class RandomProjection(ChannelMap):
    """A projection of the d channels on `rank` random directions, one set a head, never learned (S12).

    The directions have normal coordinates: neither orthogonal nor of one length. An invertible matrix would be
    absorbed by W_q and W_k and test nothing, so the rank is lowered. Even then W_q and W_k make of it any attention
    with queries and keys of `rank` channels a head: what it tests is the narrower head.
    """

    directions: Tensor  # (heads, rank, d)

    def __init__(self, d: int, rank: int, heads: int = 1, seed: int = 0) -> None:
        super().__init__()
        self.d, self.rank, self.seed = check_count(d, "d"), check_count(rank, "rank", most=d), seed
        m = _normal(check_count(heads, "heads"), rank, d, seed)
        self.register_buffer("directions", m.to(torch.get_default_dtype()))

    def matrix(self, d: int) -> Tensor:
        _check_width(d, self.d)
        return self.directions

    def settings(self) -> dict[str, object]:
        return {"d": self.d, "rank": self.rank, "heads": len(self.directions), "seed": self.seed}


def _normal(heads: int, rows: int, columns: int, seed: int) -> Tensor:
    """The same numbers whatever the default precision."""
    return torch.randn(heads, rows, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _check_width(d: int, mine: int) -> None:
    if d != mine:
        raise ValueError(f"this map is of {mine} channels, the signal has {d}: build it with d={d}")
