"""Checkers of the chapter on the shuffled gap."""
import math

import torch

from fourierqk.exercises import checker

__all__ = ["modest_gap", "over_confidence", "proofs", "unigram_entropy"]


@checker
def unigram_entropy(answer) -> str | None:
    """A function (ids (N,), vocab_size) -> the entropy of the token counts, in nats."""
    for ids, v in ((torch.tensor([0, 1, 2, 3] * 5), 4), (torch.tensor([0, 0, 0, 1, 2, 2]), 6)):
        p = torch.bincount(ids, minlength=v).double() / len(ids)
        right = -sum(x * math.log(x) for x in p.tolist() if x)
        got = float(answer(ids.clone(), v))
        if math.isnan(got):
            return "a token that never occurs made 0 times the logarithm of 0, which is no number. Leave it out."
        if math.isclose(got, right / math.log(2), rel_tol=1e-3):
            return "that is in bits. Nats use the natural logarithm."
        if math.isclose(got, -right, rel_tol=1e-3):
            return "right size, wrong sign: an entropy is not negative."
        if math.isclose(got, math.log(v), rel_tol=1e-3) and not math.isclose(right, got, rel_tol=1e-3):
            return "that is ln V, the entropy of equally frequent tokens. These are not."
        if not math.isclose(got, right, rel_tol=1e-3):
            return f"on {ids.tolist()[:6]}... it gives {got:.3f} nats, not {right:.3f}: sum -p ln p over the tokens."


@checker
def over_confidence(answer: float) -> str | None:
    """The over-confidence of a model with ordered loss 0.85, shuffled loss 7.85, unigram entropy 3.05: 4.8 nats."""
    if math.isclose(answer, 7.0, abs_tol=1e-6):
        return "that is the whole gap. Take off the part that comes from context, unigram entropy minus ordered loss."
    if math.isclose(answer, 2.2, abs_tol=1e-6):
        return "that is the part that comes from context. The rest of the gap is asked for."
    if not math.isclose(answer, 4.8, abs_tol=1e-6):
        return "over-confidence is what the shuffled loss has beyond the unigram entropy."


@checker
def modest_gap(answer: float) -> str | None:
    """The shuffled gap of a model that gives every token the probability 1/V: 0."""
    if not math.isclose(answer, 0, abs_tol=1e-9):
        return "its loss is ln V on every token of every text, in any order. What is the difference of two such losses?"


@checker
def proofs(answer: set) -> str | None:
    """Which of the models A to E have a shuffled loss below 3.08 by more than 4 standard errors: B and D."""
    found = {str(x).strip().upper() for x in answer}
    if not found or not found <= set("ABCDE"):
        return 'answer with a set of letters, such as {"A", "C"}.'
    if "A" in found:
        return "A is below the entropy, but by less than 2 standard errors. Chance does that."
    if "E" in found:
        return "E has a large gap, and no shuffled loss below the entropy. A gap proves nothing."
    if "C" in found:
        return "C is at the entropy, not below it."
    if found != {"B", "D"}:
        return "one is missing: how many standard errors below 3.08 is each?"
