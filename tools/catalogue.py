"""What the chapters refer to: each other's titles, labels and equations, the claims, the references, the repository."""
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from fourierqk.reckoning import paper, stated

__all__ = ["Catalogue", "Reference"]

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


@dataclass(frozen=True)
class Reference:
    author: str  # "Zeris", "Cooley and Tukey", "Vaswani et al."
    year: str
    entry: str  # the line of the list of references


@dataclass(frozen=True)
class Catalogue:
    """The folder `book/` with the files around it; everything is read when it is first asked for."""

    root: Path

    @property
    def book(self) -> Path:
        return self.root / "book"

    @cached_property
    def sources(self) -> dict[str, str]:
        """Chapter path below book/ without suffix -> its Markdown without the header."""
        paths = sorted(p for p in self.book.rglob("*.md") if not {"_build", ".ipynb_checkpoints"} & {*p.parts})
        return {
            p.relative_to(self.book).with_suffix("").as_posix(): FRONT_MATTER.sub("", p.read_text(encoding="utf-8"))
            for p in paths
        }

    @cached_property
    def chapters(self) -> list[str]:
        """The pages with code in them: those get a notebook."""
        return [doc for doc, text in self.sources.items() if re.search(r"^`{3,}\{code-cell\}", text, re.MULTILINE)]

    @cached_property
    def titles(self) -> dict[str, str]:
        found = {doc: re.search(r"^# +(.+?)\s*$", text, re.MULTILINE) for doc, text in self.sources.items()}
        return {doc: title[1] if title else doc for doc, title in found.items()}

    @cached_property
    def headings(self) -> dict[str, str]:
        label = re.compile(r"^\((?P<label>[\w:.-]+)\)=\s*\n+#+ +(?P<heading>.+?)\s*$", re.MULTILINE)
        return {m["label"]: m["heading"] for text in self.sources.values() for m in label.finditer(text)}

    @cached_property
    def equations(self) -> dict[str, tuple[str, int]]:
        """Label -> chapter and number; like Sphinx, only labelled equations count."""
        return self._numbered(r"^\s*:label:[ ]*(?P<label>\S+)|\$\$[ ]*\((?P<dollar>[\w:.-]+)\)[ ]*$")

    @cached_property
    def figures(self) -> dict[str, tuple[str, int]]:
        """Label -> chapter and number: of pictures, and of what cells draw."""
        picture = r"^\s*[`:]{3,}\{figure\}[^\n]*\n(?:\s*:[^\n]*\n)*?\s*:name:[ ]*(?P<label>\S+)"
        return self._numbered(picture + r"|^:mystnb: \{figure: \{name: (?P<drawn>[\w-]+)")

    def _numbered(self, pattern: str) -> dict[str, tuple[str, int]]:
        found = {}
        for doc, text in self.sources.items():
            for number, m in enumerate(re.finditer(pattern, text, re.MULTILINE), 1):
                found[next(filter(None, m.groups()))] = (doc, number)
        return found

    def heading(self, label: str) -> str:
        if label not in self.headings:
            raise ValueError(f"no heading is labelled ({label})=")
        return self.headings[label]

    # --- claims and references

    @cached_property
    def claims(self) -> dict[str, str]:
        return stated(self.book / "claims.json")

    def claim(self, key: str) -> str:
        return paper(key, self.claims)

    @cached_property
    def bibliography(self):
        from pybtex.database import parse_file

        return parse_file(str(self.book / "references.bib")).entries

    def reference(self, key: str) -> Reference:
        if key not in self.bibliography:
            raise ValueError(f"book/references.bib has no {key!r}")
        entry, plain = self.bibliography[key], lambda name: _plain(entry.fields.get(name, ""))
        last = [_plain(" ".join(person.prelast_names + person.last_names)) for person in entry.persons["author"]]
        short = last[0] if len(last) == 1 else " and ".join(last) if len(last) == 2 else f"{last[0]} et al."
        authors = ", ".join(_plain(str(" ".join(p.first_names + p.middle_names + p.prelast_names + p.last_names)))
                            for p in entry.persons["author"])  # fmt: skip
        where = next(filter(None, map(plain, ("journal", "booktitle", "publisher", "howpublished"))), "")
        eprint = f"arXiv {plain('eprint')}" if plain("eprint") else ""
        doi = f"https://doi.org/{entry.fields['doi']}" if "doi" in entry.fields else entry.fields.get("url", "")
        parts = [f"{authors} ({plain('year')})", f"*{plain('title')}*", where, eprint, doi]
        return Reference(short, plain("year"), ". ".join(filter(None, parts)))

    # --- addresses

    @cached_property
    def repository(self) -> dict[str, str]:
        config = yaml.safe_load((self.root / "_config.yml").read_text(encoding="utf-8"))
        return {"url": config["repository"]["url"].rstrip("/"), "branch": config["repository"].get("branch", "main")}

    def doc(self, here: str, target: str) -> str:
        """A link's target, seen from the chapter `here`, as a path below book/ without suffix."""
        target = re.sub(r"\.(md|ipynb)$", "", target)
        doc = target[1:] if target.startswith("/") else _join(Path(here).parent, target)
        if doc not in self.sources:
            raise ValueError(f"{here} links to {target!r}, and there is no such page")
        return doc

    def page_url(self, doc: str) -> str:
        suffix = "ipynb" if doc in self.chapters else "md"
        return f"{self.repository['url']}/blob/{self.repository['branch']}/book/{doc}.{suffix}"

    def file_url(self, here: str, target: str) -> str:
        return f"{self.repository['url']}/blob/{self.repository['branch']}/{self._path(here, target)}"

    def image_url(self, here: str, target: str) -> str:
        """An absolute address: the notebook in Colab has no files beside it."""
        if re.match(r"[a-z]+:", target):
            return target
        raw = self.repository["url"].replace("https://github.com/", "https://raw.githubusercontent.com/")
        return f"{raw}/{self.repository['branch']}/{self._path(here, target)}"

    def _path(self, here: str, target: str) -> str:
        path = _join(Path("book") / Path(here).parent, target)
        if not (self.root / path).exists():
            raise ValueError(f"{here} refers to {target!r}, and there is no such file")
        return path


def _join(folder: Path, target: str) -> str:
    return Path(os.path.normpath(folder / target)).as_posix()


def _plain(latex: str) -> str:
    from pybtex.richtext import Text

    return str(Text.from_latex(latex.replace("\n", " "))) if latex else ""
