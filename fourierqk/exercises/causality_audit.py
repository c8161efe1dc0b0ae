"""Checkers of the chapter on the causality audit."""
import numpy as np
import torch

from fourierqk.causality import Audit, audit
from fourierqk.exercises import checker, fits, function, members, reply
from fourierqk.model import GPTConfig, LanguageModel
from fourierqk.specimens import Beside, rivals, specimen

__all__ = ["exact_test", "mended", "own_model", "proof_positions", "without_gradient"]


@checker
def proof_positions(answer: set) -> str | None:
    """Tokens from position 5 on are replaced, outputs 3, 4, 5 and 7 move: those before the cut prove a leak."""
    found = members(answer, "a set of positions, such as {0, 1}")
    if found == {3, 4, 5, 7}:
        return "outputs 5 and 7 may move: they come at or after the first replaced token."
    if 5 in found:
        return "output 5 may use token 5, which is its own. A causal model may move there."
    if found & {0, 1, 2, 6}:
        return "some of these did not move at all."
    if found != {3, 4}:
        return "an output proves a leak when it moved and comes before the first replaced token."


@checker
def exact_test(answer) -> str | None:
    """A function (model, ids (1, T), cut) -> whether an output before the cut moves when the rest is replaced."""
    text = torch.randint(13, (1, 16), generator=torch.Generator().manual_seed(0))
    for name, leaks in (("no mask", True), ("unpadded FFT", True), ("causal attention", False),
                        ("causal convolution", False), ("log-length scores", False)):  # fmt: skip
        torch.manual_seed(0)
        model, ids = specimen(name, 13, 16), text.clone()
        found = [bool(function(answer)(model, ids, cut)) for cut in (3, 8, 15)]
        if not torch.equal(ids, text):
            return "your function changed the text it was given: work on ids.clone()."
        if name == "log-length scores" and any(found):
            return "it accuses a model that only feels the length of the text. Replace tokens, keep their number."
        if leaks and not any(found):
            return f"it passes {name!r}, which reads the future. Is the suffix really another one?"
        if not leaks and any(found):
            return f"it accuses {name!r}. Look at outputs before the cut only: [:, :cut]."


@checker
def without_gradient(answer) -> str | None:
    """A function x (B, T, C) -> (B, T, C) that reads the future, and of which the gradient test sees nothing."""
    cfg = GPTConfig(13, 16, n_layer=1, n_head=1, n_embd=32, dropout=0.0)
    torch.manual_seed(0)
    model = LanguageModel(cfg, lambda: Beside(32, function(answer)))
    x = torch.randn(2, 16, 32)
    y = answer(x.clone())
    if not isinstance(y, torch.Tensor) or y.shape != x.shape:
        return "return a tensor of the same shape as x, (B, T, C)."
    verdict = audit(model, 13, 16, draws=6).verdict
    if verdict != "leaks":
        return f"the audit says {verdict!r}: let output t depend on a token after t, in a way that reaches the logits."
    if rivals.gradient(model, torch.randint(13, (4, 16), generator=torch.Generator().manual_seed(1))) > 1e-6:
        return "it leaks, but its gradient tells. Pass the future through a comparison, a sign or an argmax."


@checker
def mended(answer) -> str | None:
    """A function (x (T,), kernel (T,)) -> the causal convolution of the two, (T,), by FFT."""
    rng = np.random.default_rng(0)
    for n in (8, 13):
        x, h = rng.standard_normal(n), rng.standard_normal(n)
        y = fits(reply(answer, torch.tensor(x), torch.tensor(h)), (n,), "as many as went in. Crop to the first T.")
        if np.allclose(y, np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(h), n=n)):
            return "it still wraps round: the end of the text is heard at its beginning. Pad with zeros first."
        if not np.allclose(y, np.convolve(x, h)[:n]):
            return f"at T = {n} it is not sum over s <= t of kernel[t - s] x[s]. Did irfft get n=?"


@checker
def own_model(answer: Audit) -> str | None:
    """The audit of a model of the reader's own."""
    if not isinstance(answer, Audit):
        return "answer with what audit(...) returns."
    if answer.name in ("LanguageModel", "GPT", "FNet"):
        return "that is one of ours. Take a model of your own, or write one in three lines."
