"""Checkers of the chapter on dot-product attention."""
import math

import numpy as np
import torch

from fourierqk.exercises import Numeric, Span, arrays, checker, fits, members, reply, ruled

__all__ = ["causal_weights", "guess_loss", "score_scale", "swapped"]


@ruled
def guess_loss() -> Numeric:
    """The loss, in nats, of a model that gives each of 32 characters the same probability."""
    wrong = {
        Span(-math.inf, -1e-6): "the loss is minus the log of a probability, so it cannot be negative.",
        5: "that is the answer in bits (log2 of 32). A nat uses the natural logarithm.",
        math.log10(32): "that is the logarithm to base 10. A nat uses the natural logarithm.",
        1 / 32: "that is the probability of each character. The loss is minus its logarithm.",
    }
    otherwise = "each character has probability 1/32, and the loss is minus the natural log of that."
    return Numeric(math.log(32), wrong, otherwise, rel_tol=2e-3)


@ruled
def score_scale() -> Numeric:
    """The standard deviation of q . k for 64 independent channels of unit variance."""
    wrong = {
        64: "that is the variance: 64 terms of variance 1. The standard deviation is its root.",
        1: "that is what is left after the division. How large is q . k before it?",
        1 / 8: "that is the factor which undoes it. How large is q . k itself?",
    }
    otherwise = "a sum of d independent terms of variance 1 has variance d. Take d = 64, then the root."
    return Numeric(8, wrong, otherwise)


@checker
def causal_weights(answer) -> str | None:
    """A function scores (T, T) -> attention weights (T, T) that hide every later token."""
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    w = fits(reply(answer, scores), (5, 5), "(T, T), row t for the token that listens.")
    if np.isnan(w[0]).any() and not np.isnan(w[1:]).any():
        return "row 0 is NaN: token 0 has nobody left to hear. A token hears itself, so the diagonal stays."
    if np.isnan(w).any():
        return "some weights are not numbers: mask with minus infinity before the softmax, never 0 * inf."
    if abs(np.triu(w, 1)).max() > 0:
        return "some weight above the diagonal is not zero: row t may listen to tokens 0 .. t only."
    if np.allclose(w.sum(0), 1, atol=1e-5):
        return "the columns sum to 1, not the rows: take the softmax along the last axis, over the keys."
    if not np.allclose(w.sum(1), 1, atol=1e-5):
        return "the rows do not sum to 1: mask the scores first, then take the softmax."
    later = torch.ones(5, 5).triu(1).bool()
    right, even = (s.masked_fill(later, -math.inf).softmax(-1) for s in (scores, 0 * scores))
    wrong = {"all tokens weigh the same. The softmax of the scores prefers some.": even}
    return arrays(w, right, wrong, "the weights are causal, but they are not the softmax of the scores.")


@checker
def swapped(answer) -> str | None:
    """Which outputs of one causal layer without positions change when tokens 2 and 5 of 8 are swapped: 2 to 5."""
    got, want = members(answer, "a set of positions, such as {0, 1}"), {2, 3, 4, 5}
    if got == want:
        return None
    if got - set(range(8)):
        return "the positions are 0 to 7."
    if got & {0, 1}:
        return "outputs 0 and 1 hear nothing of it: the mask hides tokens 2 and 5 from them."
    if got & {6, 7}:
        return "outputs 6 and 7 hear the same tokens as before, and a sum does not depend on the order of its terms."
    if got == {2, 5}:
        return "outputs 3 and 4 hear token 2, and it is another token now."
    if got == {3, 4}:
        return "outputs 2 and 5 ask with other queries now."
    return "for each output, write down its query and the set of tokens that it hears, before and after the swap."
