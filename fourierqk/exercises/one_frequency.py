"""Checkers of the chapter on one learned frequency."""
import math

import torch

from fourierqk.exercises import checker, numeric
from fourierqk.filters import Gaussian

__all__ = ["band_period", "band_pass", "dc_attention", "largest_move"]


@checker
def band_period(answer: float) -> str | None:
    """The period, in tokens, of bin 4 of a DFT over 256 tokens."""
    wrong = {4 / 256: "that is the frequency, in cycles per token. The period is its inverse."}
    otherwise = "bin k of n tokens makes k cycles in n tokens: how many tokens does one cycle take?"
    return numeric(answer, 64, wrong, otherwise)


@checker
def band_pass(answer) -> str | None:
    """A function (x (n, d), freq, width) -> x through a Gaussian band, by hand."""
    for n in (16, 15):
        x = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
        y = answer(x.clone(), 0.1, 0.05)
        if not isinstance(y, torch.Tensor) or y.is_complex():
            return "return a real tensor: use rfft and irfft."
        if y.shape != x.shape:
            return f"{n} tokens went in and {len(y)} came out: tell irfft the length with n=."
        if not torch.allclose(y, Gaussian(0.1, 0.05)(x[None, None])[0, 0], atol=1e-5):
            return "right length, wrong values: multiply by exp(-(f - freq)^2 / (2 width^2)), with f from rfftfreq."


@checker
def dc_attention(answer) -> str | None:
    """The attention weights of the last of 4 tokens when queries and keys pass DC only."""
    w = torch.as_tensor(answer, dtype=torch.float64).flatten()
    if w.shape != (4,):
        return "give four weights, one a token."
    if not math.isclose(w.sum().item(), 1, rel_tol=1e-6):
        return "attention weights sum to 1."
    if not torch.allclose(w, torch.full_like(w, 0.25)):
        return "DC is the mean over time: every key becomes the same vector. What does a softmax make of equal scores?"


@checker
def largest_move(answer: float) -> str | None:
    """The factor by which a log frequency can grow in 1000 Adam steps of learning rate 3e-4, at most about."""
    wrong = {0.3: "that is how far the *logarithm* moves. By which factor does the frequency grow?"}
    otherwise = "Adam moves a parameter by about its learning rate a step: add the steps up, then undo the logarithm."
    return numeric(answer, math.exp(0.3), wrong, otherwise, rel_tol=2e-2)
