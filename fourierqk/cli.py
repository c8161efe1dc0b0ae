"""The command `fourierqk`: list the systems, train one, read what it writes, audit it."""
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import nn

from fourierqk.causality import audit as examine
from fourierqk.checkpoint import CHECKPOINT
from fourierqk.data import Corpus, shakespeare, text, verse
from fourierqk.foreign import from_file
from fourierqk.leakage import Loss, floor, honest_loss, shuffled_gap
from fourierqk.model import GPT, GPTConfig, generate
from fourierqk.records import provenance, read_json, write_json
from fourierqk.subject import Model
from fourierqk.train import PRESETS, RECORD, History, Preset, load
from fourierqk.train import train as train_model
from fourierqk.zoo import SYSTEMS, build
from fourierqk.zoo import system as look_up

EXIT = {"causal": 0, "leaks": 1, "inconclusive": 3}

app = typer.Typer(
    help="Spectral attention: train the paper's systems, and ask whether they read the future.",
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip


@app.command()
def systems(
    summary: Annotated[bool, typer.Option("--summary", help="Add what the audit finds, and what each one is.")] = False,
) -> None:
    """List the systems that can be trained, one name a line."""
    for s in SYSTEMS.values():
        typer.echo(f"{s.name:24s}{s.verdict:8s}{s.summary}" if summary else s.name)


@app.command()
def train(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A name that `fourierqk systems` lists.")],
    corpus: Annotated[str, typer.Option(help="verse (of known entropy), shakespeare, or a text file.")] = "verse",
    preset: Annotated[str, typer.Option(help=f"Size of model and training: {', '.join(PRESETS)}.")] = "tiny",
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps, instead of the preset's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first weights, the order of the data, and dropout.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run [runs/SYSTEM-CORPUS-PRESET-sSEED].")] = None,
    device: Annotated[str, typer.Option(help="auto takes a GPU if there is one.")] = "auto",
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew, whatever is in the folder.")] = False,
) -> None:
    """Train a system, measure it, and write DIR/record.json. A run that was stopped goes on where it was."""
    with _failures():
        look_up(system)
        chosen, data = _preset(preset), _corpus(corpus)
        cfg = replace(chosen.train, steps=steps or chosen.train.steps, seed=seed, device=device)
        out = out or Path("runs") / re.sub(r"[^\w.-]+", "-", f"{system}-{data.name}-{preset}-s{seed}")
        torch.manual_seed(seed)
        model = build(system, chosen.gpt(len(data.vocab)))
        resume = not restart and (out / CHECKPOINT).exists()
        typer.echo(f"{'Going on with' if resume else 'Training'} {system} on {data.name} in {out}", err=True)
        history = train_model(model, data, cfg, out, resume=not restart)
        record = _finished(out / RECORD, history)
        if record is None:
            about = {"system": system, "preset": preset, "seed": seed, "model": asdict(model.cfg), "train": asdict(cfg)}
            record = about | _measure(model, data, history) | provenance()
            write_json(out / RECORD, record)
        typer.echo(_report(record) + f"\n  kept      the weights of step {history.best_step}, in {out}")


@app.command()
def sample(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    prompt: Annotated[str, typer.Option(help="What to continue [a new line].")] = "",
    length: Annotated[int, typer.Option(min=0, help="Tokens to write.")] = 500,
    temperature: Annotated[float, typer.Option(min=0, help="0 always takes the likeliest token.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another text.")] = 0,
) -> None:
    """Let a trained model write. While it writes there is no future to read, whatever it was trained on."""
    with _failures(Exception):  # a folder can hold anything
        model, record = load(folder)
        one = torch.zeros(1, dtype=torch.int64)
        letters = Corpus(record["corpus"]["name"], one, one, tuple(record["vocab"]))
        start = prompt or ("\n" if "\n" in letters.vocab else letters.vocab[0])
        ids = generate(model, letters.encode(start)[None], length, temperature, seed)
        typer.echo(letters.decode(ids[0]))


@app.command()
def audit(
    model: Annotated[
        str | None, typer.Argument(metavar="SYSTEM|FILE.py:NAME", help="Built anew, or made by a function in a file.")
    ] = None,
    folder: Annotated[Path | None, typer.Option("--dir", help="Audit the trained weights in this folder.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Weights for a model from a file.")] = None,
    vocab: Annotated[int | None, typer.Option(min=2, help="Number of different tokens [65, or its own].")] = None,
    length: Annotated[
        list[int] | None, typer.Option(min=2, help="Tokens to read [256, or its own]; repeat it for more lengths.")
    ] = None,
    axis: Annotated[
        list[str] | None, typer.Option(help="Ask also: train (in training mode), batch (across its rows). Repeatable.")
    ] = None,
    preset: Annotated[str, typer.Option(help=f"Size of a system built anew: {', '.join(PRESETS)}.")] = "tiny",
    draws: Annotated[int, typer.Option(min=1, help="Futures to try at each cut.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of the weights and the probes.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object (see `Audit.as_dict`).")] = False,
) -> None:
    """Ask whether outputs depend on later tokens. Exit status: 0 causal, 1 leaks, 3 inconclusive, 2 not audited."""
    with _failures(Exception):  # status 1 must mean that it leaks, never that something broke
        torch.manual_seed(seed)
        subject = _subject(model, folder, checkpoint, vocab, length, preset)
        cfg = getattr(subject, "cfg", None)
        tokens = vocab or getattr(cfg, "vocab_size", None)
        if tokens is None:
            raise ValueError("this model does not say how many tokens it knows: give --vocab")
        first, *more = length or [getattr(cfg, "block_size", 256)]
        result = examine(subject, tokens, first, lengths=more, axes=axis or (), draws=draws, seed=seed)
        typer.echo(json.dumps(result.as_dict(), indent=2) if as_json else str(result))
    raise typer.Exit(EXIT[result.verdict])


def _subject(
    model: str | None, folder: Path | None, checkpoint: Path | None, vocab: int | None, length: list[int] | None,
    preset: str,
) -> Model:  # fmt: skip
    """What the words on the command line stand for: a trained system, one built anew, or a stranger's model."""
    if folder is not None:
        trained, record = load(folder)
        if model not in (None, record["system"]):
            raise ValueError(f"{folder} holds {record['system']}, not {model}")
        if vocab not in (None, trained.cfg.vocab_size):
            raise ValueError(f"{folder} was trained on {trained.cfg.vocab_size} tokens: leave --vocab {vocab} out")
        return trained
    if model is None:
        raise ValueError("name a system to audit, a model in a file (FILE.py:NAME), or a trained system with --dir")
    if ".py:" in model:
        return from_file(model, checkpoint)
    if checkpoint is not None:
        raise ValueError("--checkpoint fills a model from a file (FILE.py:NAME); a trained system is named by --dir")
    return _fresh(model, vocab or 65, max(length or [256]), preset)


@contextmanager
def _failures(*more: type[Exception]) -> Iterator[None]:
    """Turn what a user can put right into one line and exit status 2 (1: the training itself broke)."""
    try:
        yield
    except KeyboardInterrupt:
        _stop("stopped. The same command goes on from the last evaluation", 130)
    except FloatingPointError as e:
        _stop(str(e), 2 if more else 1)
    except (ValueError, OSError, *more) as e:
        said = str(getattr(e, "strerror", None) or e).replace("resume=False", "--restart")
        _stop(said if isinstance(e, ValueError | OSError) else f"{type(e).__name__}: {said}", 2)


def _stop(why: str, status: int) -> None:
    typer.echo(f"fourierqk: {' '.join(why.split())}", err=True)
    raise typer.Exit(status)


def _preset(name: str) -> Preset:
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}: take {', '.join(PRESETS)}")
    return PRESETS[name]


