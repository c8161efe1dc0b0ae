"""The built book, as a reader's browser sees it, with no network behind it."""
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import SITE
from looks import CUT_CODE, FAULTS
from playwright.sync_api import expect
from viewing import PATIENCE, context, opened, served, tab

import fourierqk.site.pages
from fourierqk.site.pages import PLOTLY, PlotlyFigure
from fourierqk.widgets import WIDGETS

# index.html is the first page once more, and 404.html is made for another folder: tests/test_found.py
PAGES = sorted(p.name for p in SITE.glob("*.html") if p.name not in {"index.html", "404.html"})
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
SLIDER = "input[type=range]"
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def address(site):
    with served(site) as where:
        yield where


@pytest.fixture(scope="module")
def desk(browser):
    with context(browser) as found:
        yield found


@pytest.fixture(scope="module")
def phone(browser):
    with context(browser, **PHONE) as found:
        yield found


def visit(page, url: str) -> None:
    """Open a page, predict what is asked, and scroll through it, so that every lazy figure is drawn."""
    page.goto(url)
    for first in page.locator(".fqk-choices label:first-child input").all():
        first.check()
    for island in page.locator(".fqk-live, .fqk-figure").all():
        island.scroll_into_view_if_needed()
        island.and_(page.locator("[data-drawn]")).wait_for()
    page.evaluate("window.MathJax && MathJax.startup && MathJax.startup.promise")
    settle(page)


def settle(page) -> None:
    """Let two frames pass: what the last change asked for is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_there_is_a_book(site):
    assert {"intro.html", "search.html"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_page(address, desk, name):
    """By day, then by night as the reader's system asks: the elements are the same, and colours alone are new."""
    with tab(desk) as view:
        visit(view.page, f"{address}/{name}")
        assert view.page.evaluate(THEME) == "light" and sideways(view.page) <= 0
        assert broken(view.page) == {}
        assert not view.page.evaluate(MUTE), "figures or images without a text for those who cannot see them"
        assert not view.page.locator(".MathJax_Error, mjx-merror").count(), "a formula that MathJax cannot read"
        assert not (wrong := accessibility(view.page)), wrong
        view.page.add_style_tag(content="* { transition: none !important }")  # colours change at once, not in a while
        view.page.emulate_media(color_scheme="dark")
        view.page.wait_for_function(f"{THEME} === 'dark'")
        settle(view.page)
        assert not (wrong := accessibility(view.page, "color-contrast")), wrong
        assert view.faults == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_no_checker_and_says_no_such_thing(site, name):
    text = (site / name).read_text("utf8")
    assert "No answer yet: replace the dots" not in text
    assert "#scrollTo=None" not in text, "the notebook lacks an exercise of its page: run `make notebooks`"


@pytest.mark.parametrize("name", PAGES)
def test_page_on_a_phone(address, phone, name):
    with tab(phone) as view:
        visit(view.page, f"{address}/{name}")
        assert sideways(view.page) <= 0 and broken(view.page) == {} and view.faults == []


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_is_drawn_before_print(address, desk, name):
    """The reader has not scrolled, and a browser prints without waiting for anything."""
    with tab(desk) as view:
        view.page.goto(f"{address}/{name}")
        view.page.wait_for_function("!document.querySelector(':is(.fqk-live, .fqk-figure):not([data-drawn])')")
        view.page.emulate_media(media="print")
        assert view.page.evaluate(CUT_CODE) == [] and view.faults == []


def test_the_main_control_stays_in_sight_on_a_phone(address, phone):
    """However far down its place is: a box that scrolls around the widget would keep it there."""
    with tab(phone) as view:
        visit(view.page, f"{address}/filter-design.html")
        view.page.locator(".fqk-live").first.evaluate("node => node.scrollIntoView()")
        settle(view.page)
        box = view.page.locator(".fqk-main").first.bounding_box()
        assert box["y"] + box["height"] <= PHONE["viewport"]["height"] + 1


def test_a_page_without_javascript(address, browser):
    """A widget's place is as high as the picture in it, and every prediction and answer is open."""
    with opened(browser, java_script_enabled=False) as view:
        view.page.goto(f"{address}/filter-design.html")
        place = view.page.locator(".fqk-live").first
        pictures = [svg.bounding_box() for svg in place.locator("svg.fqk-still").all()]
        assert pictures and all(box["height"] > 100 for box in pictures)
        assert place.bounding_box()["height"] < sum(box["height"] for box in pictures) + 120
        assert view.page.locator(".fqk-veiled").count() == 0


def test_a_page_opened_at_night(address, browser):
    """Its figures are drawn in the night's colours, without a change of theme."""
    with opened(browser, color_scheme="dark") as view:
        visit(view.page, f"{address}/{next(page_with_figures())}")
        assert view.page.evaluate(THEME) == "dark"
        assert not (wrong := accessibility(view.page, "color-contrast")), wrong
        assert view.faults == []


