"""TokenRing: an impulse on a ring of 16 tokens, and which outputs hear it before it comes, live."""
import torch
import traitlets as t

from fourierqk.widgets import Text, Whole, Widget, module
from fourierqk.widgets.still import FUTURE, PAST, Bars, chart

TOKENS, REACH = 16, 3  # tokens on the ring; lags that the kernel has on a side
KERNELS = {"two-sided": range(-REACH, REACH + 1), "one-sided": range(REACH + 1)}  # the lags of each
TEXT = "the thief is Tom"


class TokenRing(Widget):
    """An impulse on a ring of 16 tokens, and which of them hear it early: by wrap-round and by look-ahead.

    kernel: "two-sided", the lags -3 to 3, or "one-sided", 0 to 3; the weight at lag l is (4 - |l|) / 10. position:
    the token of the impulse, 0 to 15. zeros: how many are appended before the transform and cut off after it, 0 to
    16. text: the 16 characters round the ring.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "token_ring"
    _esm = module(script)
    kernel = t.Enum(tuple(KERNELS), "two-sided").tag(sync=True)
    position = Whole(13, 0, TOKENS - 1)
    zeros = Whole(0, 0, TOKENS)
    text = Text(TEXT, TOKENS, TOKENS)

    def __init__(self, kernel: str = "two-sided", position: int = 13, zeros: int = 0, text: str = TEXT) -> None:
        super().__init__(kernel=kernel, position=position, zeros=zeros, text=text)

    @property
    def output(self) -> torch.Tensor:
        """What each token hears of the impulse (16,), by FFT over 16 + zeros places."""
        n = TOKENS + self.zeros
        x, h = torch.zeros(2, n, dtype=torch.float64)
        x[self.position] = 1
        for lag in KERNELS[self.kernel]:
            h[lag] = (REACH + 1 - abs(lag)) / 10  # a negative lag counts from the end of the array, hence of the ring
        return torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(h), n=n)[:TOKENS]

    def picture(self) -> str:
        y, at = self.output.round(decimals=9).tolist(), self.position
        return chart(
            "What each token hears: before the impulse comes red, after it blue", "token", "filtered signal",
            Bars(range(at), y[:at], FUTURE), Bars(range(at, TOKENS), y[at:], PAST), xticks=dict(enumerate(self.text)),
        )  # fmt: skip
