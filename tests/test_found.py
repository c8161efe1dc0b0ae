"""How the book is found and passed on: of each page a description and a card, of all a map, a feed and a search."""
import json
import re
import struct
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest
from catalogue import Catalogue
from conftest import SITE
from docutils import nodes
from docutils.core import publish_doctree
from playwright.sync_api import expect
from viewing import PATIENCE, opened, served

from fourierqk.site import published
from fourierqk.site.asking import SPOKEN, definitions, minutes, plain, running
from fourierqk.site.sharing import LENGTH, describe, feed, sitemap, versions

ROOT = Path(__file__).resolve().parents[1]
BOOK = Catalogue(ROOT)
BASE = published(BOOK.repository["url"])
ATOM, MAP = "{http://www.w3.org/2005/Atom}", "{http://www.sitemaps.org/schemas/sitemap/0.9}"
expect.set_options(timeout=PATIENCE)


# ---------------------------------------------------------------- one page, without a build


def page(*paragraphs: str) -> nodes.document:
    settings = {"report_level": 5, "doctitle_xform": False}
    return publish_doctree("Title\n=====\n\n" + "\n\n".join(paragraphs), settings_overrides=settings)


@pytest.mark.parametrize(
    ("paragraphs", "said"),
    [
        (["One *short*\nsentence."], "One short sentence."),
        ([".. note:: An aside.", "The first.", "The second."], "The first."),
        (["A sentence of many letters, " + "and more " * 10 + "here. " + "It fits. " * 20],
         "A sentence of many letters, " + "and more " * 10 + "here. " + "It fits. " * 8),
        (["word " * 100], "word " * 39 + "word…"),
        ([], ""),
    ],
)  # fmt: skip
def test_a_description_is_the_first_sentences_that_fit(paragraphs, said):
    assert describe(page(*paragraphs)) == said.strip() and len(said) <= LENGTH


@pytest.mark.parametrize(
    ("words", "lines", "time"), [(20, 0, 1), (1000, 0, 5), (1000, 24, 7), (2650, 0, 15), (9000, 0, 45)]
)
def test_reading_takes_time_by_words_and_lines(words, lines, time):
    code = "::\n\n" + "\n".join(["    x = 1"] * lines) if lines else ""
    assert minutes(page("word\n" * words, code)) == time


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.1, "under half a minute"), (29, "under half a minute"), (31, "under a minute"), (61, "about a minute"),
     (91, "about 2 minutes"), (400, "about 7 minutes")],
)  # fmt: skip
def test_running_takes_time_in_words(seconds, said):
    assert running(seconds) == said


def test_a_definition_is_told_in_letters():
    """Two terms may share one; what TeX it has is one that can be said."""
    text = "first\n  The meaning, in\n  two lines.\n\nother\n  Its own."
    tree = page(text)
    for term in tree.findall(nodes.term):
        term["ids"] = [f"term-{term.astext()}"]
    assert definitions(tree) == {"term-first": "The meaning, in two lines.", "term-other": "Its own."}
    assert plain(r"at least 1/4\pi, or \sqrt d") == "at least 1/4π, or √d"
    formulas = re.findall(r"\$([^$]+)\$", BOOK.sources["glossary"].split("```{glossary}")[1])
    assert formulas and not [tex for tex in formulas if "\\" in plain(tex)], f"TeX that no hint can show: see {SPOKEN}"


# ---------------------------------------------------------------- the whole book, without a build

LOG = """# Changelog

## [Unreleased]

### Added

- A <new> `thing`.

## [0.2.0] - 2027-01-02

Text.

## 0.1.0 - 2026-12-01

First.

[Unreleased]: https://example.org/compare
"""


def test_the_log_is_read_version_by_version():
    newest, *released = versions(LOG)
    assert (newest.name, newest.day) == ("Unreleased", None)
    assert [(v.name, v.day) for v in released] == [("0.2.0", "2027-01-02"), ("0.1.0", "2026-12-01")]
    assert "example.org" not in released[-1].text


