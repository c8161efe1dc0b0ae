"""What the theme and its extensions put on every page, mended: a Sphinx extension.

Pages load no script that they do not use: the icons become a style sheet of those that the theme shows, and the index
of the search is for its own page. A button is called what is written on it. Console and screen readers find no fault.
"""
import re
from pathlib import Path
from urllib.parse import quote

import pydata_sphinx_theme
from docutils import nodes
from markupsafe import Markup
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError

__all__ = ["icons", "mended", "setup"]

HERE = Path(__file__).parent
ICONS = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static/scripts/fontawesome.js"
SHOWN = """angle-left angle-right arrow-up bars circle-half-stroke code download expand file file-pdf github lightbulb
    list magnifying-glass moon rocket sun""".split()

MENDED = [
    (r'<script defer src="[^"]*fontawesome\.js[^"]*"></script>', ""),  # 1.5 MB
    (r'<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>', ""),  # no search as one types
    (r'(<button class="[^"]*search-button-field[^"]*"[^>]*?) aria-label="[^"]*"', r"\1"),
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    (r' role="list" class="citation-list"', ""),  # roles that the elements inside do not have
    (r' role="doc-biblioentry"', ""),
    (r'<th class="head"><p></p></th>', '<td class="head"></td>'),  # a corner heads nothing
]


def mended(page: str) -> Markup:
    """A piece of a page without what is wrong with it, or of no use here."""
    for wrong, right in MENDED:
        page = re.sub(wrong, right, page)
    return Markup(page)


def icons(script: str, names: list[str]) -> str:
    """A style sheet that draws icons as the script of Font Awesome would, in the colour of the text beside them."""
    rules = []
    for name in names:
        found = re.search(rf'[{{,]"?{re.escape(name)}"?:\[(\d+),(\d+),\[[^\]]*\],"[^"]*","([^"]+)"', script)
        if not found:
            raise ExtensionError(f"the theme's icons have no {name!r} any more: see SHOWN in fourierqk/site/stock.py")
        width, height, path = found.groups()
        drawn = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"><path d="{path}"/></svg>'
        rules.append(f'.fa-{name}::before {{ --icon: url("data:image/svg+xml,{quote(drawn)}"); }}\n')
    return "".join(rules)


def _write_icons(app: Sphinx) -> None:
    if app.builder.format == "html":
        path = Path(app.outdir) / "_static" / "fourierqk" / "icons.css"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((HERE / "icons.css").read_text("utf8") + icons(ICONS.read_text("utf8"), SHOWN), "utf8")


def _mend(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Leave out MathJax where nothing is to be set, and what asks for a server: Thebe, and the kernels' widgets."""
    formulas = doctree is not None and any(doctree.findall(_is_math))
    unused = ("thebe",) if formulas else ("thebe", "mathjax")
    context["script_files"] = [
        script for script in context["script_files"]
        if not any(name in str(script).lower() for name in unused)
        and "widget-state" not in getattr(script, "attributes", {}).get("type", "")
    ]  # fmt: skip
    context["mended"] = mended


def _is_math(node: nodes.Node) -> bool:
    return isinstance(node, nodes.math | nodes.math_block)


def _configure(app: Sphinx, config: Config) -> None:
    config.templates_path.insert(0, str(HERE / "templates"))
    config.html_search_scorer = str(HERE / "search.js")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_css_file("fourierqk/icons.css")
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _write_icons)
    app.connect("html-page-context", _mend, priority=950)  # after the theme and its extensions
    return {"parallel_read_safe": True, "parallel_write_safe": True}
