"""The paper's numbers, as it states them: the book's claims.json."""
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fourierqk.checks import unknown_name

__all__ = ["amount", "paper", "stated"]

SHAPE = '{"key": {"text": "...", "source": "..."}}'


def stated(path: str | Path) -> dict[str, str]:
    """The texts of a file of claims, by key; none where there is no file. ValueError where it has another shape."""
    path = Path(path)
    try:
        claims = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        texts = {key: claim["text"] for key, claim in claims.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise ValueError(f"{path} must hold {SHAPE}: {type(e).__name__} {e}") from e
    if wrong := [key for key, text in texts.items() if not isinstance(text, str)]:
        raise ValueError(f"{path} must hold {SHAPE}: the text of {', '.join(wrong)} is none")
    return texts


@cache
def _ours() -> dict[str, str]:
    here = Path(__file__).resolve().parents[1]
    places = (here / "_claims.json", here.parent / "book" / "claims.json")  # installed, or in the repository
    return stated(next(p for p in places if p.is_file()))


def paper(key: str, numbers: Mapping[str, str] | None = None) -> str:
    """A number as the paper states it, by its key in the book's claims.json. ValueError: an unknown key.

    numbers: those of another file, as `stated` reads them.
    """
    known = _ours() if numbers is None else numbers
    if key not in known:
        raise ValueError(unknown_name("claim", key, known))
    return known[key]


def amount(key: str) -> float:
    """The first number in what the paper states under a key, say 0.443 of "0.443 nats". ValueError: there is none."""
    if (found := re.search(r"\d+(?:\.\d+)?", paper(key))) is None:
        raise ValueError(f"the claim {key!r} states no number: {paper(key)!r}")
    return float(found[0])