def test_a_feed_has_what_atom_asks_for():
    changed = datetime(2027, 3, 4, 5, 6, 7, tzinfo=UTC)
    root = ET.fromstring(feed(LOG, "The <book>", "us", "https://me.github.io/it/", "https://x.org/LOG", changed))
    assert root.tag == f"{ATOM}feed" and root.find(f"{ATOM}title").text == "Changes of The <book>"
    assert root.find(f"{ATOM}updated").text == "2027-03-04T05:06:07Z"
    entries = root.findall(f"{ATOM}entry")
    assert [e.find(f"{ATOM}updated").text[:10] for e in entries] == ["2027-03-04", "2027-01-02", "2026-12-01"]
    ids = [element.text for element in root.iter(f"{ATOM}id")]
    assert len(ids) == len({*ids}) == 4 and all(i.startswith("https://me.github.io/it/") for i in ids)
    assert "<li>A &lt;new&gt; <code>thing</code>.</li>" in entries[0].find(f"{ATOM}content").text
    assert root.find(f"{ATOM}author/{ATOM}name").text == "us"


def test_a_map_lists_addresses():
    root = ET.fromstring(sitemap(["https://x.org/", "https://x.org/a.html?b=1&c=2"]))
    assert [loc.text for loc in root.iter(f"{MAP}loc")] == ["https://x.org/", "https://x.org/a.html?b=1&c=2"]


def test_the_card_is_of_the_size_that_is_told():
    head = (ROOT / "book" / "_static" / "card.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", head[16:]) == (1200, 630)


def test_a_chapter_needs_pages_that_are_there_and_before_it():
    order = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text("utf8"))
    asked = {doc: re.search(r"^needs: (.+)$", (BOOK.book / f"{doc}.md").read_text("utf8").split("\n---\n")[0], re.M)
             for doc in order}  # fmt: skip
    needed = {doc: found[1].split(", ") for doc, found in asked.items() if found}
    assert len(needed) > 15
    for doc, others in needed.items():
        assert all(order.index(other) < order.index(doc) for other in others), doc


# ---------------------------------------------------------------- the built book

DOCS = sorted(BOOK.sources)


def told(doc: str) -> dict[str, str]:
    """What the head of a page tells others."""
    head = (SITE / f"{doc}.html").read_text("utf8").split("</head>")[0]
    meta = re.findall(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)"', head)
    return {name: unescape(text) for name, text in meta}


def title(doc: str) -> str:
    return unescape(re.search(r"<title>(.*?)</title>", (SITE / f"{doc}.html").read_text("utf8"), re.DOTALL)[1])


@pytest.mark.parametrize("doc", DOCS)
def test_a_page_tells_what_it_is(site, doc):
    said = told(doc)
    assert 20 <= len(said["description"]) <= LENGTH and said["og:description"] == said["description"]
    assert not re.search(r"[$\\{}]", said["description"]), "a formula or a role: no one but the book can read it"
    assert said["og:title"] in title(doc) and said["twitter:card"] == "summary_large_image"
    assert said["og:image"] == f"{BASE}_static/card.png" and (site / said["og:image"].removeprefix(BASE)).exists()
    where = BASE if doc == "intro" else f"{BASE}{doc}.html"
    assert said["og:url"] == where and f'rel="canonical" href="{where}"' in (site / f"{doc}.html").read_text("utf8")


def test_titles_and_descriptions_tell_the_pages_apart(site):
    assert len({title(doc) for doc in DOCS}) == len({told(doc)["description"] for doc in DOCS}) == len(DOCS)
    name = BOOK.titles["intro"]
    assert title("intro") == name and all(title(doc).endswith(f" — {name}") for doc in DOCS if doc != "intro")


def test_the_first_page_stands_under_the_address_of_the_book(site):
    assert (site / "index.html").read_bytes() == (site / "intro.html").read_bytes()


def test_the_map_has_every_page(site):
    found = {loc.text for loc in ET.parse(site / "sitemap.xml").iter(f"{MAP}loc")}
    assert found == {told(doc)["og:url"] for doc in DOCS}


