"""Other ways to ask whether a model reads the future, each with a blind spot: for comparison, not for use.

Each takes a `LanguageModel` and ids (B, T), and returns the largest of what it looks at: 0 for an ideal causal model.
`causality.audit` asks better, and asks any model.
"""
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from fourierqk.model import LanguageModel

__all__ = ["gradient", "nan_poison", "prefix", "redraw"]


@torch.no_grad()
def redraw(model: LanguageModel, ids: Tensor) -> float:
    """The future drawn anew: by how much outputs before a cut move, in logits. Cuts: every position in turn."""
    z, most = model(ids)[0], 0.0
    for t in range(1, ids.shape[1]):
        other = torch.cat([ids[:, :t], ids[:, t:].flip(0)], 1)  # the suffix of another row
        most = max(most, (model(other)[0] - z)[:, :t].abs().max().item())
    return most


def gradient(model: LanguageModel, ids: Tensor) -> float:
    """How much outputs depend on embeddings of later tokens, as gradients tell, beside how much on earlier ones.

    The output is projected on a random direction: the sum of its logits might cancel.
    """
    with _embedded(model, lambda h: h.detach().requires_grad_()) as seen:
        z = model(ids)[0]
        y = z @ torch.randn(z.shape[-1], generator=torch.Generator().manual_seed(0))  # (B, T)
        per_output = [torch.autograd.grad(y[:, t].sum(), seen[-1], retain_graph=True)[0] for t in range(ids.shape[1])]
    influence = torch.stack(per_output).abs().amax((1, 3))  # (T, T): of output t by token s
    return (influence.triu(1).max() / influence.max()).item()


@torch.no_grad()
def nan_poison(model: LanguageModel, ids: Tensor) -> float:
    """The embeddings of later tokens set to NaN: the share of outputs before a cut that become NaN."""
    t = ids.shape[1] // 2
    poison = torch.zeros(ids.shape[1], 1).index_fill(0, torch.arange(t, ids.shape[1]), torch.nan)
    with _embedded(model, lambda h: h + poison):
        return model(ids)[0][:, :t].isnan().float().mean().item()


@torch.no_grad()
def prefix(model: LanguageModel, ids: Tensor) -> float:
    """A text cut short: by how much its outputs differ from those of the whole text, in logits."""
    z, lengths = model(ids)[0], (ids.shape[1] // 4, ids.shape[1] // 2, ids.shape[1] - 1)
    return max((model(ids[:, :n])[0] - z[:, :n]).abs().max().item() for n in lengths)


@contextmanager
def _embedded(model: LanguageModel, change: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """While active, the embeddings of tokens are changed; all that were made so far are listed."""
    made: list[Tensor] = []

    def hook(module: torch.nn.Module, args: tuple, h: Tensor) -> Tensor:
        made.append(change(h))
        return made[-1]

    handle = model.tokens.register_forward_hook(hook)
    try:
        yield made
    finally:
        handle.remove()
