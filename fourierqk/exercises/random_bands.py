"""Checkers of the chapter on random bands."""
import math

import numpy as np
import torch

from fourierqk.exercises import Numbers, Numeric, Span, Whole, checker, fits, reply, ruled
from fourierqk.filters import RandomBands

__all__ = ["deaf_centre", "slowest_draw", "twice_the_gain", "unit"]


@ruled
def deaf_centre() -> Numeric:
    """The centre, in cycles per token, at which cos(2 pi c) = 0: the next token weighs nothing."""
    wrong = {
        4: "that is the period, in tokens. Give the centre in cycles per token.",
        0.5: "there the cosine is -1: the next token weighs as much as the token itself, upside down.",
        math.pi / 2: "that is the angle 2 pi c. Divide by 2 pi to have the centre.",
        90: "that is the angle in degrees. A whole turn is one cycle.",
        (0.75, -0.25): "the cosine is zero there, but a centre lies between 0 and 1/2 cycles per token.",
    }
    otherwise = "a cosine is zero after a quarter of a turn: 2 pi c = pi / 2, with c between 0 and 1/2."
    return Numeric(0.25, wrong, otherwise)


@ruled
def twice_the_gain() -> Numeric:
    """The factor by which scores grow when the filter of queries and keys is doubled: 4."""
    wrong = {
        2: "the filter acts twice in a score: on the query and on the key.",
        16: "one factor of 2 for the query and one for the key: not their fourth power.",
        1: "a softmax has no gain control: larger scores make sharper weights.",
    }
    return Numeric(4, wrong, "write a score as a product, (2 q) . (2 k), and take the factors out.")


@checker
def unit(answer) -> str | None:
    """A function (phi (F,), n) -> phi scaled so that its impulse response over n tokens has L2 norm 1."""
    for n in (16, 15):
        phi = torch.rand(n // 2 + 1, generator=torch.Generator().manual_seed(n)) + 0.1
        got = fits(reply(answer, phi, n), (len(phi),), "the scaled response has as many values as phi.")
        factors = got / phi.numpy()
        if not np.isfinite(got).all() or not np.allclose(factors, factors[0], rtol=1e-3):
            return "the shape of the response changed. Divide all of phi by one number."
        if factors[0].real < 0:
            return "the response is upside down: a norm is positive."
        if math.isclose(np.linalg.norm(got), 1, rel_tol=1e-4):
            return "the norm of phi itself is 1 now. Measure in time: the norm of irfft(phi, n=n)."
        if math.isclose(got.sum().real, 1, rel_tol=1e-4):
            return "the sum of phi is 1 now, an L1 norm. Asked is the sum of squares of the impulse response."
        energy = float((np.fft.irfft(got, n=n) ** 2).sum())
        if math.isclose(energy, 1, rel_tol=1e-3):
            continue
        if n % 2:
            return f"at n = {n} the squares of the impulse response sum to {energy:.3g}, not 1. Did irfft get n=?"
        if math.isclose(np.linalg.norm(np.fft.irfft(phi, n=n)) ** 2 * factors[0].real, 1, rel_tol=1e-3):
            return "you divided by the sum of squares. A norm is its root."
        return f"at n = {n} the squares of the impulse response sum to {energy:.3g}, not 1."


@ruled
def slowest_draw() -> Whole:
    """The seed among 0 .. 19 whose four random bands have the lowest highest centre."""
    top = {seed: RandomBands(4, seed).centre.max().item() for seed in range(20)}
    best, worst = min(top, key=top.__getitem__), max(top, key=top.__getitem__)
    wrong: dict[Numbers, str] = {
        seed: f"its fastest band is at {centre:.3f} cycles per token. A draw exists whose fastest is slower."
        for seed, centre in top.items()
        if seed not in (best, worst)
    }
    wrong[worst] = "this draw has the highest of all fastest bands. Look for the lowest."
    wrong[Span(0.99 * top[best], 1.01 * top[best])] = "that is the centre of its fastest band. Which seed draws it?"
    return Whole(best, wrong, "answer with a seed, a whole number from 0 to 19.")
