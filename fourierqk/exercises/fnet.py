"""Checkers of the chapter on FNet."""
import numpy as np
import torch
from torch import Tensor, nn

from fourierqk.causality import audit
from fourierqk.exercises import Whole, arrays, checker, fits, members, reply, ruled
from fourierqk.model import GPTConfig, LanguageModel

__all__ = ["allowed", "fewer_weights", "mirror", "past_mix"]


@ruled
def mirror() -> Whole:
    """The other token that token 5 of 16 hears after two mixings in a row: 11."""
    wrong = {
        5: "that is the token itself, which it hears too. Which other one?",
        10: "the mirror stands at token 0, not between the ends: 0 and 16 are the same place.",
        12: "on the ring of 16, the mirror image of t is 16 - t. Token 0 is its own.",
        -5: "right, on a ring. Which of the tokens 0 to 15 is it?",
    }
    otherwise = "two DFTs in a row reverse the text round token 0: t becomes -t, counted modulo 16."
    return Whole(11, wrong, otherwise)


@ruled
def fewer_weights() -> Whole:
    """The weights that two layers of width 64 save without the four square matrices of attention: 32768."""
    wrong = {
        16384: "that is one layer. The model has two.",
        24576: "queries, keys and values are three. Attention has an output matrix as well.",
        512: "each of the matrices is 64 by 64.",
    }
    which = "for queries, keys, values and output; then times two layers."
    return Whole(32768, wrong, f"count the square matrices of attention: {which}")


@checker
def allowed(answer) -> str | None:
    """The tasks at which hearing the whole text gives nothing away: {"mood", "blank"}."""
    got = {str(task).lower() for task in members(answer, 'a set of tasks, such as {"mood"}')}
    if unknown := got - {"next", "mood", "blank", "write"}:
        return f"choose among next, mood, blank and write; {min(unknown)} is none of them."
    if "next" in got:
        return "next: at every position but the last, the answer stands in the text that the model hears."
    if "write" in got:
        return "write: it would be trained with a future that is not there when it writes."
    if got != {"mood", "blank"}:
        return "one is missing: where the answer is not part of the text given, the whole of it may be heard."


class _Mixer(nn.Module):
    """A reader's function in the place of attention, always in float32: it may be written for that alone."""

    def __init__(self, mix) -> None:
        super().__init__()
        self.mix = mix

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([torch.as_tensor(self.mix(row)) for row in x.float()]).to(x.dtype)


@checker
def past_mix(answer) -> str | None:
    """A function x (T, C) -> Re of the DFT over channels and then, of each token's past alone, over time."""
    x = torch.randn(9, 6, generator=torch.Generator().manual_seed(0))
    got = fits(reply(answer, x), (9, 6), "(T, C) go in and come out.")
    if np.iscomplexobj(got):
        return "return real numbers: take .real at the end."
    if not np.isfinite(got).all():
        return "some of your numbers are infinite or NaN. A DFT of finite numbers is finite."
    torch.manual_seed(0)
    cfg = GPTConfig(vocab_size=7, block_size=9, n_layer=1, n_head=1, n_embd=6, dropout=0.0)
    found = audit(LanguageModel(cfg, lambda: _Mixer(answer)), 7, 9, draws=4, progress=False)
    if found.verdict != "causal":
        return f"the audit says {found.verdict}. Put zeros where s > t, in the T x T matrix, before the product."
    f = torch.exp(-2j * torch.pi * torch.outer(torch.arange(9.0), torch.arange(9.0)) / 9)
    full = torch.fft.fft(x)
    sines = "causal, but the sines are missing: keep the matrix complex, and take the real part at the very end."
    wrong = {
        sines: f.real.tril() @ full.real,
        "causal, but the channels are not mixed: FNet transforms them as well.": (f.tril() @ x.to(f.dtype)).real,
    }
    masked = "row t is the sum over s <= t of exp(-2j pi t s / T), unscaled."
    return arrays(got, (f.tril() @ full).real, wrong, f"causal, but not the masked DFT: {masked}", atol=1e-3)
