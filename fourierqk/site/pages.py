"""The book's Sphinx extension: live widgets and plotly figures without a kernel, everything served by the site itself.

Widgets and figures reach the page as JSON in a div; site.js draws them when they come near the screen. Two myst-nb
plugins make the divs (entry points in pyproject.toml), the extension copies the scripts beside the pages.
"""
import hashlib
import html
import importlib.metadata
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util import logging

from fourierqk import widgets
from fourierqk.reckoning import stated
from fourierqk.site.sources import fingerprint

__all__ = ["PlotlyFigure", "WidgetFigure", "setup"]

PACKAGE = Path(__file__).parents[1]
PLOTS = "plotly-cartesian.min.js"
PLOTLY = "application/vnd.plotly.v1+json"
SCRIPTS = ("site.js", "predict.js", "answers.js")  # of every page
HEIGHT = 420  # pixels kept free for a figure that states none

log = logging.getLogger(__name__)


# ---------------------------------------------------------------- outputs -> page


class WidgetFigure:
    """Renders a `fourierqk.widgets.Widget`: a myst-nb MIME plugin."""

    mime_priority_overrides = [("*", widgets.MIME, 1)]  # before the ipywidgets view and text/html

    @staticmethod
    def handle_mime(renderer: Any, data: Any, inline: bool) -> list[nodes.Element] | None:
        if inline or data.mime_type != widgets.MIME:
            return None
        name = data.content["widget"]
        script = f"{name}.js?v={_hash(widgets.module(name).encode())}"  # a browser keeps no older script
        kind = getattr(widgets, next(kind for kind, own in widgets.WIDGETS.items() if own == name))
        still = kind(**data.content["settings"]).picture()
        missing = f"<noscript>This live figure needs JavaScript. {'It starts so:' if still else ''}{still}</noscript>"
        return [_island("fqk-live", data.content["settings"], missing, {"data-widget": script})]


class PlotlyFigure:
    """Renders a plotly figure, in the page's colours. Its layout.meta["alt"] says what is to be seen."""

    mime_priority_overrides = [("*", PLOTLY, 2)]

    @staticmethod
    def handle_mime(renderer: Any, data: Any, inline: bool) -> list[nodes.Element] | None:
        if inline or data.mime_type != PLOTLY:
            return None
        layout = dict(data.content.get("layout", {}))
        alt = (layout.get("meta") or {}).get("alt", "")
        if not alt:
            log.warning(
                'a figure has no text for readers who cannot see it: set layout.meta = {"alt": "..."}',
                location=renderer.document["source"],
            )
        template = layout.pop("template", {}).get("layout", {})  # the page brings its own, but for the line colours
        content = {key: data.content[key] for key in ("data", "frames", "config") if data.content.get(key)}
        content |= {"layout": layout, "colorway": template.get("colorway"), "shades": template.get("meta")}
        style = f"min-height: {layout.get('height', HEIGHT)}px"
        missing = f"<noscript>{html.escape(alt)}</noscript>"
        return [_island("fqk-figure", content, missing, {"role": "img", "aria-label": alt, "style": style})]


def _island(kind: str, content: dict, fallback: str, attributes: dict[str, str]) -> nodes.raw:
    """A div that site.js brings to life from the JSON inside it."""
    spelled = "".join(f' {k}="{html.escape(v)}"' for k, v in attributes.items())
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")  # no </script> can end it early
    text = f'<div class="{kind}"{spelled}><script type="application/json">{data}</script>{fallback}</div>'
    return nodes.raw("", text, format="html", classes=["output"])


# ---------------------------------------------------------------- assets


def _classic(name: str) -> str:
    """A widget's ES module as a classic script: modules do not load from file://."""
    text = widgets.module(name)
    head, found, tail = text.partition("\nexport default ")
    if not found or "\nexport " in tail:
        raise ExtensionError(f"fourierqk/widgets/{name}.js must have one export, `export default {{...}}`")
    return f'(() => {{\n{head}\n(window.fourierqk ??= {{}})["{name}"] = {tail}}})();\n'


def _copy_assets(app: Sphinx) -> None:
    """Put scripts, styles, plotly.js and MathJax beside the pages; a page asks no other host for anything.

    Of plotly.js the bundle for plots on two axes: a third of the whole.
    """
    if app.builder.format != "html":
        return
    out = Path(app.outdir) / "_static" / "fourierqk"
    out.mkdir(parents=True, exist_ok=True)
    for name in widgets.WIDGETS.values():
        (out / f"{name}.js").write_text(_classic(name), "utf8")
    shutil.copy(PACKAGE / "widgets" / "widgets.css", out)
    for name in (*SCRIPTS, "site.css"):
        shutil.copy(PACKAGE / "site" / name, out)
    shutil.copy(Path(app.srcdir) / "_scripts" / PLOTS, out)
    offline = "sphinx-mathjax-offline"
    mathjax = importlib.metadata.distribution(offline).locate_file(f"{offline}/static/mathjax")
    for folder in ("output/chtml/fonts/woff-v2", "input/tex/extensions"):  # fetched by the formulas that need them
        shutil.copytree(f"{mathjax}/{folder}", out / "mathjax" / folder, dirs_exist_ok=True)
    shutil.copy(f"{mathjax}/tex-chtml.js", out / "mathjax")


# ---------------------------------------------------------------- configuration


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:12]


def _configure(app: Sphinx, config: Config) -> None:
    """Before anything reads the configuration: the kernels' environment, the outputs' cache, the paper's claims."""
    os.environ |= {widgets.BUILDING: "1", "PLOTLY_RENDERER": "plotly_mimetype", "TQDM_DISABLE": "1"}
    # jupyter-book hands --toc on as it was given, Sphinx would look for it among the chapters
    config.external_toc_path = str(Path(config.external_toc_path).resolve())
    book = Path(app.srcdir)
    outputs = fingerprint(PACKAGE, book)[:12]
    shown = {*PACKAGE.rglob("*.js"), *(path for path in PACKAGE.glob("site/**/*.*") if path.suffix != ".pyc")}
    shape = _hash(b"".join(path.read_bytes() for path in sorted(shown)))
    config.fourierqk_sources = f"{outputs} {shape}"  # an "env" value: a new one makes Sphinx read all pages
    # jupyter-cache compares cells alone, and would keep the outputs of an older library
    cache, key = Path(app.outdir).parent / ".jupyter_cache", outputs
    for stale in cache.glob("*"):
        if stale.name != key:
            shutil.rmtree(stale, ignore_errors=True)
    config.nb_execution_cache_path = str(cache / key)
    config.myst_substitutions = config.myst_substitutions | stated(book / "claims.json")


# ---------------------------------------------------------------- pages


def _plain(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are written for people: |X| and x_ mean what they say, and are no marks of reStructuredText."""
    for i, line in enumerate(lines):
        if not line.startswith("    "):  # an indented block
            parts = re.split(r"(`+[^`]+`+)", line)  # every second part is code, and stays
            parts[::2] = (re.sub(r"\||_(?!\w)", r"\\\g<0>", part) for part in parts[::2])
            lines[i] = "".join(parts)


def setup(app: Sphinx) -> dict[str, object]:
    app.add_config_value("fourierqk_sources", "", "env", str)
    app.add_css_file("fourierqk/widgets.css")
    app.add_css_file("fourierqk/site.css")
    for script in SCRIPTS:
        app.add_js_file(f"fourierqk/{script}", loading_method="defer")
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _copy_assets)
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _plain)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
