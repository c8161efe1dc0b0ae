"""What the outputs of chapters are made from, beside their own cells."""
import hashlib
from pathlib import Path

__all__ = ["fingerprint"]


def fingerprint(package: Path, book: Path) -> str:
    """A hash of the library, the recorded runs and the paper's claims: while it stays, so do the outputs of a cell.

    package: the folder fourierqk/; book: the folder book/. What makes pages of outputs, fourierqk/site/, counts not.
    """
    digest = hashlib.sha256()
    for folder, pattern in (package, "**/*.py"), (book, "records/**/*.json"), (book, "claims.json"):
        for path in sorted(path for path in folder.glob(pattern) if not path.is_relative_to(package / "site")):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
