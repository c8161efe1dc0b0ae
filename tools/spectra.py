"""Write book/records/spectra: the spectra of tiny Shakespeare, which the book shows without holding the text.

    python tools/spectra.py            # finds the text as fourierqk.shakespeare() does; set FOURIERQK_DATA to name it

Run it from a commit without changes, or the records say otherwise.
"""
from pathlib import Path

import torch
from torch import Tensor

from fourierqk.data import Corpus, shakespeare, text_spectrum
from fourierqk.data.corpus import LEVELS
from fourierqk.records import provenance
from fourierqk.storage import write_json

__all__ = ["LEVELS", "main", "measure", "name", "signals"]

FOLDER = Path(__file__).resolve().parents[1] / "book" / "records" / "spectra"


def name(level: str) -> str:
    """The file's name without its suffix."""
    return "shakespeare" if level == "char" else f"shakespeare-{level}s"


def signals(corpus: Corpus) -> dict[str, Tensor]:
    """The ids whose spectra are recorded, of the whole text: all tokens, and what marks words, lines and speeches."""
    ids = torch.cat([corpus.train, corpus.val])
    line = ids == corpus.vocab.index("\n")
    blank = line | (ids == corpus.vocab.index(" "))
    blank_line = line & torch.cat([line[1:], line[:1]])  # the first of two line ends
    found = {"all tokens": ids, "line ends": line.long()}
    if max(map(len, corpus.vocab)) > 1:
        return found | {"without blanks": ids[~blank]}
    return found | {"white space": blank.long(), "speeches": blank_line.long()}


def measure(level: str) -> dict:
    """The record of a level."""
    corpus = shakespeare(level=level)
    of = {"name": corpus.name, "sha256": corpus.sha256, "tokens": len(corpus.train) + len(corpus.val)}
    of |= {"vocabulary": len(corpus.vocab), "chars_per_token": corpus.chars_per_token}
    return {"corpus": of, "spectra": {of: _numbers(ids) for of, ids in signals(corpus).items()}}


def _numbers(ids: Tensor) -> dict:
    s = text_spectrum(ids)
    power, se = ([float(f"{v:.6g}") for v in t.tolist()] for t in (s.power, s.se))
    return {"n": s.n, "windows": s.windows, "flat": s.flat, "power": power, "se": se}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for level in LEVELS:
        write_json(FOLDER / f"{name(level)}.json", measure(level) | provenance())
        print(f"wrote {FOLDER / name(level)}.json")


if __name__ == "__main__":
    main()
