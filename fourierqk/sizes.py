"""What a model says of itself: how long a text it can read, and how many different tokens it knows."""
from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

from torch import nn

from fourierqk.adapter import Adapter, Model

__all__ = ["block_size", "vocab_size"]

# The names that public models use, from those that mean this alone to those that may mean something else: BigBird and
# MiniMax call a chunk of their attention block_size, and have another name for the length. max_length, a default of
# transformers' generate(), and the reach of a window are no lengths of a text.
LENGTH = (
    "max_position_embeddings", "n_positions", "max_seq_len", "max_seq_length", "max_sequence_length", "context_length",
    "ctx_len", "n_ctx", "sequence_len", "seq_length", "block_size",
)  # fmt: skip
TOKENS = ("vocab_size", "n_vocab", "num_tokens", "padded_vocab_size")
HOLDERS = ("cfg", "config", "args", "params", "hparams")  # where a model keeps them
WITHIN = ("text_config", "llm_config", "language_config", "decoder")  # where one that sees or hears keeps those of text


def block_size(model: Model) -> int | None:
    """The longest text a model says it can read, under one of the usual names; None when it does not say."""
    found = Adapter(model)
    longest = _says(found, LENGTH)
    tables = [m for m in found.modules if isinstance(m, nn.Embedding) and m.num_embeddings == longest]
    behind = next((m.padding_idx for m in tables if m.padding_idx is not None), None)
    if longest is None or behind is None or longest == _says(found, TOKENS):
        return longest
    return longest - behind - 1  # RoBERTa: positions are counted from behind that of the padding


def vocab_size(model: Model) -> int | None:
    """How many different tokens a model says it knows; None when it does not say.

    Without a word, its one table of embeddings speaks, or that of several which has a row for each output of a layer.
    """
    found = Adapter(model)
    said = _says(found, TOKENS)
    rows = {m.num_embeddings for m in found.modules if isinstance(m, nn.Embedding)}
    if len(rows) > 1:
        rows &= {m.out_features for m in found.modules if isinstance(m, nn.Linear)}
    return said or (rows.pop() if len(rows) == 1 else None)


def _says(found: Adapter, names: tuple[str, ...]) -> int | None:
    """The first of these numbers that a model holds, in a configuration or itself."""
    holders = [holder for part in (found.model, *found.roots) for holder in _holders(part)]
    numbers = (_held(holder, name) for name in names for holder in holders)
    return next((int(n) for n in numbers if isinstance(n, Integral) and not isinstance(n, bool) and int(n) > 0), None)


def _holders(part: Any) -> Iterator[Any]:
    """A part of a model with its configurations; then what it wraps, if it is around one module alone."""
    for holder in (_held(part, name) for name in HOLDERS):
        yield holder
        yield from (_held(holder, name) for name in WITHIN)
    yield part
    if isinstance(part, nn.Module) and len(inner := [*part.children()]) == 1:
        yield from _holders(inner[0])


def _held(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
