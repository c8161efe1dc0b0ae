"""Checkers of the chapter on the shuffled gap."""
import math

import torch

from fourierqk.exercises import checker, numeric

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
        wrong = {
            right / math.log(2): "that is in bits. Nats use the natural logarithm.",
            -right: "right size, wrong sign: an entropy is not negative.",
            math.log(v): "that is ln V, the entropy of equally frequent tokens. These are not.",
        }
        text = f"{ids.tolist()[:6]}..."
        otherwise = f"on {text} it gives {got:.3f} nats, not {right:.3f}: sum -p ln p over the tokens."
        if says := numeric(got, right, wrong, otherwise):
            return says


@checker
def over_confidence(answer: float) -> str | None:
    """The over-confidence of a model with ordered loss 0.85, shuffled loss 7.85, unigram entropy 3.05: 4.8 nats."""
    context = "the part that comes from context, unigram entropy minus ordered loss."
    wrong = {
        7.0: f"that is the whole gap. Take off {context}",
        2.2: "that is the part that comes from context. The rest of the gap is asked for.",
    }
    otherwise = "over-confidence is what the shuffled loss has beyond the unigram entropy."
    return numeric(answer, 4.8, wrong, otherwise, rel_tol=1e-6)


@checker
def modest_gap(answer: float) -> str | None:
    """The shuffled gap of a model that gives every token the probability 1/V: 0."""
    says = "its loss is ln V on every token of every text, in any order. What is the difference of two such losses?"
    return numeric(answer, 0, {}, otherwise=says)


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
