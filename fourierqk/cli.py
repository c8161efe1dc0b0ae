"""The command `fourierqk`: list the systems, train one or a study of many, read what it writes, audit it."""
import io
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any

import torch
import typer
from torch import Tensor, nn

from fourierqk import __version__, reckoning
from fourierqk.adapter import Model
from fourierqk.causality import audit as examine
from fourierqk.data import Corpus
from fourierqk.data import text as read_text
from fourierqk.foreign import load_model
from fourierqk.model import GPTConfig, generate
from fourierqk.reckoning import Evidence
from fourierqk.records import SCHEMA, by_system, markdown, plain, rows, runs_in
from fourierqk.sizes import block_size, vocab_size
from fourierqk.storage import hold
from fourierqk.studies import (
    LESS,
    STUDIES,
    Run,
    carry_out,
    conduct,
    conduct_on_ray,
    find_preset,
    find_study,
    open_corpus,
    summary,
)  # fmt: skip
from fourierqk.training import CHECKPOINT, MOST_SEED, PRESETS, load, out_of_memory, pick_device, steps_done
from fourierqk.zoo import SYSTEMS, build
from fourierqk.zoo import system as look_up

EXIT = {"causal": 0, "leaks": 1, "inconclusive": 3}
LENGTH = 256  # tokens that an audit reads, unless the model or the user says otherwise
PAPERS_TEXT = "shakespeare"  # on which its claims are made

app = typer.Typer(
    help="Spectral attention: train the paper's systems, and ask whether they read the future.",
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fourierqk {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):  # what its encoding has no sign for is written \\xe9, not given up
        sys.stdout.reconfigure(errors="backslashreplace")


@app.command()
def systems(
    summary: Annotated[bool, typer.Option("--summary", help="Add what the audit finds, and what each one is.")] = False,
) -> None:
    """List the systems that can be trained, one name a line."""
    with _failures():
        for s in SYSTEMS.values():
            typer.echo(f"{s.name:24s}{s.verdict:8s}{s.summary}" if summary else s.name)


@app.command()
def train(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A name that `fourierqk systems` lists.")],
    corpus: Annotated[str, typer.Option(help="verse (of known entropy), shakespeare, or a text file.")] = "verse",
    preset: Annotated[str, typer.Option(help=f"Size of model and training: {', '.join(PRESETS)}.")] = "tiny",
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps, instead of the preset's.")] = None,
    length: Annotated[int | None, typer.Option(min=2, help="Tokens in a window, instead of the preset's.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Windows a step, instead of the preset's.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate, instead of the preset's.")] = None,
    filter_lr: Annotated[float | None, typer.Option(help="Of centre frequencies [10 times the other rate].")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST_SEED, help="Of the first weights, the order of the data, and dropout.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run [runs/SYSTEM-CORPUS-PRESET-sSEED].")] = None,
    device: Annotated[str, typer.Option(help="auto takes a GPU if there is one.")] = "auto",
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew, in the place of what is there.")] = False,
) -> None:
    """Train a system, measure it, and write DIR/record.json. A run that was stopped goes on where it was."""
    again = f"The same command{' without --restart' if restart else ''} goes on from the last evaluation"
    with _failures(less="take a smaller --batch, --length or --preset", again=again):
        look_up(system)
        size, data = find_preset(preset), open_corpus(corpus)
        given = _given(steps=steps, batch=batch, lr=lr, filter_lr=filter_lr, block_size=length)
        run = Run(system, corpus, preset, size.changed(**given, seed=seed, device=device))
        run.check(data)
        pick_device(device)
        out = out or Path("runs") / re.sub(r"[^\w.-]+", "-", f"{system}-{data.name}-{preset}-s{seed}")
        with hold(out):  # before it is announced, what can be refused is
            going_on = not restart and steps_done(out / CHECKPOINT)
            typer.echo(f"{'Going on with' if going_on else 'Training'} {system} on {data.name} in {out}", err=True)
            record = carry_out(run, data, out, resume=not restart)
        typer.echo(summary(record) + f"\n  kept      the weights of step {record['history']['best_step']}, in {out}")


def _given(**options: Any) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


class Where(StrEnum):
    """What carries out a study."""

    here = "here"
    ray = "ray"


