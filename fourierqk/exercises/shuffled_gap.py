"""Checkers of the chapter on the shuffled gap."""
import math

import numpy as np
import torch

from fourierqk.exercises import Numeric, checker, fits, members, reply, ruled

__all__ = ["modest_gap", "over_confidence", "proofs", "unigram_entropy"]


@checker
def unigram_entropy(answer) -> str | None:
    """A function (ids (N,), vocab_size) -> the entropy of the token counts, in nats."""
    for ids, v in ((torch.tensor([0, 1, 2, 3] * 5), 4), (torch.tensor([0, 0, 0, 1, 2, 2]), 6)):
        p = torch.bincount(ids, minlength=v).double() / len(ids)
        right = -sum(x * math.log(x) for x in p.tolist() if x)
        got = fits(reply(answer, ids, v), (), "the sum over the tokens.")
        if np.isnan(got):
            return "a token that never occurs made 0 times the logarithm of 0, which is no number. Leave it out."
        wrong = {
            right / math.log(2): "that is in bits. Nats use the natural logarithm.",
            -right: "right size, wrong sign: an entropy is not negative.",
            max(p.tolist()): "that is the largest probability. The entropy is the mean of -ln p.",
            math.log(v): "that is ln V, the entropy of equally frequent tokens. These are not.",
        }
        text = f"{ids.tolist()[:6]}..."
        otherwise = f"on {text} it gives {got:.3f} nats, not {right:.3f}: sum -p ln p over the tokens."
        if says := Numeric(right, wrong, otherwise).judge(got):
            return says


@checker
def over_confidence(answer) -> str | None:
    """A function (logits (N, V), u (V,)) -> the mean divergence of the predictions from u, D(u || p), in nats."""
    for v, zero in ((5, False), (4, True)):
        logits, u = _predictions(v, zero)
        logp = logits.log_softmax(-1)
        entropy = torch.special.entr(u).sum()
        each = -(u * logp).sum(-1) - entropy  # (N,)
        right = each.mean().item()
        got = fits(reply(answer, logits, u), (), "the mean over the predictions.")
        if np.isnan(got) and zero:
            return "a token that never occurs made 0 times the logarithm of 0, which is no number. It adds nothing."
        back = (logp.exp() * (logp - u.log())).sum(-1).mean().item()
        raw = -(u * logits).sum(-1) - entropy
        wrong = {
            right + entropy.item(): "that is the shuffled loss. Take the unigram entropy off it.",
            right / math.log(2): "that is in bits. Nats use the natural logarithm.",
            -right: "right size, wrong sign: a divergence is never negative.",
            back: "you exchanged the two: that is D(p || u). The tokens come with u, so u weighs.",
            each.sum().item(): "that is the sum over the predictions. Take their mean.",
            raw.mean().item(): "logits are not yet logarithms of probabilities: log_softmax makes them so.",
        }
        otherwise = f"for {v} tokens it gives {got:.3f} nats, not {right:.3f}: the mean of sum u (ln u - ln p)."
        if says := Numeric(right, {k: w for k, w in wrong.items() if math.isfinite(k)}, otherwise).judge(got):
            return says


def _predictions(v: int, zero: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (3, v) and frequencies (v,); with `zero`, one token never occurs."""
    rng = torch.Generator().manual_seed(v)
    logits = 2 * torch.randn(3, v, generator=rng, dtype=torch.float64)
    u = torch.rand(v, generator=rng, dtype=torch.float64)
    u[-1] *= not zero
    return logits, u / u.sum()


@ruled
def modest_gap() -> Numeric:
    """The shuffled gap of a model that gives every token the probability 1/V: 0."""
    says = "its loss is ln V on every token of every text, in any order. What is the difference of two such losses?"
    return Numeric(0, {}, otherwise=says)


@checker
def proofs(answer: set) -> str | None:
    """Which of the models A to E have a shuffled loss below 3.08 by more than 4 standard errors: B and D."""
    such_as = 'a set of letters, such as {"A", "C"}'
    found = {str(x).upper() for x in members(answer, such_as)}
    if not found <= set("ABCDE"):
        return f"answer with {such_as}."
    if "A" in found:
        return "A is below the entropy, but by less than 2 standard errors. Chance does that."
    if "E" in found:
        return "E has a large gap, and no shuffled loss below the entropy. A gap proves nothing."
    if "C" in found:
        return "C is at the entropy, not below it."
    if found != {"B", "D"}:
        return f"{found.pop()} is one of them, and one is missing: how many standard errors below 3.08 is each?"
