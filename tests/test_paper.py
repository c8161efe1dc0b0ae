"""The book on paper: pages bound into one, with their links, and printed."""
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import paper
import pytest

ROOT = Path(__file__).resolve().parents[1]


def page(text: str) -> str:
    return f'<html><head></head><body><article class="bd-article">{text}</article></body></html>'


def test_pages_are_bound_in_order_and_links_stay_within():
    dft = page('<h1 id="a">A</h1><a href="#a">up</a><a href="fnet.html">on</a><a href="fnet.html#b">there</a>'
               '<a href="https://example.org/fnet.html#b">out</a><a href="other.html#b">not a chapter</a>')  # fmt: skip
    whole = paper.bound({"dft": dft, "fnet": page('<h1 id="b">B</h1><a href="dft.html#a">back</a>')})
    assert whole.count("<article") == 1 and whole.index(">A<") < whole.index(">B<")
    assert re.findall(r' id="([^"]+)"', whole) == ["dft", "dft--a", "fnet", "fnet--b"]
    assert re.findall(r'href="([^"]+)"', whole) == [
        "#dft--a", "#fnet", "#fnet--b", "https://example.org/fnet.html#b", "other.html#b", "#dft--a",
    ]  # fmt: skip


def test_the_whole_loads_what_any_page_loads():
    """The first page has no formulas, and does not load what sets them."""
    common, maths = '<script src="site.js"></script>', '<script async="async" src="mathjax.js"></script>'
    heads = {"intro": common, "dft": common + maths, "fnet": maths}
    whole = paper.bound({name: page("A").replace("</head>", f"{head}</head>") for name, head in heads.items()})
    assert re.findall(r"<script.*?</script>", whole.partition("</head>")[0]) == [common, maths]


def test_the_data_of_figures_is_left_alone():
    data = '<script type="application/json">{"text": "<a href=\"#a\" id=\"x\">"}</script>'
    assert data in paper.bound({"dft": page(f'<p id="x">{data}</p>')})


def test_a_page_without_a_text_is_named():
    with pytest.raises(SystemExit, match="fnet.html has no <article"):
        paper.bound({"dft": page("A"), "fnet": "<html></html>"})


def test_the_order_is_that_of_the_contents():
    pages = paper.order(ROOT / "_toc.yml")
    assert pages[:2] == ["intro", "dft"] and len(pages) == len({*pages}) > 20


def test_pages_are_printed_whole(site, browser):
    """Each on sheets of its own, with bookmarks and links, and no temporary page is left behind."""
    subprocess.run([sys.executable, ROOT / "tools" / "paper.py", "intro", "dft", "seeds-and-windows"], check=True)
    assert not (site / "_whole.html").exists()
    pdf = (site.parent / "fourierqk.pdf").read_bytes()
    assert len(re.findall(rb"/Type /Page\b", pdf)) > 3 * 3
    assert b"/Outlines" in pdf and len(re.findall(rb"/Dest|/S /GoTo", pdf)) > 10


def test_the_zip_holds_the_site(site, tmp_path):
    """As `make zip` packs it: it opens at one page, and lacks none."""
    packed = tmp_path / "book.zip"
    subprocess.run([sys.executable, "-m", "zipfile", "-c", packed, "html"], cwd=site.parent, check=True)
    names = {*zipfile.ZipFile(packed).namelist()}
    assert {"html/index.html", "html/_static/fourierqk/site.js"} <= names
    assert {f"html/{p.relative_to(site).as_posix()}" for p in site.rglob("*") if p.is_file()} <= names
