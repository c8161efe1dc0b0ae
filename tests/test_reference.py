"""The pages at the end of the book: the systems, the terms, the library, the references, how to cite."""
import functools
import importlib
import importlib.util
import inspect
import re
import typing
from pathlib import Path

import docutils.core
import pytest
import yaml
from catalogue import Catalogue
from flatten import find_fence

import fourierqk
from fourierqk.cli import app
from fourierqk.site import pages
from fourierqk.zoo import SYSTEMS

ROOT = Path(__file__).resolve().parents[1]
BOOK = Catalogue(ROOT)
PAGES = BOOK.sources


# --- the table of systems


def test_the_table_of_systems_is_the_zoo():
    """In its order, with the verdict that test_zoo.py holds the audit to."""
    table = PAGES["glossary"].split("(glossary-systems)=")[1].split("| no. | diagnostic")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n") if line.startswith("|")]
    listed = [(re.search(r"`([a-z-]+)`", row[1])[1], row[-1]) for row in rows[2:]]
    assert listed == [(s.name, s.verdict) for s in SYSTEMS.values()]


@pytest.mark.parametrize("number", [*(f"S{i}" for i in range(1, 14) if i != 9), "S9a", "S9b", "S9c",
                                    *(f"D{i}" for i in range(1, 6))])  # fmt: skip
def test_every_number_of_ours_is_in_the_tables(number):
    assert f"\n| {number} |" in PAGES["glossary"]


# --- the terms


@functools.cache
def terms() -> list[list[str]]:
    """The terms of the glossary, those that share a definition together."""
    lines = PAGES["glossary"].split("\n")
    start = next(i for i, line in enumerate(lines) if line == "```{glossary}")
    blocks = "\n".join(find_fence(lines, start)[0].lines).strip().split("\n\n")
    return [[line for line in block.split("\n") if not line.startswith(" ")] for block in blocks]


def test_the_glossary_is_in_order_and_says_nothing_twice():
    first = [names[0].lower() for names in terms()]
    assert first == sorted(first)
    names = [name.lower() for group in terms() for name in group]
    assert len(names) == len({*names})


@pytest.mark.parametrize("page", PAGES)
def test_every_term_that_a_page_links_to_is_in_the_glossary(page):
    known = {name.lower() for group in terms() for name in group}
    links = re.findall(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`", PAGES[page])
    assert {link.lower() for link in links} - known == set()


FIELD = """
frequency response, impulse response, pass band, centre frequency, bandwidth, group delay, circular convolution,
linear convolution, aliasing, Nyquist frequency, analytic signal, admissible wavelet, spectral leakage,
information leak, ordered loss, honest loss, shuffled gap, entropy rate, oracle, floor, audit, influence, reach,
surrogate, identity path, nat, bits per character, seed, window, token"""


@pytest.mark.parametrize("term", re.split(r",\s+", FIELD.strip()))
def test_the_words_of_the_field_are_explained(term):
    assert any(term in group for group in terms())


# --- the library


@functools.cache
def documented() -> dict[str, object]:
    """What the reference page shows: the `__all__` of each module on it, less what it leaves out, and its data."""
    page, found = PAGES["reference"], {}
    for m in re.finditer(r"^\.\. automodule:: (\S+)\n((?:   .*\n)*)", page, re.MULTILINE):
        module = importlib.import_module(m[1])
        left_out = re.findall(r"[\w]+", m[2].partition(":exclude-members:")[2].split("\n")[0])
        found |= {name: getattr(module, name) for name in module.__all__ if name not in left_out}
    for module, name in re.findall(r"^\.\. autoclass:: (\S+)\.(\w+)$", page, re.MULTILINE):
        found[name] = getattr(importlib.import_module(module), name)
    data = r"^\.\. py:currentmodule:: (\S+)\n((?:(?!\.\. py:currentmodule|```).*\n)*)"
    for m in re.finditer(data, page, re.MULTILINE):
        names = re.findall(r"^(?:\.\. py:data::| {13}) *(\w+)$", m[2], re.MULTILINE)
        found |= {f"data {name}": getattr(importlib.import_module(m[1]), name) for name in names}
    return found


def test_every_public_name_is_on_the_reference_page():
    known = {name.removeprefix("data ") for name in documented()}
    assert known >= {*fourierqk.__all__}
    constants = {name for name, value in documented().items() if not callable(value) and not name.startswith("data ")}
    assert {f"data {name}" for name in constants} <= {*documented()}, "autodoc shows no constants: write a py:data"