@app.command()
def study(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(STUDIES)}.")],
    systems: Annotated[str | None, typer.Option(metavar="A,B,...", help="Systems, instead of the study's.")] = None,
    corpus: Annotated[str | None, typer.Option(help="verse, shakespeare or a file, instead of the study's.")] = None,
    preset: Annotated[str | None, typer.Option(help=f"{', '.join(PRESETS)}, instead of the study's.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many, instead of the study's.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps, instead of the preset's.")] = None,
    length: Annotated[int | None, typer.Option(min=2, help="Tokens in a window, instead of the preset's.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Windows a step, instead of the preset's.")] = None,
    on: Annotated[
        Where, typer.Option(help="ray: the Ray cluster of RAY_ADDRESS, else the one that this machine is part of.")
    ] = Where.here,
    jobs: Annotated[int | None, typer.Option(min=1, help="Here: runs at a time; they share the cores [1].")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="On Ray: cores a run, and its threads [1].")] = None,
    gpus: Annotated[
        float | None, typer.Option(min=0, help="On Ray: cards a run, 0.25 is four runs on one [1 if there are any].")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the study [runs/NAME].")] = None,
) -> None:
    """Train every system of a study with several seeds: one record DIR/SYSTEM-sSEED.json a run.

    Repeat the command after a stop, and it goes on; several may work on one folder. Exit status 1: some runs failed.
    """
    with _failures(less=LESS, again="The same command goes on with what is left"):
        names = None if systems is None else tuple(s.strip() for s in systems.split(",") if s.strip())
        changes = _given(corpus=corpus, preset=preset, seeds=seeds, steps=steps, length=length, batch=batch)
        runs = find_study(name, systems=names, **changes).runs()
        out = out or Path("runs") / name
        if on is Where.ray:
            if jobs:
                raise ValueError("--jobs is for this machine. On Ray, --cpus and --gpus decide how many runs fit")
            failed = conduct_on_ray(runs, out, cpus=cpus or 1, gpus=gpus)
        elif cpus or gpus is not None:
            raise ValueError("--cpus and --gpus are for a Ray cluster: add --on ray, or take --jobs")
        else:
            failed = conduct(runs, out, jobs=jobs or 1)
        typer.echo(plain(rows(runs_in(out)[0])))
        if failed:
            _stop(f"{len(failed)} of {len(runs)} runs failed, for the reasons above: {', '.join(failed)}", 1)


@app.command()
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of studies or of single runs, or what holds them.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
) -> None:
    """Tabulate the records in some folders. Exit status 2: some cannot be read; they are named, the others shown."""
    with _failures():
        if as_json and as_markdown:
            raise ValueError("--json or --markdown, not both")
        records, bad = runs_in(*folders)
        for says in _others(records):
            typer.echo(f"fourierqk: {says}; they are in a table of their own", err=True)
        table = rows(records)
        if as_json:
            typer.echo(json.dumps(table, indent=1))
        elif table:
            typer.echo(markdown(table) if as_markdown else plain(table))
        if bad or not records:
            raise ValueError("; ".join(bad) or f"no records in {', '.join(map(str, folders))}")


@app.command()
def reckon(
    seeds: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a study with several seeds.")],
    once: Annotated[Path | None, typer.Argument(metavar="[ONCE]", help="One of other systems, one seed each.")] = None,
    elsewhere: Annotated[Path | None, typer.Option(metavar="DIR", help="One of runs on another text.")] = None,
) -> None:
    """Set the claims of the paper beside your own records, as Markdown. What they cannot tell is "not tested"."""
    with _failures():
        evidence = Evidence(*(_readable(folder) if folder else {} for folder in (seeds, once, elsewhere)))
        if evidence.text != PAPERS_TEXT:
            typer.echo(f"fourierqk: these runs are on {evidence.text}, the paper's on {PAPERS_TEXT}", err=True)
        typer.echo(reckoning.markdown(reckoning.reckon(evidence)))


def _readable(folder: Path) -> dict[str, list[dict]]:
    """The runs in a folder by system. ValueError names those that cannot be read: what is left might mislead."""
    records, bad = runs_in(folder)
    if wrong := "; ".join([*bad, *_others(records)]):
        raise ValueError(f"{folder}: {wrong}")
    if not records:
        raise ValueError(f"no records in {folder}")
    return by_system(records)


