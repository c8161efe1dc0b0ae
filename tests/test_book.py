"""The chapters: notebooks that match and print what they store, budgets, no measurement typed in, working exercises."""
import ast
import functools
import io
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import jupytext
import notebooks
import pytest
from catalogue import Catalogue
from flatten import CHOICE, INLINE, find_fence

from fourierqk.widgets import WIDGETS

ROOT = Path(__file__).resolve().parents[1]
BOOK = Catalogue(ROOT)
chapter = pytest.mark.parametrize("doc", BOOK.chapters)


@functools.cache
def cells(doc: str) -> list:
    return jupytext.read(BOOK.book / f"{doc}.md").cells


def code(doc: str) -> list[str]:
    return [cell.source for cell in cells(doc) if cell.cell_type == "code"]


# --- the notebook beside each chapter


@chapter
def test_the_committed_notebook_is_what_its_chapter_says(doc):
    assert notebooks.changes(BOOK, doc) == "", "run `make notebooks` and commit"


def test_every_notebook_has_its_chapter():
    found = {p.relative_to(BOOK.book).with_suffix("").as_posix() for p in BOOK.book.glob("*.ipynb")}
    assert found - {*BOOK.chapters} == set()


@pytest.mark.slow
@chapter
def test_the_notebook_runs_and_prints_what_it_stores(doc):
    """nbval, in a process of its own. Cells tagged train or hide-input must run, all others must print the same."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=600"]
    command += ["-q", "-p", "no:cacheprovider", f"{doc}.ipynb"]
    env = os.environ | {"FOURIERQK_PROGRESS": "0"}
    run = subprocess.run(command, cwd=BOOK.book, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


# --- budgets of a chapter


@chapter
def test_a_chapter_keeps_its_budget_of_code(doc):
    lengths = [sum(bool(line.strip()) for line in source.split("\n")) for source in code(doc)]
    assert sum(lengths) <= 150
    assert statistics.median(lengths) <= 5
    assert max(lengths) <= 15


@chapter
def test_a_chapter_defines_at_most_three_things(doc):
    """Besides the blanks that an exercise leaves to the reader."""
    sources = [cell.source for cell in cells(doc) if cell.cell_type == "code" and "exercise" not in tags(cell)]
    trees = (ast.parse(source) for source in sources)
    kinds = (ast.FunctionDef, ast.ClassDef)
    assert sum(isinstance(node, kinds) for tree in trees for node in ast.walk(tree)) <= 3


@chapter
def test_a_chapter_opens_with_a_question(doc):
    assert "?" in cells(doc)[0].source.split("\n## ")[0]


def tags(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def test_no_widget_is_the_play_of_more_than_three_chapters():
    """And none is imported for nothing."""
    for name in WIDGETS:
        played = {doc for doc in BOOK.chapters if any(f"{name}(" in source for source in code(doc))}
        assert 1 <= len(played) <= 3, f"{name} is the play of {sorted(played)}"
        assert played == {doc for doc in BOOK.chapters if any(name in source for source in code(doc))}


# --- numbers in prose

MEASURED = re.compile(
    r"(?<![\w.\-])(?<!Python )(?<!version )[+-]?\d+\.\d+(?![.\d]*\w)"  # 1.474, but not 1.0.4 nor Python 3.11
    r"|(?<![\w.])\d+(?:\.\d+)?\s*(?:nats?|bits?)\b"  # 2 nats
)


def prose(source: str) -> Iterator[str]:
    """The sentences of Markdown: no code, formulas, roles, claims, link targets, headings, no exercises."""
    lines, chunk, i = source.split("\n"), [], 0
    while i < len(lines):
        if found := find_fence(lines, i):
            fence, i = found
            made_up = fence.name == "admonition" and fence.argument.startswith(("Exercise", "Solution"))
            if fence.name not in (None, "math", "literalinclude", "code-cell") and not made_up:
                yield from prose(fence.body)
        else:
            chunk.append(lines[i] if not lines[i].startswith("#") else "")
            i += 1
    yield INLINE.sub(lambda m: m["text"] or m["notetext"] or " ", "\n".join(chunk))


def typed_numbers(source: str) -> list[str]:
    return [m[0] for text in prose(source) for m in MEASURED.finditer(text)]


@pytest.mark.parametrize(
    "text",
    ["The loss falls to 1.474.", "It gains 2 nats.", "a gap of +4.6 on the way", ":::{note}\nabout 0.3 bits\n:::"],
)
def test_a_typed_measurement_is_found(text):
    assert len(typed_numbers(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "At $f = 0.5$ it is {{ claim }}, see `x = 1.5` and {eq}`eq-1.5`.",
        "## 1.5 nats",
        "```python\nx = 1.5\n```",
        ":::{admonition} Exercise: a loss\nThe loss is 0.5 nats.\n:::",
        "[the release](https://example.org/1.5)",
        "$$\n1.5\n$$",
        "Python 3.11 or later; jupyter-book 1.0.4; 400 steps of 16 windows, a 95 % interval.",
    ],
)
def test_other_numbers_are_left_alone(text):
    assert typed_numbers(text) == []


@chapter
def test_no_measured_number_is_typed_into_prose(doc):
    """Measured numbers come from a cell or claims.json. A number that was chosen, not measured, is written as $0.5$."""
    sources = [cell.source for cell in cells(doc) if cell.cell_type == "markdown"]
    assert [number for source in sources for number in typed_numbers(source)] == []


# --- predictions


def sections(doc: str) -> Iterator[list]:
    """The chapter's sections, each a list of what stands in it: fences and cells of code, in order."""
    found: list = []
    for cell in cells(doc):
        if cell.cell_type == "code":
            found.append(cell)
            continue
        lines, i = cell.source.split("\n"), 0
        while i < len(lines):
            if fence := find_fence(lines, i):
                found.append(fence[0])
            elif lines[i].startswith("#"):
                yield found
                found = []
            i = fence[1] if fence else i + 1
    yield found


