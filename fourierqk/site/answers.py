"""Exercises on the page: a box where the checker's rule can judge without Python, else a way to the cell in Colab.

A Sphinx extension. The rules come from fourierqk.exercises, and answers.js judges by them.
"""
import html
import importlib
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

__all__ = ["rule", "setup"]

CALL = re.compile(r"^check\.(\w+)\(", re.MULTILINE)
UNIT = re.compile(r"^answer = \.\.\.  # (.+)$", re.MULTILINE)  # what the blank says about the form of an answer

log = logging.getLogger(__name__)


def rule(doc: str, name: str) -> dict[str, Any] | None:
    """The rule by which a chapter's checker judges, in plain data; None for one that has to run."""
    module = importlib.import_module(f"fourierqk.exercises.{doc.replace('-', '_')}")
    make = getattr(getattr(module, name), "rule", None)
    return make().spoken() if make else None


def _set(app: Sphinx, doctree: nodes.document) -> None:
    """Put a box or a link in the place of what a cell prints to a reader who has not answered.

    A blank that only takes a value goes as well: the box says all that it says.
    """
    doc = app.env.docname
    for cell in [*doctree.findall(nodes.container)]:
        if "tag_exercise" not in cell["classes"]:
            continue
        source = next(cell.findall(nodes.literal_block)).astext()
        for output in [node for node in cell.findall(nodes.container) if "cell_output" in node["classes"]]:
            output.parent.remove(output)
        [name] = CALL.findall(source)
        link = f'<a href="{html.escape(_colab(app, doc, source))}">in Colab</a>'
        if spoken := rule(doc, name):
            unit = UNIT.search(source)
            data = json.dumps(spoken | {"unit": unit[1] if unit else ""}).replace("<", "\\u003c")
            inside = f'<script type="application/json">{data}</script><noscript>Answer it {link}.</noscript>'
            cell.replace_self(_raw(f'<div class="fqk-answer">{inside}</div>'))
        else:
            cell.append(_raw(f'<p class="fqk-answer">Write it here and run it {link}.</p>'))


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _colab(app: Sphinx, doc: str, source: str) -> str:
    """Where Colab opens the chapter's notebook, at the cell with this source."""
    theme = app.config.html_theme_options
    owner_and_name = theme["repository_url"].split("//", 1)[1].split("/", 1)[1]
    place = f"{theme['path_to_docs']}/{doc}.ipynb"
    cells = json.loads((Path(app.srcdir) / f"{doc}.ipynb").read_text("utf8"))["cells"]
    found = next((cell["id"] for cell in cells if "".join(cell["source"]).strip() == source.strip()), None)
    if found is None:
        log.warning("the notebook of %s lacks an exercise of its page: run `make notebooks`", doc)
    host = theme["launch_buttons"]["colab_url"]
    return f"{host}/github/{owner_and_name}/blob/{theme['repository_branch']}/{place}#scrollTo={found}"


def setup(app: Sphinx) -> dict[str, object]:
    """Register with Sphinx: when a page has been read, before its outputs are chosen."""
    app.connect("doctree-read", _set)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
