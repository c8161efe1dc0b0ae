"""The causality audit: does a model's output at position t depend on tokens after t?

The audit edits the future at fixed length and watches the past. It decides by what it sees and nothing else: no
gradients (an argmax has none), no NaNs (a masked softmax spreads them), no shorter texts (many honest models feel the
length).
"""
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from torch import Tensor

from fourierqk.adapter import Adapter, Arguments, Model, check_model
from fourierqk.causality.question import Question, check_question
from fourierqk.causality.verdict import Audit, merge
from fourierqk.causality.ways import AXES, at_rest, unasked
from fourierqk.progress import progress_bar

__all__ = ["Audit", "assert_causal", "audit"]


def audit(
    model: Model,
    vocab_size: int,
    length: int,
    *,
    draws: int = 20,
    seed: int = 0,
    text: Tensor | None = None,
    positions: int = 512,
    lengths: Sequence[int] = (),
    axes: Sequence[str] = (),
    every: bool = False,
    kwargs: Arguments = MappingProxyType({}),
    progress: bool | None = None,
) -> Audit:
    """Look for a dependence of outputs on later tokens in eval mode; say where it enters and how far it reaches.

    model: an nn.Module or any callable, ids (B, T) -> logits (B, T, V), or a tuple that starts with them, or an object
    with .logits. It is left as it was: weights, buffers, mode, random generators.
    length: tokens of the probes; lengths: further ones to try, for a leak may need a longer text.
    draws: re-drawn futures at each cut (about 25 cuts). text: ids (N,) of real text, when triggers may be rare in
    random text. positions: the map edits each of at most so many positions.
    axes: what else to ask. "train": the same in training mode, for four throws of the dice, with a glance at 28 more.
    "batch": whether one row of a batch hears another, in eval mode. A leak along an axis counts in the verdict, and has
    module, cut and size.
    every: name every module where a leak enters (`leaking`), not the first alone; slower.
    kwargs: further arguments of each call, the same for all ({"mask": ...}), or a function of the ids (B, T) that
    returns them, where they depend on the length or on the text.
    progress: a bar after three seconds; None shows it in a terminal or notebook.

    Verdicts are explained in `Audit`. Unseen remain: a trigger rarer than the probes, such as one pair of tokens among
    thousands (`text` helps where real text has it); a branch that is switched off inside an opaque function, or by a
    frozen weight or a buffer (trainable weights are drawn anew in a copy); a leak at lengths that were not tried
    (`lengths`), in batches of more than 30 texts, or under autocast, unless the callable itself enters it; beyond
    `positions` tokens, one between two neighbours; a throw of the dice much rarer than one in ten; what is kept from
    more calls than were made; a code that another rounding would change (chaos); a maximum over a whole batch that no
    probe exceeds.

    Error rates, measured by benchmarks/audit_rates.py on one machine: 45 random compositions, 23 of them clean,
    under 17 settings of instruction sets, threads, orders of summation and transforms. Of 364 audits of clean ones
    none was inconclusive and none a leak; of 335 of leaking ones none was called causal. The compositions repeat from
    setting to setting, so of others up to 15 % could still err (95 %).

    ValueError: the model fails, returns something other than logits, or no number at all.
    """
    ask = Question(vocab_size, length, draws, seed, text, positions, every)
    check_model(model, kwargs)
    check_question(model, ask, lengths, axes, tuple(AXES))
    adapter = Adapter(model, kwargs)
    with adapter.restored(), progress_bar(progress, ask.estimate * (1 + len(lengths)), unit="probe", delay=3) as bar:
        found = {n: at_rest(adapter, replace(ask, length=n), bar.update) for n in dict.fromkeys((length, *lengths))}
        others = [AXES[axis](adapter, ask) for axis in dict.fromkeys(axes)]
        clean = all(a.verdict == "causal" for a in (*found.values(), *others))
        says = unasked(adapter, ask) if clean and "train" not in axes else []
    return merge(found, others, says)


def assert_causal(
    model: Model, vocab_size: int, length: int, *, axes: Sequence[str] = (), **how: Any
) -> Audit:
    """For a test: audit a model in eval and in training mode, and fail unless the verdict is "causal".

    axes: what else to ask, as of `audit`, which can also leave training mode out. how: further keywords of `audit`.
    AssertionError with module, cut and size where the model leaks, and where the audit cannot tell.
    """
    found = audit(model, vocab_size, length, axes=("train", *axes), **how)
    if found.verdict != "causal":
        raise AssertionError(f"not causal: {found}")
    return found
