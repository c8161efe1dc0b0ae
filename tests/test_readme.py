"""The README: its blocks of Python run as they stand, its commands are understood, its map shows the house as it is."""
import re
import shlex
from pathlib import Path

import pytest
import torch
import typer

from fourierqk.cli import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf8")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
BLOCKS = [text for language, text in FENCED if language == "python"]
COMMANDS = [line.removeprefix("fourierqk ") for _, text in FENCED for line in text.split("\n")
            if line.startswith("fourierqk ")]  # fmt: skip


@pytest.mark.slow
def test_the_blocks_run_one_after_the_other(capsys):
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block.replace("steps=400", "steps=20"), "README.md", "exec"), names)  # as for a reader in a hurry
    assert len(BLOCKS) >= 3 and "LEAKS" in capsys.readouterr().out


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_line_understands_its_commands(line: str):
    """Their names, options and types; test_cli.py runs them."""
    name, *words = shlex.split(line, comments=True)
    typer.main.get_command(app).commands[name].make_context(name, words)


def test_every_command_is_shown():
    assert {line.split()[0] for line in COMMANDS} == {*typer.main.get_command(app).commands}


def test_every_target_of_make_is_one():
    targets = {*re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf8"), re.MULTILINE)}
    said = re.findall(r"(?:^|`)make ((?:[a-z]+ ?)+)", README, re.MULTILINE)
    named = {target for words in said for target in words.split()}
    assert len(named) > 4 and named <= targets


def test_the_map_shows_every_room_and_no_other():
    """Of the library each wing and each module of its hall; of the rest the folders."""
    rows = README.split("## Where things are\n")[1].split("```")[1].strip("\n").split("\n")
    library = [row[12:].split("  ")[0] for row in rows if row.startswith(("fourierqk/ ", " "))]
    folders = re.findall(r"(\w+)/ ", "\n".join(rows))
    there = {p.stem for p in (ROOT / "fourierqk").iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert sorted(" ".join(library).split()) == sorted(there - {"__init__"})
    assert sorted(folders) == sorted({"fourierqk", "book", "tests", "benchmarks", "tools"})
    assert all((ROOT / folder).is_dir() for folder in folders)
