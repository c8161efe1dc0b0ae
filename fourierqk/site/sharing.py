"""What the web is told of the book: a Sphinx extension.

Of each page a description, its address and a card for those who pass it on; of the book a map for search engines, a
feed of its changes, and a page for addresses that lead nowhere.
"""
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx.application import Sphinx
from sphinx.config import Config

from fourierqk.site.addresses import published

__all__ = ["Version", "describe", "feed", "setup", "sitemap", "versions"]

CARD = "_static/card.png"  # 1200 by 630: made by tools/card.py
SAYS = "Three models predict a line of text. Edit a letter: in fourier-qk, predictions before it change."
FEED = "changes.atom"
LENGTH = 200  # characters of a description; what is longer is cut where it is shown
NOWHERE = """<h1>There is no such page</h1>
<p>The address leads nowhere: the page may have been renamed. All chapters are in <a href="{root}">the contents</a>, and
<a href="search.html">the search</a> finds what they say.</p>"""


# ---------------------------------------------------------------- a page


def describe(doctree: nodes.document) -> str:
    """The first paragraph of a page, as many of its sentences as fit; empty if it has none."""
    first = next((p for p in doctree.findall(nodes.paragraph) if isinstance(p.parent, nodes.section)), None)
    text = " ".join(first.astext().split()) if first is not None else ""
    if len(text) <= LENGTH:
        return text
    sentences = re.match(rf"(.{{60,{LENGTH - 1}}}[.?!])\s", text)
    return sentences[1] if sentences else text[: text.rindex(" ", 0, LENGTH)] + "…"


def _tell(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """The lines of the head by which others show a page."""
    base, root = app.config.html_baseurl, app.config.root_doc
    head = [f'<link rel="alternate" type="application/atom+xml" title="Changes" href="{base}{FEED}"/>']
    if page == "404":  # it is shown in whatever folder somebody looked
        head = [f'<base href="{urlsplit(base).path}"/>', '<meta name="robots" content="noindex"/>']
    if page == root:
        context["docstitle"] = None  # the title would be there twice
    if doctree is not None:
        title = re.sub(r"<[^>]*>", "", context["title"])  # it is HTML, and escaped
        told = {
            "og:type": "book" if page == root else "article", "og:site_name": escape(app.config.html_title),
            "og:title": title, "og:description": escape(describe(doctree)), "og:url": base + _file(app, page),
            "og:image": base + CARD, "og:image:alt": SAYS, "og:image:width": "1200", "og:image:height": "630",
        }  # fmt: skip
        head += [f'<meta property="{name}" content="{text}"/>' for name, text in told.items()]
        head += ['<meta name="twitter:card" content="summary_large_image"/>',
                 f'<meta name="description" content="{told["og:description"]}"/>']  # fmt: skip
        context["pageurl"] = told["og:url"]  # the theme makes the canonical address of it
    context["metatags"] = "\n".join([*head, context.get("metatags", "")])


def _file(app: Sphinx, page: str) -> str:
    """Where a page is below the address of the book: the first one stands for all."""
    return "" if page == app.config.root_doc else f"{page}.html"


# ---------------------------------------------------------------- the book


def sitemap(addresses: list[str]) -> str:
    """A map of the site in the form that search engines read."""
    root = ET.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for address in addresses:
        ET.SubElement(ET.SubElement(root, "url"), "loc").text = address
    return _document(root)


class Version(NamedTuple):
    """A part of CHANGELOG.md."""

    name: str
    day: str | None  # None: not released
    text: str  # Markdown


def versions(log: str) -> Iterator[Version]:
    """What a log in the form of Keep a Changelog says of each version, the newest first."""
    for part in re.split(r"^## ", log, flags=re.MULTILINE)[1:]:
        heading, text = part.split("\n", 1)
        name, _, day = heading.replace("[", "").replace("]", "").partition(" - ")
        yield Version(name.strip(), day.strip() or None, re.sub(r"^\[[^\]]+\]: .*\n?", "", text, flags=re.MULTILINE))


def feed(log: str, title: str, author: str, base: str, source: str, changed: datetime) -> str:
    """An Atom feed of the versions. What has no day yet was changed when the log was."""
    root = ET.Element("feed", xmlns="http://www.w3.org/2005/Atom")
    _told(root, title=f"Changes of {title}", id=base + FEED)
    ET.SubElement(root, "link", rel="self", href=base + FEED)
    ET.SubElement(root, "link", href=base)
    _told(ET.SubElement(root, "author"), name=author)
    markdown = MarkdownIt(options_update={"html": False})
    entries = [(version, f"{version.day}T00:00:00Z" if version.day else f"{changed:%Y-%m-%dT%H:%M:%SZ}")
               for version in versions(log)]  # fmt: skip
    _told(root, updated=max(when for _, when in entries))
    for version, when in entries:
        entry = ET.SubElement(root, "entry")
        _told(entry, title=version.name, id=f"{base}{FEED}#{version.name}", updated=when)
        ET.SubElement(entry, "link", href=source)
        ET.SubElement(entry, "content", type="html").text = markdown.render(version.text)
    return _document(root)


def _told(parent: ET.Element, **texts: str) -> None:
    for name, text in texts.items():
        ET.SubElement(parent, name).text = text


def _document(root: ET.Element) -> str:
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _nowhere(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    body = NOWHERE.format(root=f"{app.config.root_doc}.html")
    yield "404", {"title": "There is no such page", "body": body}, "page.html"


def _publish(app: Sphinx, fault: Exception | None) -> None:
    """Map and feed; and the first page under the address of the book too, where others look for its card."""
    if fault or app.builder.format != "html":
        return
    out, base = Path(app.outdir), app.config.html_baseurl
    addresses = [base + _file(app, page) for page in sorted(app.env.found_docs)]
    (out / "sitemap.xml").write_text(sitemap(sorted(addresses)), "utf8")
    log = Path(app.srcdir).parent / "CHANGELOG.md"
    theme = app.config.html_theme_options
    source = f"{theme['repository_url']}/blob/{theme['repository_branch']}/{log.name}"
    changed = datetime.fromtimestamp(log.stat().st_mtime, UTC)
    told = app.config.html_title, app.config.author, base, source, changed
    (out / FEED).write_text(feed(log.read_text("utf8"), *told), "utf8")
    shutil.copyfile(out / f"{app.config.root_doc}.html", out / "index.html")


def _configure(app: Sphinx, config: Config) -> None:
    config.html_baseurl = config.html_baseurl or published(config.html_theme_options["repository_url"])


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("config-inited", _configure)
    app.connect("html-collect-pages", _nowhere)
    app.connect("html-page-context", _tell, priority=940)
    app.connect("build-finished", _publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
