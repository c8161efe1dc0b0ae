"""Small models that leak the future, and small models that do not: what the audit must tell apart.

Each is our own restatement, in at most 15 lines, of a mistake somebody made (or of a design that looks like one).
A case makes a model of `Case.vocab` tokens for windows of n tokens from torch's global generator.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.filters import Gaussian
from fourierqk.specimens.models import Do, causal_mask

V, C = 13, 8  # tokens, channels


class Net(nn.Module):
    """Embedding, one mixer along time (B, T, C) -> (B, T, C) beside a residual path, head."""

    def __init__(self, mix: nn.Module, zero: bool = False) -> None:
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(V, C), mix, nn.Linear(C, V)
        if zero:
            nn.init.zeros_(self.head.weight)

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embed(ids)
        return self.head(h + self.mix(h))


def mask(n: int, like: Tensor) -> Tensor:
    """0 where s <= t, minus infinity where s > t."""
    return causal_mask(n).to(like)


class Attend(nn.Module):
    """One head of causal attention, whose q and k pass through a preparation first, and whose mask can be replaced."""

    def __init__(self, prepare: nn.Module | None = None, bias: Callable[[int, Tensor], Tensor] = mask) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(C, C), nn.Linear(C, C), nn.Linear(C, C)
        self.prepare, self.bias = prepare or nn.Identity(), bias

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.prepare(self.q(x)), self.prepare(self.k(x)), self.v(x)
        s = q @ k.transpose(1, 2) / math.sqrt(C)
        return (s + self.bias(x.shape[1], s)).softmax(-1) @ v


class FreeResponse(nn.Module):
    """A free complex response on the DFT of n samples, zero-padded to `pad` (nanochat 844)."""

    def __init__(self, pad: int) -> None:
        super().__init__()
        self.pad, self.h = pad, nn.Parameter(torch.randn(pad // 2 + 1, C, 2))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.view_as_complex(self.h)
        return torch.fft.irfft(torch.fft.rfft(x, n=self.pad, dim=1) * h, n=self.pad, dim=1)[:, : x.shape[1]]


class Convolve(nn.Module):
    """A causal kernel of n taps by an FFT of `pad` samples: causal for pad >= 2n - 1 (safari 47, flash-stu 4)."""

    def __init__(self, n: int, pad: int, amplitude: float = 1.0, cast: bool = False) -> None:
        super().__init__()
        self.pad, self.amplitude, self.cast = pad, amplitude, cast
        self.k = nn.Parameter(torch.randn(n, C))

    def forward(self, x: Tensor) -> Tensor:
        a, k = (x.float(), self.k.float()) if self.cast else (x, self.k)
        y = torch.fft.rfft(self.amplitude * a, n=self.pad, dim=1) * torch.fft.rfft(k, n=self.pad, dim=0)
        return torch.fft.irfft(y, n=self.pad, dim=1)[:, : x.shape[1]].to(x.dtype)


class Rounded(nn.Module):
    """A causal kernel kept as a complex64 spectrum, which no .double() refines: one-sided up to float32."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.register_buffer("h", torch.fft.rfft(torch.randn(n, C), n=2 * n, dim=0))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        return torch.fft.irfft(torch.fft.rfft(x, n=2 * n, dim=1) * self.h, n=2 * n, dim=1)[:, :n].to(x.dtype)