def _corpus(name: str) -> Corpus:
    if name in ("verse", "shakespeare"):
        return verse() if name == "verse" else shakespeare()
    if not Path(name).exists():
        raise ValueError(f"no corpus {name!r}: it is neither verse nor shakespeare nor a file")
    return text(name)


def _fresh(system: str, vocab: int, length: int, preset: str) -> nn.Module:
    look_up(system)
    return build(system, GPTConfig(vocab_size=vocab, block_size=length, **_preset(preset).model))


def _finished(path: Path, history: History) -> dict[str, Any] | None:
    """The record of this very run, if it was measured before; a torn one is measured again."""
    try:
        record = read_json(path)
    except (FileNotFoundError, ValueError):
        return None
    return record if record.get("history") == asdict(history) else None


def _measure(model: GPT, corpus: Corpus, history: History) -> dict[str, Any]:
    """Everything a record says of a trained model, all of it from the same weights."""
    gap, honest = shuffled_gap(model, corpus), honest_loss(model, corpus)
    shuffled = _numbers(gap.shuffled) | {"gap": gap.gap, "unigram_entropy": gap.unigram, "below_unigram": gap.below}
    losses = {"ordered": _numbers(gap.ordered), "shuffled": shuffled, "honest": _numbers(honest), "floor": None}
    if corpus.oracle is not None:
        d = floor(model, corpus)
        oracle = gap.ordered.mean - d.mean  # on the same windows
        losses["floor"] = {"oracle": oracle, "difference": d.mean, "se": d.se, "below": d.below}
    a = examine(model, len(corpus.vocab), model.cfg.block_size)
    names = ("verdict", "probes", "realised", "structural", "rel", "reach", "first_leak", "evidence")
    return {
        "corpus": {"name": corpus.name, "sha256": corpus.sha256, "entropy_rate": corpus.entropy_rate},
        "losses": losses,  # nats per token
        "audit": {name: getattr(a, name) for name in names},
        "history": asdict(history),
        "vocab": list(corpus.vocab),
    }


