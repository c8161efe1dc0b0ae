"""A small GPT whose attention compares filtered queries with filtered keys, and FNet, which has neither.

One `Attention` serves every system of the paper: what differs is the filter it is given.
"""
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.checks import check_count
from fourierqk.contract import check_map
from fourierqk.filters import AllPass, FeatureMap
from fourierqk.parts import compute_dtype
from fourierqk.prefix import PrefixFilter
from fourierqk.rotary import Rotary

__all__ = [
    "Attention", "Block", "FNet", "FourierMixing", "GPT", "GPTConfig", "LanguageModel", "MLP", "attentions",
    "filter_parameters", "generate",
]  # fmt: skip

PLACES = ("q", "k", "v", "qk", "qv", "kv", "qkv")  # of a filter


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT. Lengths in tokens; n_embd is split evenly among n_head heads."""

    vocab_size: int
    block_size: int = 256  # the longest text it can read
    n_layer: int = 6
    n_head: int = 8
    n_embd: int = 256
    dropout: float = 0.1
    causal: bool = True  # False drops the mask, for masked language modelling

    def __post_init__(self) -> None:
        for name in ("vocab_size", "block_size", "n_layer", "n_head", "n_embd"):
            check_count(getattr(self, name), name)
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd = {self.n_embd} cannot be split evenly among n_head = {self.n_head} heads")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout = {self.dropout} must lie in [0, 1)")


class Attention(nn.Module):
    """Multi-head attention, softmax(filter(q) . filter(k) / sqrt(d)) v (paper, section 1).

    The mask hides later *scores*; whether later *tokens* reach filter(q) and filter(k) is up to the filter.

    on: which of the three projections the filter is for, "qk" in the paper; any of "q", "k" and "v", in this order.
    rotary: turns queries and keys by their positions, after the filter: the score of the filtered ones then depends on
    their distance. A `PrefixFilter`, which compares by itself, gets turned ones.
    """

    def __init__(self, cfg: GPTConfig, filter: FeatureMap, on: str = "qk", rotary: Rotary | None = None) -> None:
        super().__init__()
        self.cfg = cfg
        check_map(filter)
        if on not in PLACES or isinstance(filter, PrefixFilter) and on != "qk":
            raise ValueError(f"on = {on!r} must be one of {', '.join(PLACES)}; of a PrefixFilter, 'qk'")
        self.filter, self.on = copy.deepcopy(filter), on  # each layer learns its own
        self.rotary: Rotary | None = rotary
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd, bias=False)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)  # (B, T, C) each
        q, k, v = (t.unflatten(-1, (self.cfg.n_head, -1)).transpose(1, 2) for t in (q, k, v))  # (B, nh, T, d)
        own = self.filter
        y = self._by_prefix(own, q, k, v) if isinstance(own, PrefixFilter) else self._by_features(q, k, v)
        return self.proj(y.transpose(1, 2).flatten(2))  # (B, T, C)

    def _by_features(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention by the dot products of filtered queries and keys, (B, nh, T, d')."""
        parts = {"q": q, "k": k, "v": v}
        parts |= zip(self.on, self.filter.together(*(parts[name] for name in self.on)), strict=True)
        scale, width = v.shape[-1] ** -0.5, v.shape[-1]
        q, k, v = parts.values()
        if q.shape != k.shape or v.shape[-1] != width:
            raise ValueError(
                f"a filter on {self.on!r} made {q.shape[-1]} channels of queries, {k.shape[-1]} of keys and "
                f"{v.shape[-1]} of values from {width}: one that widens needs on='qk'"
            )
        q, k = self._turned(q, k)
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=self.cfg.causal, scale=scale, dropout_p=self.cfg.dropout * self.training
        )  # softmax of (B, nh, T, T), times (B, nh, T, d) -> (B, nh, T, d)

    def _by_prefix(self, filter: PrefixFilter, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention by scores that the filter computes itself, each query's from what it has read."""
        scores = filter.scores(*self._turned(q, k)) * v.shape[-1] ** -0.5  # (B, nh, T, T)
        weights = scores.masked_fill(scores.new_ones(scores.shape[-2:]).triu(1).bool(), -math.inf).softmax(-1)
        return F.dropout(weights, self.cfg.dropout, self.training).to(v.dtype) @ v  # (B, nh, T, d)

    def _turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return (q, k) if self.rotary is None else (self.rotary(q), self.rotary(k))


class FourierMixing(nn.Module):
    """What FNet has in the place of attention: the real part of a DFT over time and channels (Lee-Thorp et al. 2021).

    Nothing is learned, and nothing is masked: every position hears every other. The DFT is scaled to keep energy
    (1 / sqrt(T C)); FNet leaves it out, and a LayerNorm after the sum takes its place there.
    """

    def forward(self, x: Tensor) -> Tensor:
        z = x.to(compute_dtype(x.dtype))  # (B, T, C)
        return torch.fft.fft2(z, norm="ortho").real.to(x.dtype)  # over the last two axes, (B, T, C)


class MLP(nn.Module):
    """Two linear maps with a GELU between, four times as wide inside."""

    def __init__(self, cfg: GPTConfig) -> None:
        super().__init__()
        self.up = nn.Linear(cfg.n_embd, 4 * cfg.n_embd, bias=False)
        self.down = nn.Linear(4 * cfg.n_embd, cfg.n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))  # (B, T, C) -> (B, T, 4 C) -> (B, T, C)


