"""Checkers of the chapter on dot-product attention."""
import math

import torch

from fourierqk.exercises import checker, numeric

__all__ = ["causal_weights", "guess_loss", "score_scale", "tokens_heard"]


@checker
def guess_loss(answer: float) -> str | None:
    """The loss, in nats, of a model that gives each of 32 characters the same probability."""
    if answer < 0:
        return "the loss is minus the log of a probability, so it cannot be negative."
    wrong = {5: "that is the answer in bits (log2 of 32). A nat uses the natural logarithm."}
    otherwise = "each character has probability 1/32, and the loss is minus the natural log of that."
    return numeric(answer, math.log(32), wrong, otherwise, rel_tol=2e-3)


@checker
def score_scale(answer: float) -> str | None:
    """The standard deviation of q . k for 64 independent channels of unit variance."""
    wrong = {64: "that is the variance: 64 terms of variance 1. The standard deviation is its root."}
    return numeric(
        answer, 8, wrong, "a sum of d independent terms of variance 1 has variance d. Take d = 64, then the root."
    )


@checker
def causal_weights(answer) -> str | None:
    """A function scores (T, T) -> attention weights (T, T) that hide every later token."""
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    w = answer(scores.clone())
    if not isinstance(w, torch.Tensor) or w.shape != (5, 5):
        return "return a (T, T) tensor of weights, row t for the token that listens."
    if w.isnan().any():
        return "some weights are not numbers: mask with minus infinity before the softmax, never 0 * inf."
    if w.triu(1).abs().max() > 0:
        return "some weight above the diagonal is not zero: row t may listen to tokens 0 .. t only."
    if not torch.allclose(w.sum(-1), torch.ones(5)):
        return "the rows do not sum to 1: mask the scores first, then take the softmax."
    if not torch.allclose(w, scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf).softmax(-1)):
        return "the weights are causal, but they are not the softmax of the scores."


@checker
def tokens_heard(answer: int) -> str | None:
    """How many tokens position 99 (counted from 0) of a causal model can use in a window of 128."""
    wrong = {
        99: "position 99 hears itself too.",
        128: "128 is the window; the mask hides what comes after position 99.",
    }
    return numeric(answer, 100, wrong, "count the positions 0, 1, ..., 99.")