def test_the_feed_has_every_version_and_is_announced(site):
    entries = ET.parse(site / "changes.atom").findall(f"{ATOM}entry")
    headings = re.findall(r"^## \[?([\w.]+)", (ROOT / "CHANGELOG.md").read_text("utf8"), re.MULTILINE)
    assert [entry.find(f"{ATOM}title").text for entry in entries] == headings
    announced = f'type="application/atom+xml" title="Changes" href="{BASE}changes.atom"'
    assert announced in (site / "dft.html").read_text("utf8")


@pytest.mark.parametrize("doc", DOCS)
def test_a_page_says_what_it_asks_of_its_reader(site, doc):
    text = (site / f"{doc}.html").read_text("utf8")
    said = re.search(r'<h1>.*?</h1>\s*<div class="fqk-asks[^>]*>\s*<p>(.*?)</p>', text, re.DOTALL)[1]
    assert re.match(r"To look things up\.|About \d+ minutes? to read", said)
    assert ("Its code ran in" in said) == (doc in BOOK.chapters)


def test_the_first_page_has_a_path_for_each_reader(site):
    text = (site / "intro.html").read_text("utf8").split('id="a-map-of-the-book"')[1].split("</section>")[0]
    for reader in ("engineers", "sceptics", "learners"):
        path = text.split(f"For {reader}")[1].split("</li>")[0]
        assert len(re.findall(r'href="[\w-]+\.html"', path)) >= 4


def test_no_page_is_there_for_an_address_that_leads_nowhere(site, browser, tmp_path):
    """As GitHub Pages serves it: below the name of the repository, and whatever the folder that was asked for."""
    below = BASE.split("/", 3)[3].strip("/")
    (tmp_path / below).symlink_to(site)
    with served(tmp_path) as where, opened(browser) as view:
        (tmp_path / "deep").symlink_to(site)  # a folder that is not the book's: its own paths would find nothing
        view.page.goto(f"{where}/deep/404.html")
        expect(view.page.locator("h1").last).to_have_text(re.compile("There is no such page"))
        view.page.locator("article").get_by_role("link", name="the contents").click()
        expect(view.page).to_have_url(f"{where}/{below}/intro.html")
        assert view.faults == []


@pytest.mark.parametrize("query", ["future", "filter", "audit", "entropy floor"])
def test_the_search_ranks_chapters_before_symbols(site, browser, query):
    with served(site) as where, opened(browser) as view:
        view.page.goto(f"{where}/search.html?q={query}")
        view.page.locator("#search-results li a").first.wait_for()
        expect(view.page.locator(".search-summary").first).to_contain_text(re.compile("found|matching"))
        links = view.page.locator("#search-results li a").evaluate_all("all => all.map((a) => a.href)")
        symbols = ["reference.html" in link for link in links]
        assert len(links) > 3 and symbols == sorted(symbols) and not symbols[0]
        # Sphinx looks for the text below `#module-a.b` by a selector that means another thing, and says so
        assert [fault for fault in view.faults if "Anchored content block not found" not in fault] == []


def test_a_term_shows_its_definition(site, browser):
    """Under the pointer, and for the keyboard too."""
    said = re.search(r"^lag\n  (.+)$", BOOK.sources["glossary"], re.MULTILINE)[1]
    with served(site) as where, opened(browser) as view:
        view.page.goto(f"{where}/dft.html")
        term = view.page.locator("a[href='glossary.html#term-lag']").first
        hint = view.page.locator(".tooltip")
        term.hover()
        expect(hint).to_contain_text(said)
        view.page.mouse.move(0, 0)
        expect(hint).to_have_count(0)
        term.focus()
        expect(hint).to_contain_text(said)
        assert view.faults == []


def test_every_term_of_a_page_has_its_definition(site):
    link = re.compile(r'<a class="reference internal" href="glossary\.html#term-[^>]*>')
    for doc in DOCS:
        assert all(' title="' in found for found in link.findall((site / f"{doc}.html").read_text("utf8"))), doc


# ---------------------------------------------------------------- light

FIRST, CHAPTER = 1_000_000, 2_500_000  # bytes, before any plot is drawn


def loads(text: str) -> set[str]:
    """What a page names to be loaded as it opens: scripts, styles, pictures."""
    scripts = re.findall(r'<(?:script|img)[^>]*\ssrc="([^"]+)"', text)
    styles = re.findall(r'<link (?=[^>]*rel="(?:stylesheet|icon|preload)")[^>]*href="([^"]+)"', text)
    return {address.split("?")[0] for address in [*scripts, *styles] if not address.startswith("data:")}


