"""Write book/_static/card.png, the picture that others show beside a link to the book: FutureEditor after an edit.

    python tools/card.py        # needs Chromium, and playwright from the test extra
"""
import os
import sys
from pathlib import Path

from paper import find_browser
from playwright.sync_api import sync_playwright

from fourierqk.widgets import FutureEditor, source

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # how a browser is started, and a widget drawn alone

from conftest import CHROMIUM_FLAGS  # noqa: E402
from viewing import alone  # noqa: E402

SIZE = {"width": 1200, "height": 630}  # what sites that show links ask for
LOOK = """body { margin: 36px 48px; font: 22px "DejaVu Sans", sans-serif; color: #1c1c1c; background: #fff; }
    h1 { font-size: 46px; margin: 0 0 4px; } p.said { margin: 0 0 20px; color: #444; }"""
WORDS = """<h1>FourierQK, played and audited</h1>
    <p class="said">Change a letter. May a prediction that stands before it change?</p>"""


def main() -> None:
    with sync_playwright() as playwright:
        launch = playwright.chromium.launch
        browser = launch(executable_path=find_browser(), args=CHROMIUM_FLAGS, chromium_sandbox=os.geteuid() != 0)
        with alone(browser, FutureEditor(), viewport=SIZE) as page:
            page.add_style_tag(content=source("widgets.css") + LOOK)
            page.evaluate("words => document.body.insertAdjacentHTML('afterbegin', words)", WORDS)
            page.evaluate("dispatchEvent(new Event('resize'))")
            page.clock.run_for(1000)
            page.screenshot(path=ROOT / "book" / "_static" / "card.png")
        browser.close()


if __name__ == "__main__":
    main()