THEME = "document.documentElement.dataset.theme"


def page_with_figures() -> Iterator[str]:
    return (p for p in PAGES if 'class="fqk-figure"' in (SITE / p).read_text("utf8"))


def broken(page) -> dict[str, list]:
    """What a reader would call broken, by what it is."""
    return {fault: found for fault, script in FAULTS.items() if (found := page.evaluate(script))}


def sideways(page) -> int:
    """How many pixels a page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def accessibility(page, *rules: str) -> list[tuple]:
    """What axe finds wrong with a page, by these rules or by all: rule, what it asks, elements."""
    options = {"resultTypes": ["violations"], "preload": False}  # no rule of these reads style sheets
    options |= {"runOnly": list(rules)} if rules else {"rules": {"label-content-name-mismatch": {"enabled": True}}}
    found = Axe().run(page, options=options).response["violations"]
    return [(v["id"], v["help"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found]


# Images, plotly figures and canvases that say nothing (an empty alt is allowed where the theme says the name in words).
MUTE = """[...document.querySelectorAll("main img, .fqk-figure, canvas")]
    .filter((n) => !(n.getAttribute("alt") || n.getAttribute("aria-label") || "").trim())
    .map((n) => n.outerHTML.slice(0, 200))"""


def test_widget_answers_the_arrow_keys(address, browser):
    """Keys move the frequency, the picture, its description and the sentence under it."""
    with opened(browser) as view:
        visit(view.page, f"{address}/filter-design.html")
        widget = view.page.locator(".fqk-widget").first
        slider, canvas = widget.locator(SLIDER).first, widget.locator("canvas").first
        said, shown = canvas.get_attribute("aria-label"), canvas.evaluate("c => c.toDataURL()")
        before = slider.get_attribute("aria-valuetext")
        slider.focus()
        for _ in range(10):
            view.page.keyboard.press("ArrowRight")
        expect(slider).not_to_have_attribute("aria-valuetext", before)
        expect(canvas).not_to_have_attribute("aria-label", said)
        assert canvas.evaluate("c => c.toDataURL()") != shown
        frequency = float(widget.locator("input[type=number]").first.input_value())
        expect(widget.locator("[role=status]")).to_contain_text(f"{frequency:.3g}")
        assert view.faults == []


def test_widget_is_redrawn_for_the_other_theme(address, browser):
    with opened(browser) as view:
        visit(view.page, f"{address}/filter-design.html")
        pixels = "document.querySelector('.fqk-widget canvas').toDataURL()"
        light = view.page.evaluate(pixels)
        view.page.evaluate("document.documentElement.dataset.theme = 'dark'")
        view.page.wait_for_function(f"light => {pixels} !== light", arg=light)


def test_figures_follow_the_theme(address, browser):
    colour = "getComputedStyle(document.querySelector('.fqk-figure .xtick text')).fill"
    with opened(browser) as view:
        visit(view.page, f"{address}/{next(page_with_figures())}")
        light = view.page.evaluate(colour)
        view.page.evaluate("document.documentElement.dataset.theme = 'dark'")
        view.page.wait_for_function(f"light => {colour} !== light", arg=light)


def test_reads_from_disk(site, browser):
    """The unpacked zip, opened with a double click: no server, no network."""
    with opened(browser) as view:
        visit(view.page, (SITE / "intro.html").as_uri())
        assert view.page.locator(".fqk-widget .fqk-flip").count() >= 3
        assert view.faults == []


def test_search_finds_the_attention_chapter(address, browser):
    with opened(browser) as view:
        view.page.goto(f"{address}/search.html?q=frequency")
        view.page.locator("#search-results li a").first.wait_for()
        assert view.faults == []


@pytest.mark.parametrize("name", PAGES)
def test_page_source(site, name):
    """No address of another host is loaded, and every figure is data: plotly.js is in the site once."""
    text = (site / name).read_text("utf8")
    sources = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]*)', text)
    links = re.findall(r'<link rel="(?:stylesheet|preload|icon)"[^>]*href="([^"]*)', text)
    assert sources and links and not [a for a in sources + links if re.match(r"(https?:)?//", a)]
    assert len(text) < 3_000_000, "a page of several megabytes: too much data in its figures"


def test_every_chapter_opens_in_colab(site):
    """The Colab button leads to the notebook beside the chapter, in the repository that _config.yml names."""
    root = Path(__file__).parent.parent
    repository = re.search(r"url: https://github.com/(\S+)", (root / "_config.yml").read_text("utf8"))[1]
    for chapter in sorted((root / "book").glob("*.md")):
        page = SITE / f"{chapter.stem}.html"
        if page.exists() and "{code-cell}" in chapter.read_text("utf8"):
            link = f"https://colab.research.google.com/github/{repository}/blob/main/book/{chapter.stem}.ipynb"
            assert link in page.read_text("utf8"), chapter.name


# ---------------------------------------------------------------- the extension, without a build


class Output:
    """What myst-nb hands to a MIME plugin."""

    mime_type = PLOTLY

    def __init__(self, **layout: object) -> None:
        self.content = {"data": [{"y": [1, 2], "name": "</script>"}], "layout": layout}


def render(output: Output) -> str:
    renderer = SimpleNamespace(document={"source": "chapter.md"})
    return PlotlyFigure.handle_mime(renderer, output, inline=False)[0].astext()


def test_a_figure_speaks(monkeypatch):
    said = []
    monkeypatch.setattr(fourierqk.site.pages.log, "warning", lambda text, location: said.append((text, location)))
    text = render(Output(meta={"alt": 'A "band" & more'}, template={"layout": {"colorway": ["red"]}}, height=300))
    assert 'role="img"' in text and "A &quot;band&quot; &amp; more" in text and text.count("</script>") == 1
    held = json.loads(re.search(r'<script type="application/json">(.*)</script>', text)[1])
    assert held["data"][0]["name"] == "</script>" and held["colorway"] == ["red"] and "template" not in held["layout"]
    assert said == []
    for layout in ({}, {"meta": None}, {"meta": {}}, {"meta": {"alt": ""}}):
        render(Output(**layout))
        assert "alt" in said[-1][0] and said[-1][1] == "chapter.md"
    assert len(said) == 4


class Sources:
    """A package and a book, a file of each kind that pages are made from, and what the extension makes of them."""

    FILES = {"library": "package/filters.py", "record": "records/study/base-dot-s0.json", "claims": "claims.json",
             "script": "package/widgets/ring.js", "extension": "package/site/pages.py",
             "template": "package/site/templates/layout.html"}  # fmt: skip

    def __init__(self, folder: Path) -> None:
        self.folder, self.package = folder, folder / "package"
        for name in self.FILES.values():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text('{"loss": {"text": "1.5 nats", "source": "the paper"}}')

    def change(self, kind: str) -> None:
        """Let a file say something else."""
        (self.folder / self.FILES[kind]).write_text('{"loss": {"text": "1.6 nats", "source": "the paper"}}')

    def configured(self) -> SimpleNamespace:
        """Sphinx's configuration, as far as the extension writes it; the cache folder is there, as after a build."""
        app = SimpleNamespace(outdir=self.folder / "_build" / "html", srcdir=self.folder)
        config = SimpleNamespace(external_toc_path="_toc.yml", myst_substitutions={})
        fourierqk.site.pages._configure(app, config)
        Path(config.nb_execution_cache_path).mkdir(parents=True, exist_ok=True)
        return config


