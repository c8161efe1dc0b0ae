"""The field's own filters along time, and what it takes to set the paper's beside them.

Short convolutions, token shift and key-value shift let a token hear its neighbours and know no frequency. A damped
resonator has one, and a state instead of a window. `Separate` and `Dealt` say which signals, and which channels, share
a filter.
"""
import copy
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.checks import check_count
from fourierqk.contract import check_map
from fourierqk.filters import CausalFilter, Centre, FeatureMap
from fourierqk.parts import compute_dtype, per_head, precise
from fourierqk.streaming import Recent, Stream

__all__ = ["Dealt", "Resonator", "Separate", "ShortConvolution", "Taps", "TokenShift"]


class Taps(CausalFilter):
    """Free learned taps, one set a head, lag 0 first: y_t = sum_j a_j x_(t - j).

    With two taps on keys and values this is KV shift (Xu et al. 2024, arXiv 2411.19574), there started at random.
    start: the taps at first; (1, 0) is the identity.
    """

    def __init__(self, start: Sequence[float] = (1.0, 0.0), heads: int = 1) -> None:
        super().__init__()
        if not len(start) or not all(math.isfinite(a) for a in start):
            raise ValueError(f"start = {start} must be finite numbers, one a tap, at least one")
        first = torch.tensor([float(a) for a in start], dtype=torch.get_default_dtype())
        self.start = tuple(first.tolist())
        self.taps = nn.Parameter(first.expand(check_count(heads, "heads"), -1).clone())

    def kernel(self) -> Tensor:
        return self.taps.to(compute_dtype(self.taps.dtype))

    def settings(self) -> dict[str, object]:
        return {"start": self.start, "heads": len(self.taps)}


class Resonator(CausalFilter):
    """A damped rhythm: a_t = g exp(-t / decay) cos(2 pi f t), one a head; decay, frequency and gain g are learned.

    The real part of one state of a linear recurrent unit, lambda = exp(-1 / decay + 2 pi i f), with its normalisation
    sqrt(1 - |lambda|^2) (Orvieto et al. 2023, arXiv 2303.06349), cut off after `taps` tokens.

    freq: cycles per token, decay: tokens; one, or one a head.
    """

    def __init__(
        self, freq: float | Sequence[float] = 1 / 8, decay: float | Sequence[float] = 16.0, gain: float = 1.0,
        heads: int = 1, taps: int = 128,
    ) -> None:  # fmt: skip
        super().__init__()
        tokens = per_head(decay, heads)
        if not ((tokens > 0) & (tokens < math.inf)).all() or not math.isfinite(gain):
            raise ValueError(f"decay = {decay} must be a number of tokens above 0, and gain = {gain} finite")
        self.centre, self.taps = Centre(per_head(freq, heads), learn=True), check_count(taps, "taps")
        self.start = (tuple(tokens.flatten().tolist()), float(gain))
        self.log_decay = nn.Parameter(tokens.log())  # (heads, 1)
        self.gain = nn.Parameter(torch.full_like(tokens, gain))

    def kernel(self) -> Tensor:
        t = torch.arange(self.taps, device=self.gain.device, dtype=compute_dtype(self.gain.dtype))
        rate = torch.exp(-self.log_decay.to(t.dtype))  # (heads, 1), 1 / tokens
        norm = torch.sqrt(-torch.expm1(-2 * rate))
        return self.gain.to(t.dtype) * norm * torch.exp(-rate * t) * torch.cos(2 * math.pi * self.centre() * t)

    def settings(self) -> dict[str, object]:
        return {"freq": self.centre(), "decay": self.log_decay.exp(), "gain": self.gain, "taps": self.taps}


