"""Figures as a page draws them: on white and dark, on a phone and on paper. The page holds one of each kind."""
import json
import shutil
from types import SimpleNamespace

import pytest
from looks import COLLISIONS
from test_figures import FIGURES, contrast
from viewing import opened, served

from fourierqk.figures import draw
from fourierqk.site.pages import PACKAGE, PLOTLY, PLOTS, PlotlyFigure

DRAWN = "document.querySelectorAll('[data-drawn]').length === document.querySelectorAll('.fqk-figure').length"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def island(name: str) -> str:
    output = SimpleNamespace(mime_type=PLOTLY, content=json.loads(FIGURES[name]().to_json()))
    renderer = SimpleNamespace(document={"source": name})
    return PlotlyFigure.handle_mime(renderer, output, inline=False)[0].astext()


@pytest.fixture(scope="module")
def page_address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    for source in (PACKAGE / "site" / "site.js", PACKAGE / "site" / "site.css",
                   PACKAGE.parent / "book" / "_scripts" / PLOTS):  # fmt: skip
        shutil.copy(source, folder)
    (folder / "index.html").write_text(f"""<!doctype html><html data-theme=light><meta charset=utf-8><title>t</title>
        <meta name=viewport content=width=device-width><link rel=icon href=data:,><link rel=stylesheet href=site.css>
        <style>body {{ margin: 16px; font: 16px sans-serif; color: #323232 }} main {{ max-width: 752px }}
        [data-theme=dark] body {{ color: #ced6dd; background: #121212 }}</style>
        <main>{"".join(map(island, FIGURES))}</main><script src=site.js></script>""")
    with served(folder) as where:
        yield f"{where}/index.html"


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_no_words_collide_and_none_are_cut(page_address, browser, options):
    with opened(browser, **options) as view:
        view.page.goto(page_address)
        view.page.wait_for_function(DRAWN)  # without scrolling: what waits for the reader could not be printed
        assert view.page.evaluate(COLLISIONS) == []
        assert view.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert view.faults == []


PANELS = """(words) => {
  const named = (figure) => figure.getAttribute("aria-label").includes(words);
  const figure = [...document.querySelectorAll(".fqk-figure")].find(named);
  const layout = figure.querySelector(".js-plotly-plot")._fullLayout;
  const axes = Object.entries(layout).filter(([key]) => /^[xy]axis[0-9]*$/.test(key));
  return { domains: Object.fromEntries(axes.map(([key, axis]) => [key, axis.domain])), legend: layout.showlegend };
}"""


def test_a_phone_has_one_panel_a_row_and_a_desk_several(page_address, browser):
    for options, full in (({}, False), (PHONE, True)):
        with opened(browser, **options) as view:
            view.page.goto(page_address)
            view.page.wait_for_function(DRAWN)
            for words in ("Loss by position, a panel a system", "of a DFT as"):
                domains = view.page.evaluate(PANELS, words)["domains"]
                assert ([domains["xaxis"], domains["xaxis2"]] == [[0, 1], [0, 1]]) == full
                assert (domains["yaxis2"][1] < domains["yaxis"][0]) == full
            assert view.page.evaluate(PANELS, "Loss over training")["legend"] == full  # names at the ends have no room


STROKES = """() => [...document.querySelectorAll(".fqk-figure .scatterlayer path.js-line")].map((line) =>
    "#" + getComputedStyle(line).stroke.match(/[0-9]+/g).slice(0, 3)
        .map((v) => (+v).toString(16).padStart(2, "0")).join(""))"""


def test_lines_are_lighter_on_dark(page_address, browser):
    with opened(browser) as view:
        view.page.goto(page_address)
        view.page.wait_for_function(DRAWN)
        joins = {"#808080"}  # between two marks, which say all
        light, dark = draw.SHADES["light"], draw.SHADES["dark"]
        before = {*view.page.evaluate(STROKES)} - joins
        meant = {dark[c] if c in dark else dark[draw.TEXT] for c in before}  # on white words have a shade of their own
        assert len(before) > 5 and light[draw.TEXT] in before and before <= {*dark} | {*light.values()}
        view.page.evaluate("document.documentElement.dataset.theme = 'dark'")
        view.page.wait_for_function(f"before => !({STROKES})().some((line) => before.includes(line))", arg=[*before])
        after = {*view.page.evaluate(STROKES)} - joins
        assert after == meant and all(contrast(colour, "#121212") >= 4.5 for colour in after)
        assert view.faults == []


def test_figures_are_whole_on_paper(page_address, browser):
    """On a sheet narrower than the screen every picture shrinks as one: its layers keep to its width."""
    with opened(browser) as view:
        view.page.goto(page_address)
        view.page.wait_for_function(DRAWN)
        view.page.evaluate("addEventListener('resize', (e) => e.stopImmediatePropagation(), true)")  # nobody redraws
        view.page.emulate_media(media="print")
        view.page.add_style_tag(content="main { max-width: 500px !important }")
        shares = view.page.evaluate("""() => [...document.querySelectorAll(".fqk-figure")].flatMap((figure) => {
            const { width, height } = figure.getBoundingClientRect();
            return [...figure.querySelectorAll(".main-svg")].map((svg) => svg.getBoundingClientRect())
                .map((layer) => [layer.width / width, layer.height / height]);
        })""")
        assert len(shares) >= len(FIGURES) and all(0.95 < share < 1.05 for layer in shares for share in layer)
