"""Sizes of models and how they are trained, as data."""
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fourierqk.checks import check_count, unknown_name
from fourierqk.model import GPTConfig

__all__ = ["MOST_SEED", "PRESETS", "Preset", "TrainConfig"]

MOST_SEED = 2**63 - 1  # that torch takes


@dataclass(frozen=True)
class TrainConfig:
    """How to train. Lengths of time in steps, of `batch` windows each. ValueError names a value that cannot be.

    filter_lr: the learning rate of centre frequencies, 10 lr if None. A learned log frequency moves at most about the
    sum of its learning rates, since an Adam step is about one learning rate long: at the rate that suits the weights, a
    frequency ends near where it started, whatever the text. All else that a filter learns, taps say, has the rate lr.
    lr_end: where the cosine of the learning rates ends, as a share of the peak.
    """

    steps: int = 500
    batch: int = 16
    lr: float = 1e-3
    filter_lr: float | None = None
    weight_decay: float = 0.1  # on matrices; none on norms, none inside filters
    beta2: float = 0.95  # AdamW's memory of squared gradients; the paper's
    warmup: int = 50  # and at most half the run
    lr_end: float = 0.0
    clip: float = 1.0  # the longest gradient, in L2 over all parameters
    eval_every: int = 100
    eval_windows: int = 256  # few, for speed: report a run by ordered_loss and honest_loss of the model it leaves
    seed: int = 0
    device: str = "auto"  # cuda if there is one, else cpu; or any name torch knows
    precision: str = "auto"  # of training: bfloat16 on a GPU that has it, else float32; evaluation is always float32

    def __post_init__(self) -> None:
        check_count(self.seed, "seed", 0, MOST_SEED)
        least = {"steps": 1, "batch": 1, "eval_every": 1, "eval_windows": 2, "warmup": 0}
        for name, low in least.items():
            check_count(getattr(self, name), name, low)
        for name in ("lr", "filter_lr", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} = {value} must be a number above 0")
        if not 0 < self.beta2 < 1 or not 0 <= self.lr_end <= 1:
            raise ValueError(f"beta2 = {self.beta2} must lie inside (0, 1), lr_end = {self.lr_end} in [0, 1]")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay = {self.weight_decay} must be a number, at least 0")
        if self.precision not in ("auto", "float32", "bfloat16"):
            raise ValueError(f"precision = {self.precision!r} must be 'auto', 'float32' or 'bfloat16'")


@dataclass(frozen=True)
class Preset:
    """A size of model and the training that suits it."""

    model: Mapping[str, Any]  # what GPTConfig needs beside vocab_size and block_size
    block_size: int
    train: TrainConfig

    def changed(self, **changes: Any) -> "Preset":
        """The same but for some fields of training or model, by name. ValueError for an unknown one."""
        train = {k: v for k, v in changes.items() if k in TrainConfig.__dataclass_fields__}
        model = {k: v for k, v in changes.items() if k in GPTConfig.__dataclass_fields__ and k != "block_size"}
        known = [*TrainConfig.__dataclass_fields__, *GPTConfig.__dataclass_fields__]
        for name in changes.keys() - {*known}:
            raise ValueError(unknown_name("setting", name, known))
        length = changes.get("block_size", self.block_size)
        return Preset({**self.model, **model}, length, replace(self.train, **train))

    def gpt(self, vocab_size: int) -> GPTConfig:
        """The shape of a model of this size, for a text of so many different tokens."""
        return GPTConfig(vocab_size=vocab_size, block_size=self.block_size, **self.model)


# The shape and protocol of the paper and its author's scripts: one learning rate for all that is learned.
_PAPER = Preset(
    dict(n_layer=6, n_head=8, n_embd=256, dropout=0.1), 256,
    TrainConfig(steps=5000, batch=64, lr=3e-4, filter_lr=3e-4, warmup=200, eval_every=250),
)  # fmt: skip

# The recipe that the calibration of the race found best for the baseline; nanoGPT has the same for small models.
_TUNED: dict[str, Any] = dict(lr=1e-2, beta2=0.99, lr_end=0.1)

PRESETS = {
    "tiny": Preset(dict(n_layer=2, n_head=4, n_embd=64, dropout=0.0), 128, TrainConfig(steps=800, **_TUNED)),
    "small": Preset(dict(n_layer=4, n_head=4, n_embd=128, dropout=0.0), 128, TrainConfig(steps=1500, **_TUNED)),
    "paper": _PAPER,
    "paper-fast-filters": replace(_PAPER, train=replace(_PAPER.train, filter_lr=3e-3)),  # ours: free to move
}  # fmt: skip