def sections() -> dict[str, tuple[list[str], set[str]]]:
    """The table at the top of the page: a section -> where it says to import from, and the names that it documents."""
    page, found = PAGES["reference"], {}
    for label, rooms in re.findall(r"^\| [^|]+ \| \[[^|]+\]\(#(lib-\w+)\) \| (`.+`) \|$", page, re.MULTILINE):
        section = re.split(r"^\(lib-", page.split(f"\n({label})=\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
        modules = re.findall(r"^\.\. automodule:: (\S+)$", section, re.MULTILINE)
        names = {name for module in modules for name in importlib.import_module(module).__all__}
        found[label] = re.findall(r"`([\w.]+)`", rooms), names
    return found


@pytest.mark.parametrize("label", sections())
def test_names_are_imported_from_where_the_page_says(label):
    rooms, names = sections()[label]
    assert names and {n for n in names if not any(hasattr(importlib.import_module(room), n) for room in rooms)} == set()


def test_what_a_page_imports_is_public():
    """A name in the `__all__` of where it is imported from, or a module: what else a module holds may go."""
    text = "\n".join([*PAGES.values(), (ROOT / "README.md").read_text("utf8")])
    imports = {*re.findall(r"^from (fourierqk[\w.]*) import ([\w, ]+)$", text, re.MULTILINE)}
    wanted = {(module, name.partition(" as ")[0]) for module, names in imports for name in names.split(", ")}
    assert len(wanted) > 50
    not_public = {(m, n) for m, n in wanted if n not in importlib.import_module(m).__all__}
    assert {(m, n) for m, n in not_public if not importlib.util.find_spec(f"{m}.{n}")} == set()


def public(name: str) -> dict[str, object]:
    """A documented class or function, and the methods that a class has of its own."""
    value, found = documented()[name], {}
    if callable(value) and not isinstance(value, typing._GenericAlias):
        found[name] = value
    if inspect.isclass(value):
        for key, member in vars(value).items():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if not key.startswith("_") and inspect.isfunction(function):
                found[f"{name}.{key}"] = function
    return found


def test_every_function_and_class_says_what_it_is():
    silent = {n for name in documented() for n, value in public(name).items() if n == name and not value.__doc__}
    assert silent == set()


@pytest.mark.parametrize("name", documented())
def test_a_docstring_reads_as_it_was_written(name):
    """Through the extension's hook, as Sphinx has it: no mark of reStructuredText is left open or misread."""
    for n, value in public(name).items():
        lines = inspect.cleandoc(value.__doc__ or "").split("\n")
        pages._plain(None, "function", n, value, None, lines)
        settings = {"report_level": 2, "halt_level": 2, "warning_stream": False}
        docutils.core.publish_doctree("\n".join(lines), settings_overrides=settings)


@pytest.mark.parametrize("name", documented())
def test_the_types_in_a_signature_are_on_the_page_too(name):
    """Or the strict build of the book stops at a reference that leads nowhere."""
    known = [value for value in documented().values() if inspect.isclass(value)]
    for n, value in public(name).items():
        called = value.__init__ if inspect.isclass(value) else value
        hints = typing.get_type_hints(called).values() if inspect.isfunction(called) else []
        ours = {t for hint in hints for t in parts_of(hint) if getattr(t, "__module__", "").startswith("fourierqk.")}
        assert ours <= {*known}, n


def parts_of(hint: object) -> list[object]:
    """A type hint taken apart: dict[str, System] -> str, System."""
    inner = typing.get_args(hint)
    return [part for i in inner for part in (i if isinstance(i, list) else [i]) for part in parts_of(part)] or [hint]


def test_every_command_is_on_the_reference_page():
    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert {c for c in commands if f"| `fourierqk {c}" not in PAGES["reference"]} == set()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Power |X|^2 / n", r"Power \|X\|^2 / n"),
        ("x_ and block_size", r"x\_ and block_size"),
        ("`a | b_` and ``c|d``, e|", r"`a | b_` and ``c|d``, e\|"),
        ("    indented |block|", "    indented |block|"),
        ("*not* this", "*not* this"),
    ],
)
def test_marks_that_nobody_meant_are_escaped(written, read):
    lines = [written]
    pages._plain(None, "function", "f", None, None, lines)
    assert lines == [read]


# --- references


def test_every_reference_is_cited_or_recommended():
    keys = {key.strip() for text in PAGES.values() for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", text)
            for key in keys.split(",")}  # fmt: skip
    assert keys == {*BOOK.bibliography}


def test_no_two_references_look_alike():
    """A citation shows author and year alone."""
    shown = [(BOOK.reference(key).author, BOOK.reference(key).year) for key in BOOK.bibliography]
    assert len(shown) == len({*shown})


def test_the_page_cites_the_version_that_is_here():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    assert cff["version"] == fourierqk.__version__ and f"Version {fourierqk.__version__}" in PAGES["citing"]
    assert cff["title"] == re.sub(r"[{}]", "", re.search(r"title  = (.*),\n", PAGES["citing"])[1])
