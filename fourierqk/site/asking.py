"""What a page asks of its reader, in a line below its title, and what its terms mean, where a pointer rests on them.

A Sphinx extension. A chapter names in its header the chapters that it needs (`needs: dft, filter-design`); a page that
is not read from end to end says there what it is for (`asks: To look things up.`).
"""
import re

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

__all__ = ["definitions", "minutes", "plain", "running", "setup"]

GLOSSARY = "glossary"
WORDS, LINES = 200, 12  # of prose and of code that are read in a minute
SPOKEN = {r"\ln ": "ln ", r"\pi": "π", r"\sigma": "σ", r"\sqrt ": "√", r"\tau": "τ"}  # TeX of definitions

log = logging.getLogger(__name__)


# ---------------------------------------------------------------- time and needs


def minutes(doctree: nodes.document) -> int:
    """How long a page takes to read, above ten in steps of five."""
    words = sum(len(p.astext().split()) for p in doctree.findall(nodes.paragraph))
    lines = sum(len(block.astext().split("\n")) for block in doctree.findall(nodes.literal_block))
    found = words / WORDS + lines / LINES
    return max(1, round(found)) if found < 10 else 5 * round(found / 5)


def running(seconds: float) -> str:
    """A time in words: too coarse to change from build to build."""
    for limit, words in (30, "under half a minute"), (60, "under a minute"), (90, "about a minute"):
        if seconds < limit:
            return words
    return f"about {round(seconds / 60)} minutes"


def _asked(app: Sphinx, doc: str, doctree: nodes.document) -> nodes.paragraph:
    """The line: reading, exercises, running, needs."""
    env = app.env
    told = env.metadata[doc]
    line = nodes.paragraph()
    read = minutes(doctree)
    exercises = sum(title.astext().startswith("Exercise") for title in doctree.findall(nodes.title))
    done = f", {exercises} exercises" if exercises else ""
    line += nodes.Text(told.get("asks", f"About {read} minute{'s' * (read > 1)} to read{done}."))
    run = (NbMetadataCollector.get_exec_data(env, doc) or {}).get("runtime")
    if run is not None:
        line += nodes.Text(f" Its code ran in {running(run)} when the page was built.")
    needed = re.findall(r"[\w-]+", told.get("needs", ""))
    for i, other in enumerate(needed):
        if other not in env.titles:
            raise ExtensionError(f"{doc} needs {other!r}, and there is no such page: see `needs` in its header")
        title = env.titles[other].astext()
        line += nodes.Text(" It builds on " if i == 0 else " and " if i == len(needed) - 1 else ", ")
        line += nodes.reference("", title, refuri=app.builder.get_relative_uri(doc, other), internal=True)
    if needed:
        line += nodes.Text(".")
    return line


# ---------------------------------------------------------------- terms


def plain(text: str) -> str:
    """A definition as a hint shows it, in letters alone."""
    for tex, letters in SPOKEN.items():
        text = text.replace(tex, letters)
    return " ".join(text.split())


def definitions(glossary: nodes.document) -> dict[str, str]:
    """Anchor of a term -> what it means."""
    found: dict[str, str] = {}
    for item in glossary.findall(nodes.definition_list_item):
        meaning = plain(" ".join(part.astext() for part in item.children if isinstance(part, nodes.definition)))
        terms = [term for term in item.children if isinstance(term, nodes.term)]
        found |= {anchor: meaning for term in terms for anchor in term["ids"]}
        if "\\" in meaning:
            log.warning("a hint cannot show the TeX in %r: say it in words, or see SPOKEN", meaning, location=item)
    return found


# ---------------------------------------------------------------- Sphinx


def _resolve(app: Sphinx, doctree: nodes.document, doc: str) -> None:
    if GLOSSARY in app.env.all_docs and doc != GLOSSARY:
        meanings = definitions(app.env.get_doctree(GLOSSARY))
        for link in doctree.findall(nodes.reference):
            page, _, anchor = link.get("refuri", "").partition("#")
            if page == f"{GLOSSARY}.html" and anchor in meanings:
                link["reftitle"] = meanings[anchor]
    title = next(doctree.findall(nodes.title), None)
    if title is not None:
        line = nodes.container("", _asked(app, doc, doctree), classes=["fqk-asks"])
        title.parent.insert(title.parent.index(title) + 1, line)


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-resolved", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
