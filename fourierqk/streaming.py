"""Reading a text piece by piece: what a map, a layer or a model keeps of it, so that each token is read once.

A stream is what answers to the next tokens, of any number, as the whole would at their place: a function that
remembers. Whatever hears the past alone can make one, `stream()`, and one made of parts makes it of their streams. A
map of single tokens is its own stream; a convolution keeps as many tokens as it has taps, less one; attention keeps
keys and values. Kernels are worked out when a stream is made: a filter that has learned since needs another. Streams
are for use without gradients, as `LanguageModel.stream` sees to.
"""
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fourierqk.parts import check_heads, convolve, precise

__all__ = ["Cache", "Counted", "Recent", "Streaming", "convolution", "opened"]

Stream = Callable[[Tensor], Tensor]  # the next tokens -> what becomes of them


class Streaming(nn.Module):
    """What may be able to read a text piece by piece (abstract)."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Who rewrites `forward` says anew how it streams, or does not stream: a parent's way would be another map."""
        super().__init_subclass__(**kwargs)
        if "forward" in vars(cls) and "stream" not in vars(cls):
            cls.stream = Streaming.stream  # type: ignore[method-assign]

    def stream(self) -> Stream:
        """The same for a text that arrives piece by piece: called with the next tokens, it answers for them.

        NotImplementedError where what is made of a token may still change with later ones.
        """
        raise _refusal(self)


def opened(part: nn.Module) -> Stream:
    """The stream of a part that somebody else may have written."""
    if not isinstance(part, Streaming):
        raise _refusal(part)
    return part.stream()


def _refusal(part: nn.Module) -> NotImplementedError:
    return NotImplementedError(
        f"{type(part).__name__} does not stream: what it makes of a token may change with later ones. Read the whole "
        "text with it; one of your own that hears the past alone needs a method stream()"
    )


class Counted:
    """The stream of a map that asks where its tokens stand: f(x, start).

    axis: where time lies.
    """

    def __init__(self, f: Callable[[Tensor, int], Tensor], axis: int = -2) -> None:
        self.f, self.axis, self.start = f, axis, 0

    def __call__(self, x: Tensor) -> Tensor:
        y = self.f(x, self.start)
        self.start += x.shape[self.axis]  # if f took it
        return y


class Recent:
    """The stream of a map that hears `memory` tokens back: it keeps so many, silence at first.

    f: what the map makes of the new tokens, given them after those, (B, heads, memory + t, d) -> (B, heads, t, d').
    """

    def __init__(self, f: Callable[[Tensor], Tensor], memory: int) -> None:
        self.f, self.memory, self.past = f, memory, torch.empty(0)

    def __call__(self, x: Tensor) -> Tensor:
        past = self.past if self.past.numel() else x.new_zeros(*x.shape[:2], self.memory, x.shape[-1])
        heard = torch.cat([past, x], -2)
        self.past = heard[..., x.shape[-2] :, :]
        return self.f(heard)


def convolution(kernels: Tensor) -> Recent:
    """The stream of `parts.convolve`, which for one token is one product. kernels: (K, heads | 1, taps)."""
    memory, backwards = kernels.shape[-1] - 1, kernels.flip(-1).transpose(0, 1)  # (heads | 1, K, taps)

    def latest(heard: Tensor) -> Tensor:
        check_heads(kernels, heard)
        z, t = precise(heard), heard.shape[-2] - memory
        with torch.autocast(z.device.type, enabled=False):
            if t == 1:
                y = (backwards.to(z.dtype) @ z).flatten(2)[:, :, None]  # of K rows a head, one row of K d features
            else:
                y = convolve(z, kernels.to(z.dtype))[..., memory:, :]
        return y.to(heard.dtype)  # (B, heads, t, K d)

    return Recent(latest, memory)


class Cache:
    """All that came so far, (B, heads, n, d); room for `room` tokens is taken with the first."""

    def __init__(self, room: int) -> None:
        self.room, self.n, self.rows = room, 0, torch.empty(0)

    def __call__(self, x: Tensor) -> Tensor:
        b, heads, t, d = x.shape
        if not self.n:
            self.rows = x.new_empty(b, heads, self.room, d)
        if len(self.rows) != b or self.n + t > self.room:
            raise ValueError(
                f"this stream reads {len(self.rows)} texts of at most {self.room} tokens and has read {self.n} of "
                f"them, so it cannot take {t} more of {b} texts: open another stream"
            )
        self.rows[:, :, self.n : self.n + t] = x
        self.n += t
        return self.rows[:, :, : self.n]
