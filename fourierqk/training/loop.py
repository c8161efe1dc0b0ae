"""Train a model on a corpus, so that neither the model nor an interruption changes what the run sees.

The order of the data and the dropout masks depend on (seed, step) alone; evaluation reads a fixed list of windows with
a generator of its own. A run that was killed goes on from its last evaluation and ends at the same losses.
"""
import json
import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from itertools import compress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fourierqk.checks import nearest
from fourierqk.data import Corpus, check_corpus
from fourierqk.filters import learned_centres
from fourierqk.losses import honest_loss, ordered_loss
from fourierqk.model import GPTConfig, LanguageModel, filter_parameters
from fourierqk.progress import progress_bar
from fourierqk.storage import hold, read_json, sweep
from fourierqk.training import checkpoint
from fourierqk.training.hardware import combine_seeds, describe, own_generator, peak_memory, pick_device, pick_precision
from fourierqk.training.presets import PRESETS, Preset, TrainConfig
from fourierqk.wrappers import bare, unwrapped
from fourierqk.zoo import build

__all__ = ["PRESETS", "History", "Preset", "TrainConfig", "load", "lr_schedule", "optimiser", "train"]

RECORD = "record.json"  # in the folder of a run, beside its checkpoint


@dataclass
class History:
    """What a run measured, one entry an evaluation. Losses in nats per token, with the standard error over windows."""

    steps: list[int] = field(default_factory=list)  # training steps done
    train: list[float] = field(default_factory=list)  # mean over the steps since the last evaluation
    ordered: list[float] = field(default_factory=list)
    ordered_se: list[float] = field(default_factory=list)
    honest: list[float] = field(default_factory=list)
    honest_se: list[float] = field(default_factory=list)
    frequencies: dict[str, list[list[float]]] = field(default_factory=dict)  # learned, per filter, one a head
    best_step: int = 0  # the evaluation of the lowest ordered loss, whose weights are kept
    tokens_per_second: float = 0.0  # in training steps alone
    seconds: float = 0.0  # evaluation included, interruptions not
    device: str = ""
    precision: str = ""
    peak_memory: int = 0  # the most memory of any process of this run, in bytes (see hardware.peak_memory)

    def to_json(self) -> str:
        """All of it as a JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "History":
        """What `to_json` wrote. ValueError where the text is not a history."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError) as e:
            raise ValueError(f"not the JSON of a History with {[f.name for f in fields(cls)]}: {e}") from e


def lr_schedule(step: int, cfg: TrainConfig) -> float:
    """The factor on every learning rate at a step, counted from 0: a linear warm-up, then half a cosine to `lr_end`."""
    warmup = min(cfg.warmup, cfg.steps // 2)
    if step < warmup:
        return (step + 1) / warmup
    fall = 0.5 * (1 + math.cos(math.pi * (step - warmup) / (cfg.steps - warmup)))
    return cfg.lr_end + (1 - cfg.lr_end) * fall


def optimiser(model: nn.Module, cfg: TrainConfig) -> torch.optim.AdamW:
    """AdamW over three groups: matrices decay; vectors and what filters learn do not; centres have their own rate.

    Decoupled decay is Loshchilov and Hutter's (2019); the betas, 0.9 and 0.95 if nothing else is said, are the paper's.
    """
    centres = [centre.logit for centre in learned_centres(model).values()]
    theirs, steady = {id(p) for p in centres}, {id(p) for p in filter_parameters(model)}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in theirs]
    decays = [p.dim() >= 2 and id(p) not in steady for p in rest]
    groups = [
        {"params": [*compress(rest, decays)], "lr": cfg.lr, "weight_decay": cfg.weight_decay},
        {"params": [p for p, decay in zip(rest, decays, strict=True) if not decay], "lr": cfg.lr, "weight_decay": 0.0},
        {"params": centres, "lr": 10 * cfg.lr if cfg.filter_lr is None else cfg.filter_lr, "weight_decay": 0.0},
    ]
    groups = [{**g, "peak": g["lr"]} for g in groups if g["params"]]
    return torch.optim.AdamW(groups, betas=(0.9, cfg.beta2), fused=True)


