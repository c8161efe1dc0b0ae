"""Write the built book as one PDF, with links, bookmarks and page numbers: book/_build/fourierqk.pdf.

    make pdf         # builds the book first; needs Chromium, or its address in FOURIERQK_BROWSER

The pages are put one after the other on a single page, in the order of the table of contents, and a browser prints it:
figures and formulas are those of the site.
"""
import os
import re
import shutil
import sys
from pathlib import Path

import yaml

__all__ = ["bound", "find_browser", "main", "order"]

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "book" / "_build"
# Of a page: what is its own. Nothing within data of figures and widgets is a link.
ARTICLE = re.compile(r'(?<=<article class="bd-article">).*?(?=</article>)', re.DOTALL)
DATA = re.compile(r"(<script.*?</script>)", re.DOTALL)
SCRIPT = re.compile(r'<script\b[^>]*\ssrc="[^"]*"[^>]*></script>')
DRAWN = "!document.querySelector(':is(.fqk-live, .fqk-figure):not([data-drawn])')"
TYPESET = "window.MathJax.startup.promise.then(() => true)"
FOOT = '<div style="width: 100%; text-align: center; font-size: 8px"><span class="pageNumber"></span></div>'


def find_browser() -> str | None:
    """The Chromium to print and to test with: FOURIERQK_BROWSER, or the first one installed."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    return os.environ.get("FOURIERQK_BROWSER") or next(filter(None, map(shutil.which, names)), None)


def order(toc: Path) -> list[str]:
    """The pages of the book, by the table of contents."""
    contents = yaml.safe_load(toc.read_text("utf8"))
    return [contents["root"], *(page["file"] for part in contents["parts"] for page in part["chapters"])]


def bound(pages: dict[str, str]) -> str:
    """Pages of the site, by name, as one page: the first, with the text of all and the scripts that any of them loads.

    Links between them stay within it.
    """
    sections = (f'<section id="{name}" class="fqk-page">{_within(pages, name)}</section>' for name in pages)
    first, whole = next(iter(pages.values())), "".join(sections)
    loaded = dict.fromkeys(tag for page in pages.values() for tag in SCRIPT.findall(page.partition("</head>")[0]))
    missing = "".join(tag for tag in loaded if tag not in first)
    return ARTICLE.sub(lambda _: whole, first.replace("</head>", f"{missing}</head>", 1), count=1)


def _within(pages: dict[str, str], name: str) -> str:
    """The text of a page, whose marks and links bear its name."""
    found = ARTICLE.search(pages[name])
    if found is None:
        raise SystemExit(f'{name}.html has no <article class="bd-article">, where tools/paper.py looks for its text')

    def link(m: re.Match) -> str:
        page, mark = m["page"] or name, m["mark"]
        return m[0] if page not in pages else f'href="#{page}--{mark}"' if mark else f'href="#{page}"'

    parts = DATA.split(found[0])
    for i in range(0, len(parts), 2):  # every second part is data
        marked = re.sub(r'(\s(?:id|for|aria-labelledby|aria-describedby)=")([^"]+)', rf"\g<1>{name}--\2", parts[i])
        parts[i] = re.sub(r'href="(?:(?P<page>[\w-]+)\.html)?(?:#(?P<mark>[^"]*))?"', link, marked)
    return "".join(parts)


def main(names: list[str]) -> int:
    """Print these pages of the built book, all if none is named; the exit code."""
    from playwright.sync_api import sync_playwright

    browser = find_browser()
    if browser is None:
        print("No Chromium was found to print with. Install one, or say where: make pdf FOURIERQK_BROWSER=/path/to/it")
        return 1
    site, out = BUILT / "html", BUILT / "fourierqk.pdf"
    pages = {name: (site / f"{name}.html").read_text("utf8") for name in names or order(ROOT / "_toc.yml")}
    whole = site / "_whole.html"  # beside the pages, whose pictures and scripts it shares
    whole.write_text(bound(pages), "utf8")
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, chromium_sandbox=os.geteuid() != 0)
            page = chromium.new_page(viewport={"width": 1000, "height": 1300}, color_scheme="light")
            page.set_default_timeout(600_000)
            page.goto(whole.as_uri())
            page.wait_for_function(DRAWN)
            page.evaluate(TYPESET)
            margin = {"top": "15mm", "bottom": "18mm", "left": "15mm", "right": "15mm"}
            page.pdf(path=out, format="A4", margin=margin, outline=True, tagged=True, display_header_footer=True,
                     header_template="<div></div>", footer_template=FOOT)  # fmt: skip
            chromium.close()
    finally:
        whole.unlink()
    print(f"The book is on paper. Open {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
