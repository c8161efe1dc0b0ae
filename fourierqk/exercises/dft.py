"""Checkers of the chapter on the DFT."""
import numpy as np

from fourierqk.exercises import arrays, checker, fits, members, reply

__all__ = ["linear_convolution", "ringing_bins", "turning_arrow", "who_hears"]


@checker
def turning_arrow(answer) -> str | None:
    """A function (x, k) -> X_k, the k-th bin of the DFT of a real signal x (n,)."""
    x = np.random.default_rng(0).standard_normal(11)
    got = np.array([fits(reply(answer, x, k), (), "for one bin, the sum over the tokens.") for k in range(11)])
    want, k = np.fft.fft(x), np.arange(11)
    wrong = {
        "your arrow turns counter-clockwise. The exponent of the DFT has a minus sign.": want.conj(),
        "your sum is divided by n. The factor 1/n belongs to the inverse.": want / 11,
        "that is the magnitude. Return the complex sum: its angle is the phase.": abs(want),
        "the imaginary part is missing: use the complex exponential, not the cosine alone.": want.real,
        "you count the tokens from 1. The arrow points east at token 0.": want * np.exp(-2j * np.pi * k / 11),
        "your arrow makes k half turns. A full turn is 2 pi.": np.exp(-1j * np.pi * np.outer(k, k) / 11) @ x,
    }
    arrow = "at token t the arrow of bin k is exp(-2j * pi * k * t / n), and n is len(x)."
    return arrays(got, want, wrong, f"the sums differ from the DFT: {arrow}")


@checker
def ringing_bins(answer) -> str | None:
    """The bins 0 .. 30 that are not zero for a letter at every 12th of 60 tokens."""
    got, want = members(answer, "a set of bins, such as {0, 1}"), set(range(0, 31, 5))
    if got == want:
        return None
    if unlike := _fractions(got):
        return f"answer with bins, k = f * n, not with frequencies in cycles per token: {unlike} is no whole number."
    if got == {0, 12, 24, 36, 48}:
        return "these are the tokens at which the letter stands. Bins count turns."
    if max(got) > 30:
        return "give the bins from 0 to 30 only: the others are mirror images."
    if got == want - {0}:
        return "DC is missing: bin 0 is the sum of the signal, and that is 5 here."
    if got <= {0, 5}:
        return "the first beat is right, but sharp beats have harmonics: at which other bins do all five arrows agree?"
    if got <= {0, 12, 24}:
        return "12 is the period in tokens. The bin that turns once in 12 tokens makes 60 / 12 turns in all."
    return "bin k turns 12 k / 60 times between two letters. It answers where that is a whole number."


@checker
def who_hears(answer) -> str | None:
    """The tokens of a ring of 16 that hear token 13 through the lags 0 .. 5."""
    got, want = members(answer, "a set of tokens, such as {0, 1}"), {(13 + lag) % 16 for lag in range(6)}
    if got == want:
        return None
    if unlike := _fractions(got):
        return f"tokens are counted in whole numbers, and {unlike} is none."
    if max(got) > 15:
        return "the ring has the tokens 0 to 15: token 16 is token 0."
    if min(got) < 0:
        return "the ring has the tokens 0 to 15: token -1 is token 15."
    if got == {13, 14, 15}:
        return "on a ring the count does not stop at token 15: what comes next?"
    if got == set(range(8, 14)):
        return "these are the tokens that token 13 hears. Asked is who hears token 13: t = 13 + lag."
    if got == want - {13}:
        return "lag 0 counts: a token hears itself."
    if got == want | {3}:
        return "one too many: the lags 0 to 5 are six, and the last of them is 5."
    return "token t hears token (t - lag) mod 16. Solve for t with each of the six lags."


def _fractions(found: set) -> str:
    """The first of `found` that is no whole number, as text; empty if all are."""
    return next((f"{x:.4g}" if isinstance(x, float) else repr(x)
                 for x in found if isinstance(x, str) or not x.is_integer()), "")  # fmt: skip


@checker
def linear_convolution(answer) -> str | None:
    """A function (x, h) -> y, all (n,): y_t = sum of h_s x_(t-s) over 0 <= s <= t, silence before token 0."""
    rng = np.random.default_rng(0)
    for n in (8, 9):
        x, h = rng.standard_normal((2, n))
        y = fits(reply(answer, x, h), (n,), f"as many as went in. Crop to the first {n}.")
        if np.iscomplexobj(y):
            return "the output of a real filter is real: use rfft and irfft, or take the real part."
        wrong = {
            "that is the circular convolution: token 0 hears the end. Pad both with zeros before the FFT.":
                np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h), n=n),
            "you cropped from the middle, which shifts the output towards the future. Keep the first n.":
                np.convolve(x, h, mode="same"),
            "you kept the end of the convolution. The first n numbers are those of the tokens.": np.convolve(x, h)[-n:],
        }  # fmt: skip
        differs = "the numbers differ from np.convolve(x, h)[:n]. Is n= given to irfft? Are n zeros added?"
        if says := arrays(y, np.convolve(x, h)[:n], wrong, f"at n = {n} {differs}"):
            return says