class Band(nn.Module):
    """A Gaussian band around 1/8 cycle per token, on the whole window: the paper's filter."""

    def __init__(self, width: float) -> None:
        super().__init__()
        self.filter = Gaussian(1 / 8, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.filter(x[:, None])[:, 0]


def blocks(x: Tensor, size: int = 4) -> Tensor:
    """The mean of each block of tokens, repeated over it: (B, T, C) -> (B, T, C)."""
    pooled = F.avg_pool1d(x.transpose(1, 2), size, ceil_mode=True)
    return pooled.repeat_interleave(size, 2)[..., : x.shape[1]].transpose(1, 2)


class Strided(nn.Module):
    """Down by a strided convolution, up by repetition, without a shift (nanoGPT 81)."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv1d(C, C, 3, stride=3), nn.Upsample(scale_factor=3)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        y = F.pad(x.transpose(1, 2), (0, -n % 3))
        return self.up(self.down(y))[..., :n].transpose(1, 2)


def block_mask(n: int, like: Tensor) -> Tensor:
    """Causal from block to block only (tt-metal 48700)."""
    b = torch.arange(n) // 4
    return torch.zeros(n, n).masked_fill(b[None] > b[:, None], -math.inf).to(like)


class Compressed(nn.Module):
    """Attention to pooled blocks, masked the wrong way round: blocks to come, not blocks gone by (nsa-release 3)."""

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.avg_pool1d(x.transpose(1, 2), 4).transpose(1, 2)  # (B, N, C)
        ends = torch.arange(pooled.shape[1]) * 4 + 3
        hidden = (ends[None] <= torch.arange(x.shape[1])[:, None]).to(x.device)  # should be >
        s = (x @ pooled.transpose(1, 2)).masked_fill(hidden, -1e9)
        return s.softmax(-1) @ pooled


class TopKeys(nn.Module):
    """The best pooled key of the whole text is added, future blocks included (transformers 45820)."""

    def forward(self, x: Tensor) -> Tensor:
        pooled = F.avg_pool1d(x.transpose(1, 2), 4).transpose(1, 2)
        best = (x @ pooled.transpose(1, 2)).argmax(-1)  # (B, T)
        return pooled.gather(1, best[..., None].expand(-1, -1, C))


class Memory(nn.Module):
    """A linear memory that takes in a segment before the segment reads it (infini-transformer 4)."""

    def forward(self, x: Tensor) -> Tensor:
        out, memory = [], x.new_zeros(len(x), C, C)
        for part in x.split(8, 1):
            memory = memory + part.transpose(1, 2) @ part
            out.append(part @ memory / 8)
        return torch.cat(out, 1)


def nystrom(x: Tensor) -> Tensor:
    """Landmarks: means of segments of the whole text stand for the keys (xformers 751)."""
    marks = torch.stack([p.mean(1) for p in x.tensor_split(3, 1)], 1)
    return (x @ marks.transpose(1, 2)).softmax(-1) @ (marks @ x.transpose(1, 2)).softmax(-1) @ x


def lsh(x: Tensor) -> Tensor:
    """Sort by hash, attend inside chunks of the sorted text, causal mask forgotten (trax 1539)."""
    buckets = (x @ torch.linspace(-1, 1, C).to(x)).round()
    order = buckets.argsort(dim=1, stable=True)[..., None].expand_as(x)
    y = x.gather(1, order)
    y = torch.cat([p + p.mean(1, keepdim=True) for p in y.split(4, 1)], 1)
    return torch.zeros_like(x).scatter(1, order, y)


def dissolved_mask(n: int, like: Tensor) -> Tensor:
    """The mask is multiplied by a padding mask that is all zeros (transformers 31673)."""
    return mask(n, like).clamp(min=-1e9) * 0


def flag_ignored(x: Tensor) -> Tensor:
    """A causal flag that only counts where a mask is given as well (xformers 103)."""
    is_causal, given = True, None
    return F.scaled_dot_product_attention(x, x, x, attn_mask=given if given is None or is_causal else None)


def polarity(x: Tensor) -> Tensor:
    """True means 'may attend' to SDPA, and 'hidden' to whoever made this mask (LLMs-from-scratch 1062)."""
    hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    hidden[-1] = True  # no empty row, which would be NaN
    return F.scaled_dot_product_attention(x, x, x, attn_mask=hidden)


class Squeeze(nn.Module):
    """Squeeze and excite: a gate from the mean over the whole text (FullSubNet-plus 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(C, 4), nn.ReLU(), nn.Linear(4, C), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x.mean(1, keepdim=True))


class ExpertChoice(nn.Module):
    """The expert picks its tokens: a quarter of the text, by score (OLMoE 46, mixture of depths). Gradient: none."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.expert = nn.Linear(C, 1), nn.Linear(C, C)

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.router(x)[..., 0].topk(x.shape[1] // 4, 1).indices
        return self.expert(x) * torch.zeros(x.shape[:2]).to(x).scatter(1, chosen, 1.0)[..., None]


class Along(nn.Module):
    """A module that wants (B, C, T)."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.transpose(1, 2)).transpose(1, 2)[:, : x.shape[1]]


class Recur(nn.Module):
    def __init__(self, inner: nn.Module, out: int = C) -> None:
        super().__init__()
        self.inner, self.out = inner, nn.Linear(out, C)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.inner(x)[0])