def _others(records: list[dict]) -> list[str]:
    """Which records are of another version: what they hold may be missing, or mean something else."""
    counts = Counter(repr(r.get("schema")) for r in records)
    return [f"{n} of {len(records)} records are of version {version}, this is version {SCHEMA}"
            for version, n in counts.items() if version != repr(SCHEMA)]  # fmt: skip


@app.command()
def sample(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    prompt: Annotated[str, typer.Option(help="What to continue [a new line].")] = "",
    length: Annotated[int, typer.Option(min=0, help="Tokens to write.")] = 500,
    temperature: Annotated[float, typer.Option(min=0, help="0 always takes the likeliest token.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Another seed, another text.")] = 0,
) -> None:
    """Let a trained model write. While it writes there is no future to read, whatever it was trained on."""
    with _failures(Exception, less="train with a smaller --length or --preset"):  # a folder can hold anything
        model, record = load(folder)
        letters = _letters(record, folder)
        start = prompt or ("\n" if "\n" in letters.vocab else letters.vocab[0])
        ids = generate(model, letters.encode(start)[None], length, temperature, seed)
        typer.echo(letters.decode(ids[0]))


def _letters(record: dict[str, Any], folder: Path) -> Corpus:
    """The corpus of a record as far as the record knows it: its vocabulary, to encode and decode by."""
    if "vocab" not in record:
        raise ValueError(f"the record in {folder} does not say which tokens the model knows: repeat `fourierqk train`")
    one = torch.zeros(1, dtype=torch.int64)
    return Corpus(record["corpus"]["name"], one, one, tuple(record["vocab"]))


def _probed(path: Path, letters: Corpus | None, tokens: int, length: int) -> Tensor:
    """The ids of a text file (N,): by the vocabulary of the trained run, else by the file's own sorted characters.

    ValueError where a model of so many tokens does not know them all, or the file holds no probe of the length.
    """
    own = read_text(path)
    ids = torch.cat([own.train, own.val])
    if len(ids) < length:
        way_out = "take a longer text or a smaller --length"
        raise ValueError(f"{path} has {len(ids)} characters, too few to probe {length}: {way_out}")
    if letters is None and len(own.vocab) > tokens:
        many = f"{len(own.vocab)} different characters, the model knows {tokens} tokens"
        raise ValueError(f"{path} has {many}: take a text of fewer, or let --vocab say how many it knows")
    return ids if letters is None else letters.encode(own.decode(ids))


@app.command()
def audit(
    model: Annotated[
        str | None,
        typer.Argument(metavar="SYSTEM|FILE.py:NAME|PACKAGE.MODULE:NAME", help="Built anew, or made by your code."),
    ] = None,
    folder: Annotated[Path | None, typer.Option("--dir", help="Audit the trained weights in this folder.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Weights for a model from a file.")] = None,
    vocab: Annotated[int | None, typer.Option(min=2, help="Number of different tokens [a system: 65].")] = None,
    length: Annotated[
        list[int] | None, typer.Option(min=2, help="Tokens to read [256, or what it can]; repeat it for more lengths.")
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(help="Ask also, beside eval and training mode: batch (whether its rows hear each other)."),
    ] = None,
    every: Annotated[bool, typer.Option("--every", help="Name every module where a leak enters.")] = False,
    preset: Annotated[str, typer.Option(help=f"Size of a system built anew: {', '.join(PRESETS)}.")] = "tiny",
    text: Annotated[
        Path | None, typer.Option(help="A text to probe with, where triggers may be rare in random tokens.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Futures to try at each cut.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Of the weights and the probes.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object (see `Audit.as_dict`).")] = False,
) -> None:
    """Ask whether outputs depend on later tokens. Exit status: 0 causal, 1 leaks, 3 inconclusive, 2 not audited."""
    # status 1 must mean that it leaks, never that something broke
    with _failures(Exception, less="take a smaller --length"):
        torch.manual_seed(seed)
        with redirect_stdout(sys.stderr):  # what a stranger's code prints is no part of the answer
            subject, letters = _subject(model, folder, checkpoint, vocab, length, preset, text)
        tokens = vocab or vocab_size(subject)
        if tokens is None:
            raise ValueError("this model does not say how many tokens it knows: give --vocab")
        longest = block_size(subject) or LENGTH
        first, *more = length or [min(LENGTH, longest)]
        with redirect_stdout(sys.stderr):
            ids = _probed(text, letters, tokens, max(first, *more, 2)) if text else None
            result = examine(
                subject, tokens, first, lengths=more, axes=("train", *(axis or ())), every=every, draws=draws,
                seed=seed, text=ids,
            )  # fmt: skip
        result = replace(result, evidence=tuple(map(_on_the_command_line, result.evidence)))
        typer.echo(json.dumps(result.as_dict(), indent=2) if as_json else str(result))
    raise typer.Exit(EXIT[result.verdict])