@pytest.fixture
def sources(tmp_path, monkeypatch):
    made = Sources(tmp_path)
    monkeypatch.setattr(fourierqk.site.pages, "PACKAGE", made.package)
    for name in ("FOURIERQK_BOOK", "PLOTLY_RENDERER", "TQDM_DISABLE"):
        monkeypatch.setenv(name, "")  # so that what _configure sets is undone
    return made


@pytest.mark.parametrize("kind", Sources.FILES)
def test_what_pages_are_made_from_decides_what_is_read_and_executed_again(sources, kind):
    """The cache of executed cells lies in a folder named by all that outputs are made from, and older ones go."""
    first = sources.configured()
    assert vars(sources.configured()) == vars(first)
    sources.change(kind)
    second = sources.configured()
    assert second.fourierqk_sources != first.fourierqk_sources
    before, after = (Path(config.nb_execution_cache_path) for config in (first, second))
    assert after.exists()
    if kind in {"script", "extension", "template"}:  # what is made of outputs: none of them changes
        assert after == before
    else:
        assert after != before and not before.exists()


def test_claims_are_substitutions(sources):
    assert sources.configured().myst_substitutions == {"loss": "1.5 nats"}
    sources.change("claims")
    assert sources.configured().myst_substitutions == {"loss": "1.6 nats"}


@pytest.mark.parametrize("name", WIDGETS.values())
def test_a_widget_is_a_classic_script_too(name):
    """Modules do not load from file://, so the site's copy has neither import nor export."""
    text = fourierqk.site.pages._classic(name)
    assert not re.search(r"^\s*(import|export)\b", text, re.M)
    assert f'["{name}"] = {{' in text


def test_every_widget_is_in_the_site():
    scripts = {p.stem for p in (Path(fourierqk.site.pages.PACKAGE) / "widgets").glob("*.js")}
    assert scripts - {"common", "readers", "sound"} == {*WIDGETS.values()}