class ShortConvolution(FeatureMap):
    """A causal convolution of a few taps, another for every channel, beside the signal itself: x + conv(x).

    Depthwise and residual, as on q, k and v in Canon layers (Allen-Zhu 2025, arXiv 2512.17351); Primer (So et al. 2021,
    arXiv 2109.08668) has three taps in the place of the signal. Starts at x. One tap is a gain a channel, the control
    without a neighbour.
    """

    def __init__(self, d: int, taps: int = 4, heads: int = 1) -> None:
        super().__init__()
        shape = (check_count(heads, "heads"), check_count(d, "d"), check_count(taps, "taps"))
        self.taps = nn.Parameter(torch.zeros(shape))  # lag 0 first

    def forward(self, x: Tensor) -> Tensor:
        z, (heads, d, taps) = self._fitting(x), self.taps.shape
        signal = F.pad(z.mT.flatten(1, 2), (taps - 1, 0))  # (B, nh d, T + taps - 1)
        weight = self.taps.to(z.dtype).flip(-1).reshape(heads * d, 1, taps)
        with torch.autocast(x.device.type, enabled=False):
            y = F.conv1d(signal, weight, groups=heads * d)  # (B, nh d, T)
        return (z + y.unflatten(1, (heads, d)).mT).to(x.dtype)

    def stream(self) -> Stream:
        taps = self.taps.shape[-1]

        def latest(heard: Tensor) -> Tensor:
            near = self._fitting(heard).unfold(-2, taps, 1)  # (B, nh, t, d, taps), each token and those before it
            return (near[..., -1] + (near * self.taps.flip(-1)[:, None]).sum(-1)).to(heard.dtype)

        return Recent(latest, taps - 1)

    def _fitting(self, x: Tensor) -> Tensor:
        z, (heads, d, _) = precise(x), self.taps.shape
        if z.shape[1] != heads or z.shape[-1] != d:
            raise ValueError(f"a short convolution of {heads} heads of {d} channels, a signal of {tuple(x.shape)}")
        return z

    def settings(self) -> dict[str, object]:
        heads, d, taps = self.taps.shape
        return {"d": d, "taps": taps, "heads": heads}


class TokenShift(FeatureMap):
    """The first half of the channels one token late, as in RWKV (Peng et al. 2023, arXiv 2305.13048); not learned."""

    def forward(self, x: Tensor) -> Tensor:
        z, half = precise(x), x.shape[-1] // 2
        late = F.pad(z[..., :-1, :half], (0, 0, 1, 0))  # silence before the first token
        return torch.cat([late, z[..., half:]], -1).to(x.dtype)

    def stream(self) -> Stream:
        return Recent(lambda heard: self(heard)[..., 1:, :], 1)


class Separate(FeatureMap):
    """A filter of its own for each signal of a layer, queries, keys, values, where one filter would serve all.

    copies: how many signals, as many as the letters of `Attention`'s `on`.
    """

    maps: Sequence[FeatureMap]

    def __init__(self, inner: FeatureMap, copies: int) -> None:
        super().__init__()
        check_map(inner)
        copied = nn.ModuleList(copy.deepcopy(inner) for _ in range(check_count(copies, "copies")))
        self.maps = cast(Sequence[FeatureMap], copied)

    def forward(self, x: Tensor) -> Tensor:
        """The first one's answer, as a signal by itself is told from no other."""
        return self.maps[0](x)

    def together(self, *signals: Tensor) -> tuple[Tensor, ...]:
        return tuple(own(x) for own, x in zip(self._each(len(signals)), signals, strict=True))

    def stream(self) -> Stream:
        return self.maps[0].stream()

    def streams(self, n: int) -> Callable[..., tuple[Tensor, ...]]:
        each = [own.stream() for own in self._each(n)]
        return lambda *signals: tuple(own(x) for own, x in zip(each, signals, strict=True))

    def _each(self, n: int) -> Sequence[FeatureMap]:
        if n != len(self.maps):
            raise ValueError(f"{len(self.maps)} separate filters for {n} signals: give copies={n}")
        return self.maps


class Dealt(FeatureMap):
    """Filters dealt out to the channels of a head: as many groups of neighbouring channels as there are filters.

    One kernel for all channels makes a head give up the token itself; here a group may keep it (`AllPass`) while others
    listen to rhythms. Each filter must keep its channels' number; the first groups are larger where d does not divide.
    """

    maps: Sequence[FeatureMap]

    def __init__(self, *maps: FeatureMap) -> None:
        super().__init__()
        if not maps:
            raise ValueError("channels need at least one filter to be dealt to")
        for m in maps:
            check_map(m)
        self.maps = cast(Sequence[FeatureMap], nn.ModuleList(maps))

    def forward(self, x: Tensor) -> Tensor:
        return self._dealt(x, self.maps)

    def stream(self) -> Stream:
        return partial(self._dealt, maps=[m.stream() for m in self.maps])

    def _dealt(self, x: Tensor, maps: Sequence[Stream]) -> Tensor:
        groups = x.tensor_split(len(maps), -1)
        if not groups[-1].shape[-1]:
            raise ValueError(f"{len(maps)} filters cannot be dealt to {x.shape[-1]} channels")
        made = [m(group) for m, group in zip(maps, groups, strict=True)]
        if any(y.shape != group.shape for y, group in zip(made, groups, strict=True)):
            raise ValueError("a filter that is dealt to channels must keep their number: neither a pair nor a bank")
        return torch.cat(made, -1)
