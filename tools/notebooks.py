"""Write each chapter's .ipynb, the copy that Colab opens, from its .md, the source.

    python tools/notebooks.py                # write all, execute those whose code or library changed
    python tools/notebooks.py dft intro      # only these
    python tools/notebooks.py --check        # write nothing; exit 1 if a committed notebook is not what its .md says

One way only: nothing in a notebook flows back. Outputs are stored as text; figures and widgets appear when it runs.
"""
import argparse
import difflib
import hashlib
import json
import os
import sys
from pathlib import Path

import jupytext
import nbformat
from catalogue import Catalogue
from flatten import Flattener
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from fourierqk.site import fingerprint

__all__ = ["as_file", "build", "changes", "identify", "main"]

ROOT = Path(__file__).resolve().parents[1]
SETUP = '''\
# @title Setup: in Colab, run this cell first. Elsewhere it does nothing.
try:
    import google.colab
except ImportError:
    pass
else:
    import importlib.metadata, os, subprocess, sys
    spec = os.environ.get("FOURIERQK_SPEC", "git+{url}@{branch}")
    # --no-deps: Colab has all that the library needs, and none of it may change under a running kernel.
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", spec], check=True)
    google.colab.output.enable_custom_widget_manager()
    for name in ("fourierqk", "torch", "numpy", "plotly", "anywidget"):
        print(name, importlib.metadata.version(name))
'''
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}  # Colab's word for it, and JupyterLab's


def build(catalogue: Catalogue, doc: str) -> nbformat.NotebookNode:
    """The notebook of one chapter, not executed."""
    chapter = jupytext.read(catalogue.book / f"{doc}.md")
    flatten, cells = Flattener(catalogue, doc), []
    for cell in chapter.cells:
        if cell.cell_type == "code":
            if not any(c.cell_type == "code" for c in cells):
                cells.append(new_code_cell(SETUP.format(**catalogue.repository).rstrip(), metadata=dict(FOLDED)))
            cells.append(new_code_cell(cell.source, metadata=_metadata(cell.metadata.get("tags", []))))
            if figure := cell.metadata.get("mystnb", {}).get("figure"):
                number = catalogue.figures[figure["name"]][1]
                cells.append(new_markdown_cell(f"**Figure {number}.** {flatten.inline(figure['caption'])}"))
        elif text := flatten.text(cell.source):
            cells.append(new_markdown_cell(text))
    if notes := flatten.endnotes():
        cells.append(new_markdown_cell(notes))
    identify(cells)
    return new_notebook(cells=cells, metadata=header())


def identify(cells: list[nbformat.NotebookNode]) -> None:
    """Name the cells by what they say: an unchanged chapter gives the same bytes."""
    for i, cell in enumerate(cells):
        cell.id = hashlib.sha256(f"{i} {cell.cell_type} {cell.source}".encode()).hexdigest()[:12]


