"""Specimens: one small language model, broken on purpose in many ways, to try tests for information leaks on.

Each is a `LanguageModel` of one layer. What mixes along time there is causal attention or a causal convolution, with
something wrong with it, or beside it, or with something that only looks wrong. For the chapter on the causality audit,
and for whoever writes a test of their own::

    model = specimen("mask of -10", vocab_size=13, length=32)
    SPECIMENS["mask of -10"].leaks
"""
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.checks import unknown_name
from fourierqk.model import GPTConfig, LanguageModel

__all__ = ["SPECIMENS", "Attend", "Beside", "Specimen", "causal_mask", "convolved", "peek", "specimen"]


def causal_mask(n: int) -> Tensor:
    """The causal mask (n, n), to be added to scores: 0 where s <= t, minus infinity where s > t."""
    return torch.full((n, n), -math.inf).triu(1)


class Attend(nn.Module):
    """One head of attention written out. bias(T) -> (T, T), added to the scores: what must not be heard."""

    def __init__(self, width: int, bias: Callable[[int], Tensor] = causal_mask, log_length: bool = False) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.bias, self.log_length = bias, log_length

    def forward(self, x: Tensor) -> Tensor:
        n, d = x.shape[1:]
        s = self.q(x) @ self.k(x).mT / math.sqrt(d)  # (B, T, T)
        s = s * math.log(n) if self.log_length else s  # sharper in a longer text
        return (s + self.bias(n).to(s)).softmax(-1) @ self.v(x)  # (B, T, T) x (B, T, C) -> (B, T, C)


class Do(nn.Module):
    """A function of (B, T, C) as a module, so that it has a name in the model."""

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Tensor) -> Tensor:
        return self.f(x)


class Beside(nn.Module):
    """A convolution of the last four tokens, and beside it a function of (B, T, C): their sum.

    gate: where a learned factor on the function starts; None: there is none.
    """

    def __init__(self, width: int, f: Callable[[Tensor], Tensor], gate: float | None = None) -> None:
        super().__init__()
        self.taps, self.other = nn.Conv1d(width, width, 4, bias=False), Do(f)
        self.gate = None if gate is None else nn.Parameter(torch.tensor(gate))

    def forward(self, x: Tensor) -> Tensor:
        y = self.other(x)  # (B, T, C)
        past = self.taps(F.pad(x.mT, (3, 0))).mT  # silence before the text
        return past + (y if self.gate is None else self.gate * y)


# ---------------------------------------------------------------- what leaks: (B, T, C) -> (B, T, C)


def mean(x: Tensor) -> Tensor:
    """The mean of the whole text, handed to every token of it."""
    return x.mean(1, keepdim=True).expand_as(x)


def centred(x: Tensor) -> Tensor:
    """The mean of three neighbours: the token itself, the one before it and the one after it."""
    return F.avg_pool1d(x.mT, 3, stride=1, padding=1).mT


def convolved(x: Tensor, pad: int) -> Tensor:
    """A one-sided kernel by an FFT of `pad` samples: it wraps round, unless pad >= 2T - 1."""
    n = x.shape[1]
    kernel = 0.9 ** torch.arange(n).to(x)  # lag 0 first: the past alone
    y = torch.fft.rfft(x, n=pad, dim=1) * torch.fft.rfft(kernel, n=pad)[:, None]
    return torch.fft.irfft(y, n=pad, dim=1)[:, :n]


def peek(x: Tensor) -> Tensor:
    """One bit of the next token: x is doubled where its first channel is positive. A comparison has no gradient."""
    return x * F.pad((x[:, 1:, :1] > 0).to(x), (0, 0, 0, 1))


def chosen(x: Tensor) -> Tensor:
    """A quarter of the text passes: the tokens whose first channel is largest. A choice has no gradient."""
    best = x[..., 0].topk(x.shape[1] // 4, dim=1).indices
    return x * torch.zeros(x.shape[:2]).to(x).scatter(1, best, 1.0)[..., None]


def swallowed(x: Tensor) -> Tensor:
    """The mean of the whole text, whose NaNs somebody turned into zeros."""
    return torch.nan_to_num(x).mean(1, keepdim=True).expand_as(x)


# ---------------------------------------------------------------- the collection


@dataclass(frozen=True)
class Specimen:
    """One way to mix along time: its name, what it is in a line, and whether it leaks.

    mixer: the width of the model -> a module (B, T, C) -> (B, T, C).
    """

    name: str
    summary: str
    leaks: bool
    mixer: Callable[[int], nn.Module]


def _beside(f: Callable[[Tensor], Tensor], gate: float | None = None) -> Callable[[int], nn.Module]:
    """The convolution with `f` beside it."""
    return lambda width: Beside(width, f, gate)


_LEAKING = {
    "no mask": ("attention that forgot its mask",
                lambda c: Attend(c, lambda n: torch.zeros(n, n))),
    "mask of -10": ("a mask that is finite: what it hides weighs e^-10",
                    lambda c: Attend(c, lambda n: causal_mask(n).clamp(min=-10))),
    "mean over the text": ("a convolution plus the mean of all tokens",
                           _beside(mean)),
    "centred convolution": ("a convolution plus the mean of three neighbours",
                            _beside(centred)),
    "unpadded FFT": ("a convolution plus a one-sided kernel that wraps round",
                     _beside(lambda x: convolved(x, x.shape[1]))),
    "peek at a sign": ("a convolution plus one bit of the next token, without a gradient",
                       _beside(peek)),
    "top-k over the text": ("a convolution plus the best quarter of all tokens",
                            _beside(chosen)),
    "mean without NaNs": ("a convolution plus a mean that swallows NaNs",
                          _beside(swallowed)),
    "shut gate": ("a convolution plus neighbours behind a learned gate that is 0",
                  _beside(centred, gate=0.0)),
}  # fmt: skip
_CAUSAL = {
    "causal attention": ("as it should be",
                         Attend),
    "causal convolution": ("the convolution alone",
                           _beside(torch.zeros_like)),
    "padded FFT": ("a convolution plus a one-sided kernel, padded to twice the text",
                   _beside(lambda x: convolved(x, 2 * x.shape[1]))),
    "live dropout": ("a convolution plus noise that is never switched off",
                     _beside(lambda x: F.dropout(x, 0.1, training=True))),
    "log-length scores": ("attention whose scores grow with the length of the text",
                          lambda c: Attend(c, log_length=True)),
}  # fmt: skip
SPECIMENS: dict[str, Specimen] = {
    name: Specimen(name, summary, leaks, mixer)
    for leaks, table in ((True, _LEAKING), (False, _CAUSAL))
    for name, (summary, mixer) in table.items()
}


def specimen(name: str, vocab_size: int = 13, length: int = 32) -> LanguageModel:
    """Build one, 32 channels wide, from torch's global generator. ValueError for an unknown name."""
    if name not in SPECIMENS:
        raise ValueError(unknown_name("specimen", name, SPECIMENS))
    cfg = GPTConfig(vocab_size, length, n_layer=1, n_head=1, n_embd=32, dropout=0.0)
    return LanguageModel(cfg, lambda: SPECIMENS[name].mixer(cfg.n_embd))
