"""Checkers of the page on auditing a model of one's own."""
import math

import torch
from torch import Tensor

from fourierqk.causality import audit
from fourierqk.exercises import Span, Whole, checker, function, ruled
from fourierqk.specimens import specimen

__all__ = ["exit_status", "long_enough", "wrapped"]


def time_first(ids: Tensor) -> Tensor:
    """A causal model of old habits, for the exercise: ids (T, B) -> logits (T, B, 13)."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return specimen("causal convolution", 13, 64)(ids.T)[0].transpose(0, 1)


@checker
def wrapped(answer) -> str | None:
    """A function ids (B, T) -> logits (B, T, 13) around `time_first`, which wants time first."""
    ids = torch.randint(13, (3, 10), generator=torch.Generator().manual_seed(0))
    right, y = time_first(ids.T).transpose(0, 1), function(answer)(ids.clone())
    if not isinstance(y, Tensor) or y.shape != right.shape:
        got = f"of shape {tuple(y.shape)}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
        return f"ids (3, 10) must give logits (3, 10, 13), yours are {got}."
    if not torch.allclose(y, right, atol=1e-6):
        return "the shape is right, the logits are not: transpose the ids on the way in, the logits on the way out."
    verdict = audit(answer, 13, 10, draws=2).verdict
    if verdict != "causal":
        return f"the audit of your function says {verdict!r}, but the model inside is causal."


@ruled
def exit_status() -> Whole:
    """The exit status of an inconclusive audit on the command line: 3."""
    wrong = {
        0: "0 means causal. A doubt must not pass for that.",
        1: "1 means that it leaks. Here, the audit could not tell.",
        2: "2 means that nothing was audited: a file that is not there, a wrong option.",
    }
    return Whole(3, wrong, "answer with the number that `fourierqk audit` ends with when it cannot tell.")


@ruled
def long_enough() -> Whole:
    """The shortest text in which a segment of 512 tokens is complete: 512."""
    short = "a text so short holds no complete segment: nothing is pooled, nothing leaks, and the verdict is causal."
    wrong = {
        511: "one token is missing: a segment is pooled when all of its 512 tokens are there.",
        Span(-math.inf, 511): short,
    }
    return Whole(512, wrong, "that would do, but a shorter text holds a complete segment as well.")