def _numbers(loss: Loss) -> dict[str, Any]:
    return {"mean": loss.mean, "se": loss.se, "windows": len(loss.values)}


def _report(record: dict[str, Any]) -> str:
    """What the command prints, from the record alone."""
    losses, history, a = record["losses"], record["history"], record["audit"]
    mean = {k: f"{losses[k]['mean']:.3f} ± {losses[k]['se']:.3f}" for k in ("ordered", "shuffled", "honest")}
    s, f = losses["shuffled"], losses["floor"]
    lines = [
        f"{record['system']} on {record['corpus']['name']}, {record['preset']}, seed {record['seed']}: nats per token",
        f"  ordered   {mean['ordered']}   all positions of {losses['ordered']['windows']} windows",
        f"  shuffled  {mean['shuffled']}   gap {s['gap']:+.3f}; unigram entropy {s['unigram_entropy']:.3f}",
        f"  honest    {mean['honest']}   last position of {losses['honest']['windows']} windows",
    ]
    if f is None:
        lines.append("  floor     unknown for this text")
    else:
        meaning = "below the floor: it reads the future" if f["below"] else "not below the floor"
        lines.append(
            f"  floor     {f['oracle']:.3f}           ordered is {f['difference']:+.3f} ± {f['se']:.3f} from it "
            f"({f['difference'] / f['se']:+.1f} standard errors): {meaning}"
        )
    where = f", enters in {a['first_leak']}, {a['reach']} tokens ahead" if a["verdict"] == "leaks" else ""
    lines.append(f"  audit     {a['verdict']} ({a['probes']} probes{where})")
    took = f"{history['steps'][-1]} steps in {history['seconds']:.0f} s on {history['device']}"
    lines.append(f"  speed     {history['tokens_per_second']:,.0f} tokens per second, {took}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(app())
