"""A small GPT whose attention compares filtered queries with filtered keys, and FNet, which has neither.

One `Attention` serves every system of the paper: what differs is the filter it is given.
"""
import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fourierqk.checks import check_count
from fourierqk.contract import check_map
from fourierqk.filters import AllPass, FeatureMap
from fourierqk.parts import compute_dtype
from fourierqk.prefix import PrefixFilter
from fourierqk.rotary import Rotary
from fourierqk.streaming import Cache, Counted, Stream, Streaming, opened

__all__ = [
    "Attention", "Block", "FNet", "FourierMixing", "GPT", "GPTConfig", "LanguageModel", "MLP", "attentions",
    "check_shape", "filter_parameters", "generate",
]  # fmt: skip

_Maps = Callable[..., tuple[Tensor, ...]]  # of several signals at once

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


def check_shape(cfg: object) -> None:
    """ValueError unless it is the shape of a model: a preset knows no vocabulary, a name no shape."""
    if not isinstance(cfg, GPTConfig):
        raise ValueError(f"expected a GPTConfig, the shape of a model, got a {type(cfg).__name__}: write "
                         'GPTConfig(vocab_size=65, ...), or PRESETS["tiny"].gpt(65) for that of a preset')  # fmt: skip


class Attention(Streaming):
    """Multi-head attention, softmax(filter(q) . filter(k) / sqrt(d)) v (paper, section 1).

    The mask hides later *scores*; whether later *tokens* reach filter(q) and filter(k) is up to the filter.

    on: which of the three projections the filter is for, "qk" in the paper; any of "q", "k" and "v", in this order.
    rotary: turns queries and keys by their positions, after the filter: the score of the filtered ones then depends on
    their distance. A `PrefixFilter`, which compares by itself, gets turned ones.
    """

    def __init__(self, cfg: GPTConfig, filter: FeatureMap, on: str = "qk", rotary: Rotary | None = None) -> None:
        super().__init__()
        check_shape(cfg)
        self.cfg = cfg
        check_map(filter)
        if on not in PLACES or isinstance(filter, PrefixFilter) and on != "qk":
            raise ValueError(f"on = {on!r} must be one of {', '.join(PLACES)}; of a PrefixFilter, 'qk'")
        self.filter, self.on = copy.deepcopy(filter), on  # each layer learns its own
        self.rotary: Rotary | None = rotary
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd, bias=False)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        own, turn = self.filter, self.rotary.together if self.rotary else _untouched
        if isinstance(own, PrefixFilter):
            return self._through(x, _untouched, turn, lambda q, k, v: self._weighed(own.scores(q, k), v))
        return self._through(x, own.together, turn, self._by_products)

    def stream(self) -> Stream:
        if not self.cfg.causal:
            raise NotImplementedError("attention without a mask does not stream: it hears later tokens")
        own, turn = self.filter, self.rotary.streams(2) if self.rotary else _untouched
        keys, values = Cache(self.cfg.block_size), Cache(self.cfg.block_size)
        if isinstance(own, PrefixFilter):
            rows = own.growing(keys)
            return lambda x: self._through(x, _untouched, turn, lambda q, k, v: self._weighed(rows(q, k), values(v)))
        features = own.streams(len(self.on))
        return lambda x: self._through(x, features, turn, lambda q, k, v: self._by_products(q, keys(k), values(v)))

    def _through(self, x: Tensor, features: _Maps, turn: _Maps, compare: Callable[..., Tensor]) -> Tensor:
        """Projections into heads, the features of those that the filter is for, turned, compared, and out of heads."""
        q, k, v = self.qkv(x).chunk(3, -1)  # (B, T, C) each
        q, k, v = (t.unflatten(-1, (self.cfg.n_head, -1)).transpose(1, 2) for t in (q, k, v))  # (B, nh, T, d)
        parts, width = {"q": q, "k": k, "v": v}, v.shape[-1]
        parts |= zip(self.on, features(*(parts[name] for name in self.on)), strict=True)
        q, k, v = parts.values()  # (B, nh, T, d'), of values d
        if q.shape != k.shape or v.shape[-1] != width:
            raise ValueError(
                f"a filter on {self.on!r} made {q.shape[-1]} channels of queries, {k.shape[-1]} of keys and "
                f"{v.shape[-1]} of values from {width}: one that widens needs on='qk'"
            )
        return self.proj(compare(*turn(q, k), v).transpose(1, 2).flatten(2))  # (B, T, C)

    def _by_products(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention by the products of queries, those of the last t tokens, and keys, those of all T."""
        (t, n), dropout, scale = (q.shape[-2], k.shape[-2]), self.cfg.dropout * self.training, v.shape[-1] ** -0.5
        past = q.new_ones(t, n, dtype=torch.bool).tril(n - t) if t < n else None
        return F.scaled_dot_product_attention(
            q, k, v, past, dropout, is_causal=self.cfg.causal and past is None, scale=scale
        )  # softmax of (B, nh, t, T), times (B, nh, T, d) -> (B, nh, t, d)

    def _weighed(self, scores: Tensor, v: Tensor) -> Tensor:
        """Attention by given scores of the last t tokens with all, (B, nh, t, T)."""
        t, n = scores.shape[-2:]
        later = scores.new_ones(t, n, dtype=torch.bool).triu(n - t + 1)
        weights = (scores * v.shape[-1] ** -0.5).masked_fill(later, -math.inf).softmax(-1)
        return F.dropout(weights, self.cfg.dropout, self.training).to(v.dtype) @ v  # (B, nh, t, d)


def _untouched(*signals: Tensor) -> tuple[Tensor, ...]:
    return signals


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


class Block(Streaming):
    """One layer: a mixer along time, then an MLP, each on a normalised copy and added back."""

    def __init__(self, cfg: GPTConfig, mixer: nn.Module) -> None:
        super().__init__()
        self.norm1, self.mixer = nn.LayerNorm(cfg.n_embd), mixer
        self.norm2, self.mlp = nn.LayerNorm(cfg.n_embd), MLP(cfg)
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self._around(x, self.mixer)

    def stream(self) -> Stream:
        return partial(self._around, mix=opened(self.mixer))

    def _around(self, x: Tensor, mix: Stream) -> Tensor:
        x = x + self.drop(mix(self.norm1(x)))  # (B, T, C)
        return x + self.drop(self.mlp(self.norm2(x)))  # (B, T, C)


class LanguageModel(Streaming):
    """Embeddings of tokens and positions, blocks, and a head: all of a model but what mixes along time.

    mixer: makes one for each block, (B, T, C) -> (B, T, C). positions: whether each position has a learned embedding.
    """

    def __init__(self, cfg: GPTConfig, mixer: Callable[[], nn.Module], positions: bool = True) -> None:
        super().__init__()
        check_shape(cfg)
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
        logits = self._logits(idx, 0, self.blocks)
        if targets is None:
            return logits, None
        z = logits.to(compute_dtype(logits.dtype))  # autocast hands over bfloat16
        return logits, F.cross_entropy(z.flatten(0, 1), targets.flatten())  # (B T, V), (B T) -> ()

    def stream(self) -> Stream:
        """The model for a text that arrives piece by piece: called with the next ids (B, t), it answers with logits.

        Each token is read once, up to block_size of them. Logits are (B, t, V), without gradients; in eval mode those
        that the model has for the whole text. NotImplementedError unless it hears the past alone.
        """
        with torch.no_grad():
            blocks = [opened(block) for block in self.blocks]

        @torch.no_grad()
        def read(idx: Tensor, start: int) -> Tensor:
            return self._logits(idx, start, blocks)

        return Counted(read, axis=1)

    def _logits(self, idx: Tensor, start: int, blocks: Iterable[Stream]) -> Tensor:
        """What comes after each of the tokens (B, T), the first of which stands at `start` -> (B, T, V)."""
        most = self.cfg.block_size
        check_ids(idx)
        if not 1 <= idx.shape[1] <= most - start:
            read = f" after {start} tokens" if start else ""
            raise ValueError(f"expected ids (B, T) with 1 <= T <= block_size = {most}, got {tuple(idx.shape)}{read}")
        x = self.tokens(idx)  # (B, T, C)
        if self.positions is not None:
            x = x + self.positions.weight[start : start + idx.shape[1]]  # (B, T, C) + (T, C)
        x = self.drop(x)
        for block in blocks:
            x = block(x)  # (B, T, C)
        return self.head(self.norm(x))  # (B, T, V)


def check_ids(idx: object, what: str = "ids") -> None:
    """ValueError unless these are token ids (B, T), in a type by which a table is asked."""
    if not isinstance(idx, Tensor):
        raise ValueError(f"expected {what} (B, T), got a {type(idx).__name__}: write torch.tensor(...), a row a text")
    if idx.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"expected {what} (B, T), whole numbers, got {idx.dtype}: write ids.long()")
    if idx.dim() != 2:
        way_out = ": ids[None] is a batch of one text" if idx.dim() == 1 else ""
        raise ValueError(f"expected {what} (B, T), got {tuple(idx.shape)}{way_out}")


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

    A model that streams reads each token once, as long as the text fits into block_size. Beyond, where the window
    slides and every token has another position in it, and where the model does not stream, the whole window is read
    anew for each token.
    """
    check_ids(idx, "a prompt of token ids")
    if idx.shape[1] < 1 or n < 0 or not temperature >= 0:
        raise ValueError(
            "need a prompt of at least one token, n >= 0 and temperature >= 0, "
            f"got a prompt {tuple(idx.shape)}, {n=}, {temperature=}"
        )
    if idx.numel() and not 0 <= int(idx.min()) <= int(idx.max()) < model.cfg.vocab_size:
        found = f"{int(idx.min())} to {int(idx.max())}"
        raise ValueError(f"the prompt has ids {found}, the model knows 0 to {model.cfg.vocab_size - 1}")
    rng, was_training = torch.Generator(device="cpu").manual_seed(seed), model.training
    device = next(model.parameters()).device
    model.eval()
    predict = _predictions(model)
    for _ in range(n):
        logits = predict(idx.to(device)).float().cpu()  # (B, V)
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)  # (B, 1)
        else:  # drawn on the CPU, so that a seed means the same text on every device
            new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=rng)
        idx = torch.cat([idx, new.to(idx.device)], 1)
    model.train(was_training)
    return idx


def _predictions(model: LanguageModel) -> Callable[[Tensor], Tensor]:
    """What a model says of the next token, (B, V), of a text (B, T) that grows from call to call."""
    stream: Stream | None
    read = 0
    try:
        stream = opened(model)
    except NotImplementedError:
        stream = None

    def predict(idx: Tensor) -> Tensor:
        nonlocal read
        if stream is None or idx.shape[1] > model.cfg.block_size:
            return model(idx[:, -model.cfg.block_size :])[0][:, -1]
        new, read = idx[:, read:], idx.shape[1]
        return stream(new)[:, -1]

    return predict