def train(
    model: nn.Module, corpus: Corpus, cfg: TrainConfig = TrainConfig(),  # noqa: B008 (frozen)
    out: str | Path | None = None, resume: bool = True, progress: bool | None = None, compiled: nn.Module | None = None,
) -> History:  # fmt: skip
    """Train a model and leave in it, in evaluation mode, the weights of its lowest ordered loss.

    model: has `cfg.block_size` and `cfg.vocab_size`, and maps (ids, targets) to (logits, loss); it is moved to the
    device of `cfg`. Compiled, or in DataParallel or DistributedDataParallel, it is trained through that, and measured
    and stored without. out: a folder for a checkpoint at every evaluation; with resume=True a checkpoint found there is
    continued (a finished one is only loaded), and the weights passed in do not matter. progress: None shows a bar in a
    terminal or notebook, unless FOURIERQK_PROGRESS=0. compiled: torch.compile(model), to train through where that pays.

    Errors: ValueError where model and corpus do not fit, or the checkpoint is torn or of another run; OSError where
    `out` cannot be written or another process is at work there; FloatingPointError where the loss is no longer a
    number. Those of model, corpus and device come before anything is written.
    """
    through, model = compiled or model, unwrapped(model)
    length = _check(model, corpus, cfg)
    device = pick_device(cfg.device)
    with nullcontext() if out is None else hold(out), own_generator(device) as generator:
        run = _Run(model.to(device), corpus, cfg, None if out is None else Path(out), through)
        run.open(resume)
        history = run.history
        done = history.steps[-1] if history.steps else 0
        batches = corpus.batches("train", cfg.batch, length, cfg.seed, start=done)
        with progress_bar(progress, cfg.steps, done) as bar:
            run.finish(done, batches, generator, bar)
    checkpoint.fill(model, run.best, "this run")
    through.eval()
    return history


def load(out: str | Path, model: LanguageModel | None = None) -> tuple[LanguageModel, dict[str, Any]]:
    """The best weights of a run, in evaluation mode on the CPU, and its record.

    The record is `out`/record.json, or what the checkpoint itself knows. A record that names its system (the command
    `fourierqk train` writes one) is enough to build the model; for any other run pass the model to be filled.

    FileNotFoundError where there is no run; ValueError where no system is named, or where shape or filters of the model
    are not those that were trained.
    """
    path, record_path = Path(out) / checkpoint.CHECKPOINT, Path(out) / RECORD
    if not path.is_file():
        within = [str(p.parent) for depth in ("*", "runs/*") for p in sorted(path.parent.glob(f"{depth}/{path.name}"))]
        beside = [str(p.parent) for p in path.parents[1].glob(f"*/{path.name}")]
        meant = f"name one of the runs within, {within[0]} say" if within else nearest(out, beside)
        raise FileNotFoundError(f"no run in {out}: {path.name} is not there{meant and ', '}{meant}")
    weights, about = checkpoint.best_weights(path)
    record = read_json(record_path) if record_path.is_file() else about
    if model is None:
        if not {"system", "model"} <= {*record}:
            raise ValueError(f"{out} names no system to build (unfinished, or your own): pass load(out, model=...)")
        model = build(record["system"], GPTConfig(**record["model"]))
    inner = unwrapped(model)
    checkpoint.check(inner, about, path)
    checkpoint.fill(inner, weights, path)
    return model.cpu().eval(), record


