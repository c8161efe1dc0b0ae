"""Checkers of the chapter on honest spectral attention."""
import math

import numpy as np
import torch

from fourierqk.exercises import Numeric, Whole, checker, fits, reply, ruled

__all__ = ["interaction", "late_value", "prefix_scores", "slowest_turn"]


@ruled
def slowest_turn() -> Numeric:
    """After how many tokens the slowest pair of 32 channels has turned once: 2 pi 10000^(15/16)."""
    wrong = {
        10000 ** (15 / 16): "that many tokens make one radian. A whole turn has 2 pi.",
        2 * math.pi * 10000: "the last of 16 pairs is c = 15, and its exponent 2c/d is 30/32, not 1.",
        2 * math.pi: "that is the fastest pair, c = 0.",
        2 * math.pi * 10000 ** (31 / 32): "c counts pairs, 0 to 15: the exponent is 2c/d.",
        10000 ** (-15 / 16): "that is the speed, in radians per token. How long does a whole turn take?",
    }
    return Numeric(2 * math.pi * 10000 ** (15 / 16), wrong, "divide a whole turn by the speed of pair c = 15.")


@ruled
def late_value() -> Whole:
    """Keys are one token late, and the query at 9 looks for the "q" at 3: the value of token 4 is handed over."""
    wrong = {
        3: "a key that is one token late speaks of the token before it. Whose key speaks of token 3?",
        2: "late means that key j speaks of token j - 1, not of j + 1.",
        9: "that is the one who asks.",
        5: "one token late, not two.",
    }
    return Whole(4, wrong, "key j speaks of token j - 1; the value of token j is not filtered.")


@checker
def prefix_scores(answer) -> str | None:
    """A function q (T, d), k (T, d), h(lag) -> scores (T, T): row i from the filter on tokens 0 .. i; 0 above."""
    q, k = np.random.default_rng(0).normal(size=(2, 7, 3))

    def h(lag: int) -> float:
        return 1 / (1 + lag**2) if lag <= 0 else 0.5**lag

    got = fits(reply(answer, torch.tensor(q), torch.tensor(k), h), (7, 7), "return one row a query, one column a key.")
    t = np.arange(7)
    both = np.array([[h(int(j - m)) for j in t] for m in t])  # entry (m, j): h(j - m)
    past = np.triu(both)  # without the lags below 0

    def is_of(scores: np.ndarray) -> bool:
        return np.allclose(np.tril(got), np.tril(scores), atol=1e-6)

    if is_of(np.tril(past.T @ q @ k.T) @ both):
        return None
    if is_of(both.T @ q @ (both.T @ k).T):
        return "row i has read tokens after i: cut queries and keys at i + 1 before you filter them."
    if is_of(past.T @ q @ (past.T @ k).T):
        return "your keys hear their past alone: key j may hear all tokens up to i, those after j too."
    return "row i is the last filtered query of the prefix times all its filtered keys."


@ruled
def interaction() -> Numeric:
    """1.70, 1.62, 1.65, 1.60 without and with a filter, without and with rotary positions: +0.03."""
    wrong = {
        -0.03: "the sign: with rotary positions the filter brings less, so the difference of differences is above 0.",
        -0.05: "that is what the filter brings without rotary positions. Take it from what it brings with them.",
        -0.02: "that is what the filter brings with rotary positions. What does it bring without them?",
        -0.10: "that is both together, against neither.",
        -0.08: "that is what rotary positions bring without a filter.",
    }
    return Numeric(0.03, wrong, "take two differences, with minus without the filter, then their difference.")