def header() -> dict:
    """A notebook's metadata."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"kernelspec": kernel, "language_info": {"name": "python"}}


def _metadata(tags: list[str]) -> dict:
    folded = dict(FOLDED) if {"hide-input", "hide-cell", "remove-input"} & {*tags} else {}
    # Figures hold more than text, training differs between processors: nbval runs these and compares nothing.
    ignored = ["nbval-ignore-output"] if {"hide-input", "train"} & {*tags} else []
    return folded | ({"tags": [*tags, *ignored]} if tags else {})


# --- outputs


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells and keep of their outputs what is text."""
    from nbclient import NotebookClient

    os.environ.update(FOURIERQK_PROGRESS="0", PLOTLY_RENDERER="plotly_mimetype")
    client = NotebookClient(
        notebook,
        timeout=900,
        kernel_name="python3",
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    notebook.metadata = header()  # without what the kernel added: its exact version, the state of widgets
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [kept for output in cell.outputs if (kept := text_only(output))]


def text_only(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """An output without its figures, widgets and warnings; None if nothing is left."""
    if output.output_type == "stream":
        return output if output.name == "stdout" else None
    if output.output_type not in ("display_data", "execute_result"):
        return output
    data = output.data
    figure = data.get("application/vnd.plotly.v1+json")
    if figure is not None:
        alt = (figure["layout"].get("meta") or {}).get("alt")
        kept = {"text/plain": f"[Figure: {alt}]"} if alt else {}
    elif any(mime.startswith(("application/", "image/")) for mime in data):
        kept = {}
    else:
        kept = {mime: text for mime, text in data.items() if mime in ("text/plain", "text/markdown")}
    output.data, output.metadata = kept, {}
    return output if kept else None


def reuse(notebook: nbformat.NotebookNode, path: Path) -> bool:
    """Take the outputs from the notebook at `path` if its code is the same."""
    if not path.exists():
        return False
    new, old = ([c for c in n.cells if c.cell_type == "code"] for n in (notebook, nbformat.read(path, as_version=4)))
    if [c.source for c in new] != [c.source for c in old]:
        return False
    for mine, theirs in zip(new, old, strict=True):
        mine.outputs, mine.execution_count = theirs.outputs, theirs.execution_count
    return True


# --- check and write


def changes(catalogue: Catalogue, doc: str) -> str:
    """How the committed notebook differs from what its chapter says, outputs aside; empty if it does not."""
    path = catalogue.book / f"{doc}.ipynb"
    if not path.exists():
        return f"{path} is missing\n"
    committed = nbformat.read(path, as_version=4)
    sides = [_as_text(notebook) for notebook in (committed, build(catalogue, doc))]
    return "".join(difflib.unified_diff(*sides, f"{doc}.ipynb", f"from {doc}.md"))


def _as_text(notebook: nbformat.NotebookNode) -> list[str]:
    lines = [json.dumps(notebook.metadata, sort_keys=True) + "\n"]
    for cell in notebook.cells:
        lines.append(f"--- {cell.cell_type} {cell.id} {json.dumps(cell.metadata, sort_keys=True)}\n")
        lines += [f"{line}\n" for line in cell.source.split("\n")]
    return lines


def as_file(notebook: nbformat.NotebookNode) -> str:
    """What stands in the committed file."""
    return nbformat.writes(notebook, indent=1) + "\n"


def write(catalogue: Catalogue, doc: str) -> str:
    """Write one notebook; returns what was done."""
    path, stamp = catalogue.book / f"{doc}.ipynb", catalogue.book / "_build" / "notebooks" / f"{doc}.stamp"
    notebook = build(catalogue, doc)
    code = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    made_from = fingerprint(catalogue.root / "fourierqk", catalogue.book)
    key = hashlib.sha256(f"{made_from} {code}".encode()).hexdigest()
    fresh = stamp.exists() and stamp.read_text() == key and reuse(notebook, path)
    if not fresh:
        execute(notebook, path.parent)
    text = as_file(notebook)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(key)
    return "unchanged code, outputs kept" if fresh else "executed"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("chapters", nargs="*", help="names without suffix; all if none is given")
    parser.add_argument("--check", action="store_true", help="write nothing, compare with the committed notebooks")
    args = parser.parse_args(argv)
    catalogue = Catalogue(ROOT)
    if unknown := set(args.chapters) - set(catalogue.chapters):
        parser.error(f"no such chapter: {', '.join(sorted(unknown))}; there are {', '.join(catalogue.chapters)}")
    chapters = args.chapters or catalogue.chapters
    if args.check:
        differences = [diff for doc in chapters if (diff := changes(catalogue, doc))]
        print(*differences, sep="\n", end="")
        print("Run `make notebooks`." if differences else f"{len(chapters)} notebooks match their chapters.")
        return bool(differences)
    for i, doc in enumerate(chapters, 1):
        print(f"[{i}/{len(chapters)}] {doc}", end=" ", flush=True)
        print(write(catalogue, doc))
    return 0


if __name__ == "__main__":
    sys.exit(main())