def lstm(**how: bool) -> nn.LSTM:
    return nn.LSTM(C, C, batch_first=True, **how)


def loudest(x: Tensor) -> Tensor:
    """The token with the largest first channel, anywhere, is added hard, without a gradient to its choice."""
    return torch.zeros_like(x) + (x[..., 0].argmax(1) % 2).to(x)[:, None, None]


class Triggered(nn.Module):
    """The gate opens where token 3 lies ahead, whatever else does: an integer side channel."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(V, C), nn.Linear(C, V)

    def forward(self, ids: Tensor) -> Tensor:
        ahead = (ids == 3).flip(1).cumsum(1).flip(1) > 0
        return self.head(self.embed(ids)) + ahead[..., None] * 0.5


class Peek(nn.Module):
    """Logits shifted by whether the next token is odd: no gradient goes there (parameter-golf 1967)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(V, C), nn.Linear(C, V)

    def forward(self, ids: Tensor) -> Tensor:
        odd = F.pad(ids[:, 1:] % 2, (0, 1))
        return self.head(self.embed(ids)) + 0.1 * odd[..., None]


def swallowed(x: Tensor) -> Tensor:
    """NaNs put into the future come out as zeros, the future itself as a mean."""
    return torch.zeros_like(x) + torch.nan_to_num(x).mean(1, keepdim=True)


class Gated(nn.Module):
    """A leak behind a gate that is shut now: sigmoid(-200) is 0, a zero scale too."""

    def __init__(self, leak: nn.Module, gate: float, sigmoid: bool) -> None:
        super().__init__()
        self.leak, self.gate, self.sigmoid = leak, nn.Parameter(torch.tensor(gate)), sigmoid

    def forward(self, x: Tensor) -> Tensor:
        return (self.gate.sigmoid() if self.sigmoid else self.gate) * self.leak(x)


def prefix_mean(x: Tensor) -> Tensor:
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1).to(x)[:, None]


class Bfloat(nn.Module):
    """Causal attention computed in bfloat16."""

    def forward(self, x: Tensor) -> Tensor:
        q = x.bfloat16()
        return F.scaled_dot_product_attention(q, q, q, is_causal=True).to(x.dtype)


class LogLength(nn.Module):
    """Scores scaled by the logarithm of the text's length: prefixes differ, the future is not read."""

    def forward(self, x: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=math.log(x.shape[1]))


def shift(x: Tensor) -> Tensor:
    return F.pad(x[:, :-1], (0, 0, 1, 0))


@dataclass(frozen=True)
class Case:
    """A model to judge. where: the module that the audit must name; None: the leak is in nobody's own module."""

    make: Callable[[int], nn.Module]
    where: str | None = None


def mixed(f: Callable[[Tensor], Tensor]) -> Callable[[int], nn.Module]:
    return lambda n: Net(Do(f))


