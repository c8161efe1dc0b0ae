"""A table of counts as a language model: what a trained model has to beat before its filters mean anything."""
import torch
from torch import Tensor, nn

from fourierqk.checks import check_count

__all__ = ["NGram"]

CELLS = 2**24  # of the largest table: 128 MB


class NGram(nn.Module):
    """The next token by how often it followed the last `order` - 1 tokens (Witten and Bell 1991, method C).

    Orders are interpolated. After a context h seen c(h) times with t(h) different successors, P(x | h) = (c(h, x) +
    t(h) P(x | h')) / (c(h) + t(h)), where h' is h without its first token; below the empty context lies the uniform
    distribution. Near the start of a window, where fewer tokens have been read, the shorter context answers. Nothing is
    learned by gradients.

    ids: (N,) of the training text. ValueError where the table of `order` would not fit into memory.
    """

    log1: Tensor  # (V,), and so on: logn is (V,) * n

    def __init__(self, ids: Tensor, vocab_size: int, order: int = 3) -> None:
        super().__init__()
        if check_count(vocab_size, "vocab_size") ** check_count(order, "order") > CELLS:
            raise ValueError(f"a table of {vocab_size} tokens to the power of {order} is too large: lower the order")
        if len(ids) < order:
            raise ValueError(f"{len(ids)} tokens do not hold one run of {order}: give more text, or lower the order")
        self.vocab_size, self.order = vocab_size, order
        lower = torch.full((vocab_size,), 1 / vocab_size, dtype=torch.float64)
        for n in range(1, order + 1):
            lower = _interpolated(_counts(ids, vocab_size, n), lower)
            self.register_buffer(f"log{n}", lower.log())

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> log probabilities of the next token (B, T, V), float64."""
        steps = ids.shape[1]
        z = self.log1.expand(*ids.shape, -1)  # (B, T, V)
        for read in range(1, min(self.order - 1, steps) + 1):
            context = tuple(ids[:, i : steps - read + 1 + i] for i in range(read))  # (B, T - read + 1) each
            z = torch.cat([z[:, : read - 1], getattr(self, f"log{read + 1}")[context]], 1)
        return z


def _counts(ids: Tensor, vocab_size: int, n: int) -> Tensor:
    """How often each run of n tokens occurs, (V,) * n float64."""
    place = vocab_size ** torch.arange(n - 1, -1, -1)
    found = torch.bincount((ids.unfold(0, n, 1) * place).sum(-1), minlength=vocab_size**n)
    return found.double().view((vocab_size,) * n)


def _interpolated(counts: Tensor, lower: Tensor) -> Tensor:
    """P(next | context) from counts (V, ..., V) and the probabilities after one token less, (V, ..., V) or (V,)."""
    seen, kinds = counts.sum(-1, keepdim=True), (counts > 0).sum(-1, keepdim=True)
    mixed = (counts + kinds * lower) / (seen + kinds)
    return torch.where(seen > 0, mixed, lower)
