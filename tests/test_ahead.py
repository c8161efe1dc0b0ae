"""Chapters are executed together, once, and one that fails is reported by myst-nb as ever."""
import subprocess
import sys

import pytest

CONF = """
extensions = ["myst_nb", "fourierqk.ahead"]
nb_execution_mode = "cache"
nb_execution_cache_path = {cache!r}
"""
CHAPTER = """---
jupytext: {{text_representation: {{format_name: myst}}}}
kernelspec: {{display_name: Python 3, language: python, name: python3}}
---
# {name}

```{{code-cell}} ipython3
{code}
```
"""
MEET = """
import time
from pathlib import Path
log = Path("log.txt")
with log.open("a") as f:
    f.write("here\\n")
start = time.monotonic()
while len(log.read_text().split()) < 2:
    assert time.monotonic() - start < 60, "alone"
    time.sleep(0.05)
print("met", 6 * 7)
"""


@pytest.fixture
def book(tmp_path):
    """A function that builds a book from the code of its chapters -> (pages, what Sphinx said)."""
    source = tmp_path / "book"
    source.mkdir()
    (source / "conf.py").write_text(CONF.format(cache=str(tmp_path / "cache")))

    def build(**chapters: str) -> tuple[dict[str, str], str]:
        (source / "index.md").write_text("\n".join(["# Book", "```{toctree}", *chapters, "```"]))
        for name, code in chapters.items():
            (source / f"{name}.md").write_text(CHAPTER.format(name=name, code=code))
        command = [sys.executable, "-m", "sphinx", "-E", source, tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return {name: (tmp_path / "out" / f"{name}.html").read_text() for name in chapters}, done.stdout + done.stderr

    return build


def test_two_chapters_run_at_a_time_and_once(book, tmp_path):
    for _ in range(2):
        pages, said = book(first=MEET, second=MEET)
        assert all("met 42" in page for page in pages.values())
        assert (tmp_path / "book" / "log.txt").read_text() == "here\nhere\n"
    assert "Executing" not in said


def test_a_chapter_that_fails_is_named_and_the_others_stand(book):
    pages, said = book(good="print(6 * 7)", bad="6 / 0")
    assert "42" in pages["good"] and "ZeroDivisionError" in pages["bad"]
    assert said.count("bad.md: WARNING: Executing notebook failed: CellExecutionError") == 1
    assert "good.md: WARNING" not in said