def titled(part, title: str) -> bool:
    return getattr(part, "name", None) == "admonition" and part.argument == title


PREDICTIONS = [
    pytest.param(section[i:], id=f"{doc}: {section[i].body[:40]}")
    for doc in BOOK.chapters
    for section in sections(doc)
    for i in range(len(section))
    if titled(section[i], "Predict")
]


@pytest.mark.parametrize("parts", PREDICTIONS)
def test_a_prediction_has_choices_and_its_answer_below(parts):
    """The page veils what stands between the two, and an answer in another section would leave the result open."""
    choices = CHOICE.findall(parts[0].body)
    assert 3 <= len(choices) <= 4 and choices.count("- [x] ") == 1
    answer = next((part for part in parts[1:] if titled(part, "Answer") or titled(part, "Predict")), None)
    assert answer and titled(answer, "Answer") and "dropdown" in answer.options["class"]


def test_most_chapters_ask_for_a_prediction():
    assert len(PREDICTIONS) >= 20


# --- figures


@chapter
def test_every_figure_has_a_number_and_a_caption(doc):
    """A name, without which Sphinx gives no number, and a sentence that says no measured number."""
    drawn = [cell for cell in cells(doc) if re.search(r"^figures\.\w+\(", cell.source, re.MULTILINE)]
    for cell in drawn:
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        assert figure.get("name", "").startswith("fig-") and figure.get("caption", "").endswith("."), cell.source
        assert BOOK.figures[figure["name"]][0] == doc and typed_numbers(figure["caption"]) == []


# --- exercises


@dataclass(frozen=True)
class Exercise:
    title: str
    blank: str  # the cell as the reader finds it
    solution: str

    @property
    def calls(self) -> str:
        """The lines of the cell that call its checker."""
        tree = ast.parse(self.blank)
        found = [node for node in tree.body if isinstance(node, ast.Expr) and ast.unparse(node).startswith("check.")]
        return "\n".join(ast.unparse(node) for node in found)


def exercises_of(doc: str) -> list[Exercise]:
    """In the chapter's order: a text that sets the exercise, a cell tagged exercise, a solution in a dropdown."""
    titles, blanks, solutions = [], [], []
    for cell in cells(doc):
        if cell.cell_type == "code" and "exercise" in tags(cell):
            blanks.append(cell.source)
            assert len(titles) == len(blanks), f"{doc}: no 'Exercise: ...' admonition before {cell.source!r}"
        elif cell.cell_type == "markdown":
            for fence in admonitions(cell.source):
                if fence.argument.startswith("Exercise: "):
                    titles.append(fence.argument)
                elif fence.argument == "Solution":
                    assert "dropdown" in fence.options["class"], f"{doc}: the solution of {titles[-1]} lies open"
                    solutions.append("\n".join(python_blocks(fence.body)))
                    assert len(titles) == len(solutions), f"{doc}: {titles[-1]} has no solution, or two"
    assert len(titles) == len(blanks) == len(solutions), f"{doc}: {titles}"
    return [Exercise(*parts) for parts in zip(titles, blanks, solutions, strict=True)]


def fences(source: str) -> Iterator:
    lines, i = source.split("\n"), 0
    while i < len(lines):
        found = find_fence(lines, i)
        if found:
            yield found[0]
        i = found[1] if found else i + 1


def admonitions(source: str) -> Iterator:
    return (fence for fence in fences(source) if fence.name == "admonition")


def python_blocks(source: str) -> Iterator[str]:
    return ("\n".join(fence.lines) for fence in fences(source) if fence.info == "python")


@functools.cache
def opening(doc: str) -> dict:
    """The names that the chapter's first code cell defines."""
    names: dict = {}
    exec(code(doc)[0], names)
    return names


def printed(doc: str, source: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        exec(source, dict(opening(doc)))
    return out.getvalue()


@chapter
def test_a_chapter_has_three_to_five_exercises(doc):
    assert 3 <= len(exercises_of(doc)) <= 5 or doc in ("intro", "numbers", "race-protocol")


each_exercise = pytest.mark.parametrize(
    ("doc", "exercise"),
    [pytest.param(doc, e, id=f"{doc}: {e.title}") for doc in BOOK.chapters for e in exercises_of(doc)],
)


@each_exercise
def test_the_solution_is_correct(doc, exercise):
    assert exercise.calls, "the exercise cell calls no checker: write check.name(answer)"
    assert printed(doc, f"{exercise.solution}\n{exercise.calls}").startswith("Correct.")


@each_exercise
def test_a_blank_is_not_an_answer(doc, exercise):
    assert printed(doc, exercise.blank).startswith(("No answer yet", "Not yet: "))
