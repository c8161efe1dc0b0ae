"""Let every file name another repository: a fork says its address once.

    python tools/fork.py https://github.com/me/mine

`repository.url` in _config.yml says whose book this is. Whatever else names it or its pages (README, notebooks, the
package's metadata, ...) is rewritten here; addresses of other people's repositories stay.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

import nbformat
from catalogue import Catalogue
from notebooks import as_file, identify

from fourierqk.site import published

__all__ = ["follow", "main", "tracked"]

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = re.compile(r"https://github\.com/[\w-]+/(?P<name>[\w.-]*[\w-])")


def tracked(root: Path) -> dict[Path, str]:
    """The files that git knows, as far as they are text."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    found = {}
    for path in (root / name for name in names.split("\0") if name):
        try:
            found[path] = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # a picture; deleted and not yet committed
            continue
    return found


def follow(text: str, old: str, new: str) -> str:
    """A text with the addresses of one repository, and of its pages, instead of another's."""
    was, now = (url.removeprefix("https://github.com/") for url in (old, new))
    ends = r"(?![\w-]|\.(?!git\b)\w)"  # me/it names neither me/it-too nor me/it.js
    folder = re.compile(rf"(git clone \S+/{re.escape(was)} && cd ){re.escape(was.split('/')[1])}\b")
    text = folder.sub(lambda m: m[1] + now.split("/")[1], text)  # where `git clone` puts it
    hosts = r"(?P<host>github\.com/|githubusercontent\.com/|research\.google\.com/github/)"
    text = re.sub(rf"{hosts}{re.escape(was)}{ends}", lambda m: m["host"] + now, text)
    return text.replace(published(old), published(new))


def _notebook(text: str) -> str:
    """A notebook whose text has changed, its cells named anew."""
    notebook = nbformat.reads(text, as_version=4)
    identify(notebook.cells)
    return as_file(notebook)


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url", help="https://github.com/OWNER/NAME")
    new, old = parser.parse_args(argv).url.rstrip("/").removesuffix(".git"), Catalogue(root).repository["url"]
    if not ADDRESS.fullmatch(new):
        parser.error(f"{new!r} is no address of a repository: expected https://github.com/OWNER/NAME")
    for path, text in tracked(root).items():
        if (renamed := follow(text, old, new)) != text:
            path.write_text(_notebook(renamed) if path.suffix == ".ipynb" else renamed, encoding="utf-8")
            print(path.relative_to(root))
    print(f"They name {new} now. Look at `git diff`, then commit.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