class _Run:
    """A run in progress: the model, its optimiser, the best weights so far, the history, and their file."""

    def __init__(
        self, model: nn.Module, corpus: Corpus, cfg: TrainConfig, out: Path | None, compiled: nn.Module
    ) -> None:
        self.model, self.corpus, self.cfg, self.opt = model, corpus, cfg, optimiser(model, cfg)
        self.length = _check(model, corpus, cfg)
        self.compiled = compiled  # what steps go through: the model, or what is put around it
        self.path = out and out / checkpoint.CHECKPOINT
        self.history = History()
        self.best: dict[str, Tensor] = {}

    def open(self, resume: bool) -> None:
        """Take up the checkpoint if there is one to resume, else begin, once it is known that `out` can be written."""
        if self.path is None:
            return
        self.identity = checkpoint.identity(self.model, self.corpus, asdict(self.cfg))
        sweep(self.path)
        record, there = self.path.parent / RECORD, self.path.exists()
        if resume and there and (found := checkpoint.restore(self.path, self.identity, self.model, self.opt)):
            self.best, self.history = found[0], History.from_json(json.dumps(found[1]))
            return
        if resume and record.exists() and not there:
            way_out = "take another folder, or start anew with resume=False"
            raise ValueError(f"{record} has no {self.path.name} beside it: {way_out}")
        record.unlink(missing_ok=True)  # of the run that this one replaces
        self.save(finished=False)

    def finish(self, done: int, batches: Iterator, generator: torch.Generator, bar: Any) -> None:
        """Train from step `done` to the end, from one evaluation and checkpoint to the next."""
        cfg, history = self.cfg, self.history
        while done < cfg.steps:
            began, stop = time.perf_counter(), min(done + cfg.eval_every, cfg.steps)
            losses = self.advance(done, stop, batches, generator, bar)
            trained, done = time.perf_counter() - began, stop
            self.evaluate(done, losses)
            history.peak_memory = max(history.peak_memory, peak_memory(generator.device))
            _keep_time(history, cfg.batch * self.length, len(losses), trained, time.perf_counter() - began)
            bar.set_postfix(ordered=f"{history.ordered[-1]:.3f}", honest=f"{history.honest[-1]:.3f}")
            self.save(finished=done == cfg.steps)

    def advance(self, start: int, stop: int, batches: Iterator, generator: torch.Generator, bar: Any) -> list[float]:
        """Train from step `start` up to `stop` -> the loss of each step."""
        device, cfg, losses = generator.device, self.cfg, []
        precision = pick_precision(cfg.precision, device)
        self.history.device, self.history.precision = describe(device), precision
        self.model.train()
        for step in range(start, stop):
            generator.manual_seed(combine_seeds(cfg.seed, step))  # dropout draws from it
            for group in self.opt.param_groups:
                group["lr"] = group["peak"] * lr_schedule(step, cfg)
            x, y = (t.to(device, non_blocking=True) for t in next(batches))
            losses.append(_step(self.compiled, self.opt, x, y, cfg.clip, precision))
            bar.update()
        values = torch.stack(losses).tolist()  # on a GPU, the only wait for it
        for step, loss in enumerate(values, start + 1):
            if not math.isfinite(loss):
                raise _diverged(loss, step, cfg)
        return values

    def evaluate(self, step: int, losses: list[float]) -> None:
        """Measure the model after a step, given the training losses since the last evaluation."""
        h = self.history
        try:
            ordered = ordered_loss(self.model, self.corpus, windows=self.cfg.eval_windows)
            honest = honest_loss(self.model, self.corpus, windows=self.cfg.eval_windows)
        except FloatingPointError as e:
            raise _diverged(math.nan, step, self.cfg) from e
        if not h.ordered or ordered.mean < min(h.ordered):
            h.best_step, self.best = step, {k: v.detach().clone() for k, v in checkpoint.state(self.model).items()}
        h.steps.append(step)
        h.train.append(sum(losses) / len(losses))
        h.ordered.append(ordered.mean)
        h.ordered_se.append(ordered.se)
        h.honest.append(honest.mean)
        h.honest_se.append(honest.se)
        for name, centre in learned_centres(self.model).items():
            h.frequencies.setdefault(bare(name), []).append([round(f, 6) for f in centre().flatten().tolist()])

    def save(self, finished: bool) -> None:
        """Write the checkpoint; a finished run keeps its best weights alone."""
        if self.path is not None:
            going = () if finished else (self.model, self.opt)
            checkpoint.save(self.path, self.identity, asdict(self.history), self.best, *going)


def _step(model: nn.Module, opt: torch.optim.Optimizer, x: Tensor, y: Tensor, clip: float, precision: str) -> Tensor:
    """One update; the loss stays on the device, so that a GPU need not be waited for."""
    with torch.autocast(x.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        loss = model(x, y)[1].mean()  # DataParallel gives the loss of each device
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    opt.step()
    return loss.detach()


def _check(model: nn.Module, corpus: Corpus, how: TrainConfig) -> int:
    """The length of the windows, once it is known that the model can read the corpus, and both splits hold a window."""
    check_corpus(corpus)
    if not isinstance(how, TrainConfig):
        said = f"expected a TrainConfig, how to train, got a {type(how).__name__}"
        raise ValueError(f'{said}: write TrainConfig(steps=500, ...), or PRESETS["tiny"].train for that of a preset')
    cfg: Any = getattr(model, "cfg", None)
    if not hasattr(cfg, "block_size") or not hasattr(cfg, "vocab_size"):
        raise ValueError(f"train needs cfg.block_size and cfg.vocab_size, as a GPT has, not a {type(model).__name__}")
    if cfg.vocab_size < len(corpus.vocab):
        raise ValueError(
            f"the corpus {corpus.name!r} has {len(corpus.vocab)} symbols, the model {cfg.vocab_size}: "
            f"build it with vocab_size={len(corpus.vocab)}"
        )
    corpus.check_window(cfg.block_size)
    return cfg.block_size


def _diverged(loss: float, step: int, cfg: TrainConfig) -> FloatingPointError:
    return FloatingPointError(
        f"the loss became {loss} at step {step}: lower lr (now {cfg.lr:g}) or filter_lr, lengthen warmup, or clip "
        "harder. An earlier checkpoint is as it was"
    )


def _keep_time(history: History, tokens: int, steps: int, trained: float, passed: float) -> None:
    """Add a stretch of `steps` steps of so many tokens: `trained` seconds of training, `passed` with evaluation."""
    before = tokens * (history.steps[-1] - steps)
    spent = before / history.tokens_per_second if before else 0.0
    history.tokens_per_second = round((before + tokens * steps) / (spent + trained), 1)
    history.seconds = round(history.seconds + passed, 3)