def _subject(
    model: str | None, folder: Path | None, checkpoint: Path | None, vocab: int | None, length: list[int] | None,
    preset: str, text: Path | None,
) -> tuple[Model, Corpus | None]:  # fmt: skip
    """What the words on the command line stand for: a trained system, one built anew, or a stranger's model.

    With it the text that it was trained on, as far as its vocabulary, where a text to probe with needs that.
    """
    if folder is not None:
        trained, record = load(folder)
        if model not in (None, record["system"]):
            raise ValueError(f"{folder} holds {record['system']}, not {model}")
        if vocab not in (None, trained.cfg.vocab_size):
            raise ValueError(f"{folder} was trained on {trained.cfg.vocab_size} tokens: leave --vocab {vocab} out")
        return trained, _letters(record, folder) if text else None
    if model is None:
        raise ValueError("name a system to audit, a model in a file (FILE.py:NAME), or a trained system with --dir")
    if ":" in model:
        return load_model(model, checkpoint), None
    if Path(model).is_dir():
        raise ValueError(f"{model} is a folder: a trained system is named by --dir {model}")
    if model.endswith(".py"):
        raise ValueError(f"{model} is a file: name the function in it that makes the model, {model}:NAME")
    if checkpoint is not None:
        raise ValueError("--checkpoint fills a model from a file (FILE.py:NAME); a trained system is named by --dir")
    return _fresh(model, vocab or 65, max(length or [256]), preset), None


@contextmanager
def _failures(*more: type[Exception], less: str = "", again: str = "") -> Iterator[None]:
    """Turn what a user can put right into one line and exit status 2 (1: the training itself broke).

    more: exceptions to expect beside the usual ones. less: what to do where memory runs out. again: what another call
    does when this one was stopped.
    """
    expected: tuple[type[Exception], ...] = (ValueError, OSError, ImportError, *more)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            yield
    except KeyboardInterrupt:
        _stop(f"stopped. {again}", 130)
    except BrokenPipeError:  # who reads along has seen enough: typer ends without a word
        raise
    except FloatingPointError as e:
        _stop(str(e), 2 if more else 1)
    except Exception as e:
        if out_of_memory(e):
            _stop(f"out of memory{less and ': '}{less} ({shorten(str(e) or type(e).__name__, 160)})", 2)
        if not isinstance(e, expected) or isinstance(e, typer.Exit):
            raise
        said = _on_the_command_line(str(getattr(e, "strerror", None) or e))
        _stop(said if isinstance(e, ValueError | OSError) or not more else f"{type(e).__name__}: {said}", 2)


# What the library says to a program, and what to say of it to who types a command.
WORDS = {
    "resume=False": "--restart",
    'axes=("batch",)': "--axis batch",
    "but vocab_size = ": "but --vocab ",
    "Check vocab_size and length": "Check --vocab and --length",
    "give the model that it makes": "name a function without arguments that makes it",
    "give that, not what makes it": "name a function without arguments that makes it",
}


def _on_the_command_line(said: str) -> str:
    for ours, theirs in WORDS.items():
        said = said.replace(ours, theirs)
    return said


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Show a warning: one of ours in a line, one of torch's or a stranger's with the place that it comes from."""
    ours = Path(filename).is_relative_to(Path(__file__).parent)
    said = f"fourierqk: {message}\n" if ours else warnings.formatwarning(message, category, filename, lineno)
    typer.echo(said, err=True, nl=False)


def _stop(why: str, status: int) -> None:
    typer.echo(f"fourierqk: {' '.join(why.split())}", err=True)
    raise typer.Exit(status)


def _fresh(system: str, vocab: int, length: int, preset: str) -> nn.Module:
    look_up(system)
    return build(system, GPTConfig(vocab_size=vocab, block_size=length, **find_preset(preset).model))


if __name__ == "__main__":
    sys.exit(app())
