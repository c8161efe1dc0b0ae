"""Shared by all tests: the built wheel and site, a browser to open it with, a closing word when there was none."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "book" / "_build" / "html"
CHROMIUM_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no network: every other host is unknown
]

os.environ.setdefault("FOURIERQK_PROGRESS", "0")
if "PYTEST_XDIST_WORKER" in os.environ:  # a core for each worker, and no second thread that waits for another's
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def hear_ctrl_c() -> None:
    """For a child process to begin with: a shell that runs the tests in the background lets them ignore the signal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="session")
def site() -> Path:
    """Folder of the built site."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"the book is not built, so there is no {SITE}: run `make book` first", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium driven by Playwright. Without one the test skips; with FOURIERQK_REQUIRE_BROWSER it fails."""
    from paper import find_browser  # of tools, which pytest alone knows: tests import this file in children, too

    path = find_browser()
    if path is None and os.environ.get("FOURIERQK_REQUIRE_BROWSER"):
        pytest.fail("no Chromium found, and FOURIERQK_REQUIRE_BROWSER is set", pytrace=False)
    if path is None:
        pytest.skip("no browser: install Chromium, or set FOURIERQK_BROWSER to one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=CHROMIUM_FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """The library as pip would install it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture
def one_thread():
    """Models of a few hundred weights spend their time waiting for a second thread, above all on a busy machine."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items) -> None:
    """Whatever needs the built book, a browser or the plays is slow; files with slow tests come first.

    Else one worker would begin a long file when the other has nothing left to do.
    """
    for item in items:
        if {"site", "browser", "plays"} & {*item.fixturenames}:
            item.add_marker(pytest.mark.slow)
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def plays() -> None:
    """Tiny Shakespeare, for what it alone can tell: the records are of it. It is not ours to ship."""
    if not os.environ.get("FOURIERQK_DATA"):
        pytest.skip("only the text itself can tell: FOURIERQK_DATA does not say where it is, and tests fetch nothing")


def pytest_terminal_summary(terminalreporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "no browser" in str(report.longrepr)]
    if skipped:
        terminalreporter.section("no browser")
        terminalreporter.write_line(
            f"{len(skipped)} browser tests SKIPPED: no Chromium found. Install one, or name it in FOURIERQK_BROWSER."
        )
