"""Checkers of the chapter on the ways by which the future gets in."""
import numpy as np
import torch

from fourierqk.combinators import SlidingDFT
from fourierqk.exercises import Whole, arrays, checker, fits, reply, ruled
from fourierqk.filters import Gaussian

__all__ = ["enough_zeros", "never_moved", "sliding", "tokens_ahead"]


@ruled
def never_moved() -> Whole:
    """The output that no filter on queries and keys can make hear the future, the last aside: 0."""
    wrong = {
        15: "token 15 hears no future because none is left. There is one more.",
        1: "token 1 may choose between the keys of tokens 0 and 1, and both can have heard the future.",
        16: "the text has the tokens 0 to 15.",
    }
    otherwise = "look at the first row of both maps. How many keys may that token choose from?"
    return Whole(0, wrong, otherwise)


@ruled
def enough_zeros() -> Whole:
    """The fewest zeros after 16 tokens that stop the wrap-round of the lags 0 to 5: 5."""
    wrong = {
        16: "as many zeros as tokens are enough for any kernel. This one needs fewer.",
        6: "six taps, but lag 0 stays where it is: how far does the last token reach?",
        21: "that is the length of the padded text. How many of these are zeros?",
    }
    otherwise = "token 15 is heard at 15, 16, ..., 20. All places above 15 must be silent ones."
    return Whole(5, wrong, otherwise)


@ruled
def tokens_ahead() -> Whole:
    """How far ahead 6 layers hear at most, each with a padded filter of lags -3 to 3: 18."""
    wrong = {
        3: "that is one layer. The tokens that it hears have heard ahead as well, in the layer below.",
        6: "six layers of three tokens each, not of one.",
        36: "lag -3 looks ahead and lag 3 looks back: only one of them adds to the future.",
        42: "seven lags, but only three of them look ahead.",
    }
    return Whole(18, wrong, "each layer hears three tokens further ahead than the one below it.")


@checker
def sliding(answer) -> str | None:
    """A function (x (T,), phi (n,)) -> (T,): at each token the DFT of the last n, weighted, read at that token.

    phi: real, at the n frequencies of fft.
    """
    band = Gaussian(1 / 5, 1 / 16)
    for length, n in ((12, 8), (9, 5)):
        x = torch.randn(length, generator=torch.Generator().manual_seed(n))
        phi = band.response(torch.fft.fftfreq(n))[0]
        got = fits(reply(answer, x, phi), (length,), "one for each token. Pad with n - 1 zeros in front, none behind.")
        if np.iscomplexobj(got):
            return "phi is even and x is real, so the result is real: take the real part."
        windows = torch.nn.functional.pad(x, (n - 1, 0)).unfold(0, n, 1)
        read = torch.fft.ifft(phi * torch.fft.fft(windows)).real  # (T, n): every entry of every window
        wrong = {
            "you read each window at its first token, the oldest. The listener is the last.": read[:, 0],
            "you read each window in its middle. The listener is the last token.": read[:, n // 2],
            "your windows start at the token and run into its future. They must end there.":
                _slid(band, x.flip(0), n).flip(0),
        }  # fmt: skip
        otherwise = "right shape, wrong values: window, fft, times phi, ifft, last entry, each token for itself."
        if says := arrays(got, _slid(band, x, n), wrong, otherwise):
            return says


def _slid(band: Gaussian, x: torch.Tensor, n: int) -> torch.Tensor:
    return SlidingDFT(band, window=n)(x[None, None, :, None]).flatten()