class Block(nn.Module):
    """One layer: a mixer along time, then an MLP, each on a normalised copy and added back."""

    def __init__(self, cfg: GPTConfig, mixer: nn.Module) -> None:
        super().__init__()
        self.norm1, self.mixer = nn.LayerNorm(cfg.n_embd), mixer
        self.norm2, self.mlp = nn.LayerNorm(cfg.n_embd), MLP(cfg)
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.mixer(self.norm1(x)))  # (B, T, C)
        return x + self.drop(self.mlp(self.norm2(x)))  # (B, T, C)


class LanguageModel(nn.Module):
    """Embeddings of tokens and positions, blocks, and a head: all of a model but what mixes along time.

    mixer: makes one for each block, (B, T, C) -> (B, T, C). positions: whether each position has a learned embedding.
    """

    def __init__(self, cfg: GPTConfig, mixer: Callable[[], nn.Module], positions: bool = True) -> None:
        super().__init__()
        self.cfg = cfg
        self.tokens = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.positions = nn.Embedding(cfg.block_size, cfg.n_embd) if positions else None
        self.drop = nn.Dropout(cfg.dropout)
        self.blocks = nn.ModuleList(Block(cfg, mixer()) for _ in range(cfg.n_layer))
        self.norm = nn.LayerNorm(cfg.n_embd)
        self.head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        self._init_weights()

    def _init_weights(self) -> None:
        for m in self.modules():
            if isinstance(m, nn.Linear | nn.Embedding):
                nn.init.normal_(m.weight, std=0.02)
        for b in self.blocks:  # GPT-2: the residual stream keeps its variance at any depth
            for name, m in b.named_modules():
                if name in ("mixer.proj", "mlp.down"):
                    nn.init.normal_(m.weight, std=0.02 / (2 * self.cfg.n_layer) ** 0.5)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """idx, targets: (B, T) token ids -> logits (B, T, V) and, given targets, the mean loss in nats per token."""
        if idx.is_floating_point() or idx.dim() != 2 or not 1 <= idx.shape[1] <= self.cfg.block_size:
            most = self.cfg.block_size
            raise ValueError(f"expected ids (B, T) with 1 <= T <= block_size = {most}, got {tuple(idx.shape)}")
        x = self.tokens(idx)  # (B, T, C)
        if self.positions is not None:
            x = x + self.positions.weight[: idx.shape[1]]  # (B, T, C) + (T, C)
        x = self.drop(x)
        for block in self.blocks:
            x = block(x)  # (B, T, C)
        logits = self.head(self.norm(x))  # (B, T, V)
        if targets is None:
            return logits, None
        z = logits.to(compute_dtype(logits.dtype))  # autocast hands over bfloat16
        return logits, F.cross_entropy(z.flatten(0, 1), targets.flatten())  # (B T, V), (B T) -> ()


class GPT(LanguageModel):
    """A language model with attention, and one filter for queries and keys in every layer.

    filter: what queries and keys pass through, copied into each layer; None is plain dot-product attention. on: as for
    `Attention`. rotary: turns queries and keys by their positions, in the place of learned embeddings of positions.
    """

    def __init__(
        self, cfg: GPTConfig, filter: FeatureMap | None = None, on: str = "qk", rotary: Rotary | None = None
    ) -> None:
        super().__init__(cfg, lambda: Attention(cfg, filter or AllPass(), on, rotary), positions=rotary is None)


class FNet(LanguageModel):
    """The same model with `FourierMixing` in the place of attention (S13): no queries, no keys, no scores, no mask.

    It is not causal: use it where the whole text is given. `cfg.causal` changes nothing.
    """

    def __init__(self, cfg: GPTConfig) -> None:
        super().__init__(cfg, FourierMixing)


def attentions(model: nn.Module) -> list[Attention]:
    """The attention layers of a model, from the first on; none in an FNet."""
    return [m for m in model.modules() if isinstance(m, Attention)]


def filter_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """The learnable parameters inside filters, each once: they do not decay, whatever their shape."""
    owned = {id(p): p for m in model.modules() if isinstance(m, FeatureMap) for p in m.parameters() if p.requires_grad}
    return iter(owned.values())


@torch.no_grad()
def generate(model: LanguageModel, idx: Tensor, n: int, temperature: float = 1.0, seed: int = 0) -> Tensor:
    """Continue a text by n tokens, one at a time, each drawn from the model's last prediction.

    idx: (B, T) -> (B, T + n), on any device; the model, on its own, sees the last block_size tokens. temperature 0
    takes the likeliest token.
    """
    if idx.is_floating_point() or idx.dim() != 2 or idx.shape[1] < 1 or n < 0 or not temperature >= 0:
        raise ValueError(
            "need a prompt of token ids (B, T), at least one token long, n >= 0 and temperature >= 0, "
            f"got a prompt {tuple(idx.shape)}, {n=}, {temperature=}"
        )
    if idx.numel() and not 0 <= int(idx.min()) <= int(idx.max()) < model.cfg.vocab_size:
        found = f"{int(idx.min())} to {int(idx.max())}"
        raise ValueError(f"the prompt has ids {found}, the model knows 0 to {model.cfg.vocab_size - 1}")
    rng, was_training = torch.Generator(device="cpu").manual_seed(seed), model.training
    device = next(model.parameters()).device
    model.eval()
    for _ in range(n):
        logits = model(idx[:, -model.cfg.block_size :].to(device))[0][:, -1].float().cpu()  # (B, V)
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)  # (B, 1)
        else:  # drawn on the CPU, so that a seed means the same text on every device
            new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=rng)
        idx = torch.cat([idx, new.to(idx.device)], 1)
    model.train(was_training)
    return idx
