"""Pages opened with the network cut off (CHROMIUM_FLAGS) and every fault noted, for the tests that need a browser."""
import base64
import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from fourierqk.widgets import Widget, module

LOCAL = ("http://127.0.0.1:", "ws://127.0.0.1:", "file:", "data:", "blob:", "about:")
PATIENCE = 120_000  # milliseconds


class Page:
    """A page with a log of everything that went wrong on it: `page` is Playwright's, `faults` a list of texts."""

    def __init__(self, context) -> None:
        self.page, self.faults = context.new_page(), []
        self.page.on("request", lambda r: self._fault(not r.url.startswith(LOCAL), f"foreign: {r.url}"))
        self.page.on("console", lambda m: self._fault(m.type in {"error", "warning"}, f"console {m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self._fault(True, f"error: {e}"))
        self.page.on("requestfailed", lambda r: self._fault(True, f"failed: {r.url}"))
        self.page.on("response", lambda r: self._fault(r.status >= 400, f"{r.status}: {r.url}"))

    def _fault(self, wrong: bool, text: str) -> None:
        if wrong:
            self.faults.append(text)


@contextmanager
def context(browser, **options) -> Iterator[Any]:
    """Pages that look alike, 1200 by 900 and light unless told otherwise, and share what the browser keeps of scripts.

    No wait is a test of speed: each ends with what it waits for, and a busy machine may take its time.
    """
    looks = {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"} | options
    with closing(browser.new_context(**looks)) as found:
        found.set_default_timeout(PATIENCE)
        yield found


@contextmanager
def tab(context) -> Iterator[Page]:
    """A new page among others of its context."""
    view = Page(context)
    with closing(view.page):
        yield view


@contextmanager
def opened(browser, **options) -> Iterator[Page]:
    """A new page in a context of its own."""
    with context(browser, **options) as alone, tab(alone) as view:
        yield view


def address(widget: str) -> str:
    """The script of a widget as an address that any page can import."""
    return "data:text/javascript;base64," + base64.b64encode(module(widget).encode()).decode()


LIVE = """async ([address, values]) => {
  const { render } = (await import(address)).default, heard = {};
  window.model = {
    get: (k) => values[k], set: (k, v) => { values[k] = v; (heard["change:" + k] || []).forEach((f) => f()); },
    on: (e, f) => (heard[e] ??= []).push(f), off: (e, f) => { heard[e] = heard[e].filter((g) => g !== f); },
    save_changes: () => { window.saved = { ...values }; },
  };
  window.heard = heard;
  window.stop = render({ model: window.model, el: document.body });
}"""


@contextmanager
def alone(browser, widget: Widget, **options) -> Iterator[Any]:
    """A page with a widget on it, and nothing else, whose time stands still but for `page.clock.run_for(ms)`.

    The widget draws with the next frame and tells the model after a pause, so a test lets time pass before it looks.
    In the page: `model`, `saved` (what the model was told last), `heard` (its listeners) and `stop()`.
    """
    with opened(browser, **options) as view:
        view.page.clock.install(time=0)
        view.page.clock.pause_at(1)
        view.page.set_content("<!doctype html><title>t</title>")
        view.page.evaluate(LIVE, [address(widget.script), widget.settings()])
        view.page.clock.run_for(300)
        yield view.page
        assert view.faults == []


def leaves_no_trace(page) -> bool:
    """Stop the widget that is alone on a page -> whether neither an element nor a listener is left of it."""
    page.evaluate("stop()")
    page.clock.run_for(1000)  # what it had put off would be a fault now
    left = "document.querySelectorAll('.fqk-widget').length + Object.values(heard).flat().length"
    return page.evaluate(left) == 0


@contextmanager
def pure(browser, script: str, names: str) -> Iterator[Callable[..., Any]]:
    """A function that runs JavaScript, (code, argument a) -> its value, with pure functions of a script in scope.

    script: the address. names: of the functions, with commas between them.
    """
    with opened(browser) as view:
        view.page.goto("about:blank")
        view.page.evaluate("async (a) => { window.pure = (await import(a)).default.pure; }", script)
        yield lambda code, a=None: view.page.evaluate(f"(a) => {{ const {{ {names} }} = pure; return {code}; }}", a)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of 127.0.0.1; yields its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