def weight(doc: str) -> int:
    """Bytes of a page with the scripts of its widgets; without the fonts of its formulas, and without plotly.js."""
    text = (SITE / f"{doc}.html").read_text("utf8")
    widgets = {f"_static/fourierqk/{name}" for name in re.findall(r'data-widget="([\w.]+)\?', text)}
    return len(text.encode()) + sum((SITE / address).stat().st_size for address in loads(text) | widgets)


@pytest.mark.parametrize("doc", DOCS)
def test_a_page_is_light(site, doc):
    assert weight(doc) <= (FIRST if doc == "intro" else CHAPTER)


def test_light_is_what_a_browser_loads(site, browser):
    """The first page, and the heaviest chapter with all that it fetches later: fonts, widgets, plots apart."""
    chapters = [doc for doc in BOOK.chapters if doc != "intro"]
    with served(site) as where:
        for doc, limit in ("intro", FIRST), (max(chapters, key=weight), CHAPTER):
            with opened(browser) as view:
                view.page.goto(f"{where}/{doc}.html", wait_until="networkidle")
                for island in view.page.locator(".fqk-live, .fqk-figure").all():
                    island.scroll_into_view_if_needed()
                    island.and_(view.page.locator("[data-drawn]")).wait_for()
                sizes = dict(view.page.evaluate(SIZES))
                plots = sum(size for name, size in sizes.items() if "plotly" in name)
                assert weight(doc) <= sum(sizes.values()) - plots <= limit, sizes


SIZES = """["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
    .map((entry) => [entry.name, entry.decodedBodySize])"""


@pytest.mark.parametrize("doc", DOCS)
def test_mathjax_is_there_for_formulas_alone(site, doc):
    text = (site / f"{doc}.html").read_text("utf8")
    assert any("mathjax" in address for address in loads(text)) == bool(re.search(r'class="(amsmath )?math', text))


def test_no_page_loads_the_scripts_of_icons_or_of_the_search(site):
    for path in site.glob("*.html"):
        names = {Path(address).name for address in loads(path.read_text("utf8"))}
        assert "fontawesome.js" not in names, path.name
        assert ("searchindex.js" in names) == (path.name == "search.html"), path.name


def test_plotly_is_there_once_and_of_the_version_that_drew(site):
    """The bundle for plots on two axes. `npm pack plotly.js-cartesian-dist-min@VERSION` brings another."""
    import plotly

    there = [path for path in site.rglob("*plotly*") if path.is_file()]
    assert [path.name for path in there] == ["plotly-cartesian.min.js"] and there[0].stat().st_size < 1_600_000
    whole = (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text("utf8")[:200]
    version = r"plotly\.js (?:\(cartesian - minified\) )?v([\d.]+)"
    assert re.search(version, there[0].read_text("utf8")[:200])[1] == re.search(version, whole)[1]


def test_the_bundle_draws_every_plot(site):
    drawn = {"scatter", "bar", "box", "heatmap", "histogram", "contour", "image", "pie", "violin"}
    figure = re.compile(r'class="fqk-figure"[^>]*><script type="application/json">(.*?)</script>')
    for path in site.glob("*.html"):
        figures = [json.loads(found) for found in figure.findall(path.read_text("utf8"))]
        assert {trace.get("type", "scatter") for each in figures for trace in each["data"]} <= drawn, path.name


def test_every_icon_of_the_pages_is_drawn(site):
    drawn = {*re.findall(r"^\.fa-([\w-]+)::before", (site / "_static/fourierqk/icons.css").read_text("utf8"), re.M)}
    icon = re.compile(r'<(?:i|span) class="([^"]*\bfa-[^"]*)"')
    for path in site.glob("*.html"):
        words = {word for found in icon.findall(path.read_text("utf8")) for word in found.split()}
        named = {word.removeprefix("fa-") for word in words if word.startswith("fa-")}
        assert named - {"solid", "lg", "brands"} <= drawn, path.name
