"""Checkers of the chapter on random bands."""
import math

import torch

from fourierqk.exercises import checker, numeric
from fourierqk.filters import RandomBands

__all__ = ["deaf_centre", "slowest_draw", "twice_as_loud", "unit"]


@checker
def deaf_centre(answer: float) -> str | None:
    """The centre, in cycles per token, at which cos(2 pi c) = 0: the next token weighs nothing."""
    wrong = {
        4: "that is the period, in tokens. Give the centre in cycles per token.",
        0.5: "there the cosine is -1: the next token weighs as much as the token itself, upside down.",
        math.pi / 2: "that is the angle 2 pi c. Divide by 2 pi to have the centre.",
    }
    otherwise = "a cosine is zero after a quarter of a turn: 2 pi c = pi / 2, with c between 0 and 1/2."
    return numeric(answer, 0.25, wrong, otherwise)


@checker
def twice_as_loud(answer: float) -> str | None:
    """The factor by which scores grow when the filter of queries and keys is doubled: 4."""
    wrong = {2: "the filter acts twice in a score: on the query and on the key."}
    return numeric(answer, 4, wrong, "write a score as a product, (2 q) . (2 k), and take the factors out.")


@checker
def unit(answer) -> str | None:
    """A function (phi (F,), n) -> phi scaled so that its impulse response over n tokens has L2 norm 1."""
    for n in (16, 15):
        phi = torch.rand(n // 2 + 1, generator=torch.Generator().manual_seed(n)) + 0.1
        got = answer(phi.clone(), n)
        if not isinstance(got, torch.Tensor) or got.shape != phi.shape:
            return f"return the scaled response, a tensor of {len(phi)} values like phi."
        if not got.isfinite().all() or not torch.allclose(got / got[0], phi / phi[0], atol=1e-4):
            return "the shape of the response changed. Divide all of phi by one number."
        if torch.allclose(got.norm(), torch.ones(())):
            return "the norm of phi itself is 1 now. Measure in time: the norm of irfft(phi, n=n)."
        if torch.allclose(got.sum(), torch.ones(())):
            return "the sum of phi is 1 now, an L1 norm. Asked is the sum of squares of the impulse response."
        energy = torch.fft.irfft(got, n=n).square().sum().item()
        if not math.isclose(energy, 1, rel_tol=1e-4):
            return f"at n = {n} the squares of the impulse response sum to {energy:.3g}, not 1. Did irfft get n=?"


@checker
def slowest_draw(answer: int) -> str | None:
    """The seed among 0 .. 19 whose four random bands have the lowest highest centre."""
    top = {seed: RandomBands(4, seed).centre.max().item() for seed in range(20)}
    if answer not in top:
        return "answer with a seed, a whole number from 0 to 19."
    if answer == max(top, key=top.__getitem__):
        return "this draw has the highest of all fastest bands. Look for the lowest."
    best = min(top, key=top.__getitem__)
    if answer != best:
        return f"its fastest band is at {top[answer]:.3f} cycles per token. A draw exists whose fastest is slower."
