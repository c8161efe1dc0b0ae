"""Chapters are executed together, once; what cannot be is left to myst-nb; an interrupt ends all."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import hear_ctrl_c

pytestmark = pytest.mark.slow
CONF = """
extensions = ["myst_nb", "fourierqk.site.ahead"]
nb_execution_mode = "cache"
nb_execution_cache_path = {cache!r}
nb_execution_timeout = 600
nb_execution_excludepatterns = ["excluded.md"]
"""
CHAPTER = """---
jupytext: {{text_representation: {{format_name: myst}}}}
kernelspec: {{display_name: Python 3, language: python, name: python3}}
{header}
---
# {name}

```{{code-cell}} ipython3
from pathlib import Path
log = Path("log.txt")
with log.open("a") as f:
    f.write("{name}\\n")
{code}
```
"""
MEET = """
import os, time
start = time.monotonic()
while len(log.read_text().split()) < 2:
    assert time.monotonic() - start < 300, "alone"
    time.sleep(0.05)
print("met", {}, "on", os.environ["OMP_NUM_THREADS"])
"""


class Book:
    """A book of one cell a chapter, which writes its name into a log when it is executed."""

    def __init__(self, folder: Path) -> None:
        self.source, self.out = folder / "book", folder / "out"
        self.source.mkdir()
        (self.source / "conf.py").write_text(CONF.format(cache=str(folder / "cache")))
        self.pages = []

    def add(self, name: str, code: str, header: str = "") -> None:
        self.pages.append(name)
        (self.source / f"{name}.md").write_text(CHAPTER.format(name=name, code=code, header=header))

    def start(self) -> subprocess.Popen:
        (self.source / "index.md").write_text("\n".join(["# Book", "```{toctree}", *self.pages, "```"]))
        command = [sys.executable, "-m", "sphinx", "-E", self.source, self.out]
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        how["env"] = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        return subprocess.Popen(command, **how, preexec_fn=None if sys.platform == "win32" else hear_ctrl_c)

    def build(self) -> str:
        """What Sphinx said."""
        running = self.start()
        said = running.communicate()[0]
        assert running.returncode == 0, said
        return said

    def page(self, name: str) -> str:
        return (self.out / f"{name}.html").read_text()

    def executed(self) -> list[str]:
        log = self.source / "log.txt"
        return sorted(log.read_text().split()) if log.exists() else []


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path)


def test_two_chapters_run_at_a_time_and_once_and_share_the_cores(book):
    book.add("first", MEET.format(1)), book.add("second", MEET.format(2))
    threads = max(1, (os.cpu_count() or 2) // 2)
    for _ in range(2):
        said = book.build()
        assert f"met 1 on {threads}" in book.page("first") and f"met 2 on {threads}" in book.page("second")
        assert book.executed() == ["first", "second"]
    assert "Executing" not in said


def test_what_cannot_be_executed_ahead_is_left_to_myst_nb_and_the_others_stand(book):
    book.add("excluded", "1")
    book.add("off", "1", header="mystnb: {execution_mode: 'off'}")
    book.add("good", "print(6 * 7)"), book.add("bad", "6 / 0")
    book.pages.append("latin")
    (book.source / "latin.md").write_bytes("# café".encode("latin-1"))
    said = book.build()
    assert "42" in book.page("good") and "ZeroDivisionError" in book.page("bad")
    assert said.count("bad.md: WARNING: Executing notebook failed: CellExecutionError") == 1
    assert "latin.md" in said and "good.md: WARNING" not in said
    assert book.executed().count("good") == 1 and {*book.executed()} == {"good", "bad"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_an_interrupt_ends_the_chapters_and_keeps_those_that_are_done(book):
    book.add("done", "1"), book.add("long", 'import time; time.sleep(900); Path("ended").touch()')
    running = book.start()
    while not (book.source.parent / "cache" / "executed").is_dir() or "long" not in book.executed():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    try:
        running.communicate(timeout=300)
    finally:
        running.kill()
    assert running.returncode != 0 and not (book.source / "ended").exists()
    book.add("long", "1")
    book.pages.pop()
    book.build()
    assert book.executed() == ["done", "long", "long"]