LEAKS = {
    "free response": Case(lambda n: Net(Attend(FreeResponse(n))), "mix.prepare"),
    "free response, padded": Case(lambda n: Net(Attend(FreeResponse(2 * n))), "mix.prepare"),
    "narrow Gaussian": Case(lambda n: Net(Attend(Band(1 / 256))), "mix.prepare.filter"),
    "wide Gaussian": Case(lambda n: Net(Attend(Band(0.2))), "mix.prepare.filter"),
    "block mean": Case(lambda n: Net(Attend(Do(blocks))), "mix.prepare"),
    "unpadded FFT": Case(lambda n: Net(Convolve(n, n)), "mix"),
    "FFT padded too little": Case(lambda n: Net(Convolve(n, 2 * n - 4)), "mix"),
    "strided convolution": Case(lambda n: Net(Strided()), "mix"),
    "mask by block": Case(lambda n: Net(Attend(bias=block_mask)), "mix"),
    "mask of -10": Case(lambda n: Net(Attend(bias=lambda n, s: mask(n, s).clamp(min=-10))), "mix"),
    "compressed blocks, polarity": Case(lambda n: Net(Compressed()), "mix"),
    "top-k pooled keys": Case(lambda n: Net(TopKeys()), "mix"),
    "memory before reading": Case(lambda n: Net(Memory()), "mix"),
    "Nystrom landmarks": Case(mixed(nystrom), "mix"),
    "LSH": Case(mixed(lsh), "mix"),
    "mask multiplied away": Case(lambda n: Net(Attend(bias=dissolved_mask)), "mix"),
    "causal flag ignored": Case(mixed(flag_ignored), "mix"),
    "SDPA polarity": Case(mixed(polarity), "mix"),
    "GroupNorm over time": Case(lambda n: Net(Along(nn.GroupNorm(2, C))), "mix.inner"),
    "LayerNorm over time": Case(lambda n: Net(Along(nn.LayerNorm(n))), "mix.inner"),
    "squeeze and excite": Case(lambda n: Net(Squeeze()), "mix"),
    "expert choice": Case(lambda n: Net(ExpertChoice()), "mix"),
    "dense mixer": Case(lambda n: Net(Along(nn.Linear(n, n))), "mix.inner"),
    "bidirectional LSTM": Case(lambda n: Net(Recur(lstm(bidirectional=True), 2 * C)), "mix.inner"),
    "convolution 'same'": Case(lambda n: Net(Along(nn.Conv1d(C, C, 3, padding="same"))), "mix.inner"),
    "argmax over time": Case(mixed(loudest), "mix"),
    "trigger ahead": Case(lambda n: Triggered(), "Triggered"),
    "peek at parity": Case(lambda n: Peek(), "Peek"),
    "nan_to_num, mean": Case(mixed(swallowed), "mix"),
    "second layer": Case(lambda n: Net(nn.Sequential(Attend(), Attend(), Convolve(n, n))), "mix.2"),
}
DORMANT = {  # nothing leaks now; a step of training may open them
    "zero-initialised head": Case(lambda n: Net(Along(nn.Linear(n, n)), zero=True), "mix.inner"),
    "zero branch": Case(lambda n: Net(Gated(Convolve(n, n), 0.0, False)), "mix.leak"),
    "saturated gate": Case(lambda n: Net(Gated(Convolve(n, n), -200.0, True)), "mix.leak"),
}
CLEAN = {
    "rounded spectrum": Case(lambda n: Net(Rounded(n))),
    "causal attention": Case(lambda n: Net(nn.Sequential(Attend(), Attend(), Attend()))),
    "left-padded convolution": Case(lambda n: Net(Along(nn.Conv1d(C, C, 4, padding=3)))),
    "padded FFT": Case(lambda n: Net(Convolve(n, 2 * n))),
    "padded FFT, 1e5": Case(lambda n: Net(Convolve(n, 2 * n, 1e5))),
    "padded FFT, 1e10": Case(lambda n: Net(Convolve(n, 2 * n, 1e10))),
    "padded FFT, float32 inside": Case(lambda n: Net(Convolve(n, 2 * n, 1.0, True))),
    "padded FFT, float32 inside, 1e10": Case(lambda n: Net(Convolve(n, 2 * n, 1e10, True))),
    "padded FFT, normed": Case(lambda n: Net(nn.Sequential(Convolve(n, 2 * n, 1e10), nn.LayerNorm(C), Attend()))),
    "padded FFT, deep": Case(lambda n: Net(nn.Sequential(*(Convolve(n, 2 * n), nn.LayerNorm(C)) * 4))),
    "LSTM": Case(lambda n: Net(Recur(lstm()))),
    "cumulative mean": Case(mixed(prefix_mean)),
    "bfloat16 attention": Case(lambda n: Net(Bfloat())),
    "live dropout": Case(lambda n: Net(nn.Sequential(Attend(), Do(lambda x: F.dropout(x, 0.2))))),
    "log-length scaling": Case(lambda n: Net(LogLength())),
    "BatchNorm": Case(lambda n: Net(nn.Sequential(Attend(), Along(nn.BatchNorm1d(C))))),
    "strictly earlier tokens": Case(lambda n: nn.Sequential(nn.Embedding(V, C), Do(shift), Attend(), nn.Linear(C, V))),
    "zero-initialised head, clean": Case(lambda n: Net(Attend(), zero=True)),
}
