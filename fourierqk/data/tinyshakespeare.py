"""Where tiny Shakespeare is: a file that you name, the cache, or the network; the bytes must be the known ones."""
import hashlib
import http.client
import os
import time
import urllib.request
import warnings
from pathlib import Path

from fourierqk.storage import write_atomic

__all__ = ["FILE", "read", "read_file"]

FILE = "tinyshakespeare.txt"  # 40,000 lines of plays as Andrej Karpathy joined them for char-rnn (2015)
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
MIRRORS = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    "https://storage.googleapis.com/download.tensorflow.org/data/shakespeare.txt",
)
PAUSES = (0, 1, 4)  # seconds before each round of the mirrors: a refusal (429, or 403 for Colab) may pass


def read(path: str | os.PathLike | None = None) -> bytes:
    """The text, from `path`, or the folder or file named by FOURIERQK_DATA, or the cache, or the network.

    Raises FileNotFoundError or ValueError for a file that was named, ConnectionError when no mirror answers.
    """
    named = path or os.environ.get("FOURIERQK_DATA")
    if not named:
        return _cached()
    file = Path(os.path.expanduser(named))  # leaves ~ as it is where nobody knows the home
    file = file / FILE if file.is_dir() else file
    raw = read_file(file, "" if path else " (FOURIERQK_DATA names it)")
    if not _genuine(raw):
        raise ValueError(
            f"{file} is not tiny Shakespeare (sha256 {_digest(raw)}, expected {SHA256}). "
            "Use text(path) to train on a file of your own."
        )
    return raw


def read_file(file: Path, who: str = "") -> bytes:
    """The bytes of a file. FileNotFoundError says which is missing, and who asked for it."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}{who}")
    return file.read_bytes()


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _genuine(raw: bytes) -> bool:
    return _digest(raw) == SHA256


def _cached() -> bytes:
    """Tiny Shakespeare from the cache; if it is not there, or damaged, from a mirror and into the cache."""
    # of a user without a home, "~" stays "~": then there is no cache
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "fourierqk"
    file = folder / FILE
    try:
        raw = file.read_bytes()
    except OSError:  # not there, or in a home that is closed to this process
        pass
    else:
        if _genuine(raw):
            return raw
        warnings.warn(f"{file} is damaged ({len(raw)} bytes, sha256 {_digest(raw)}): fetching it anew", stacklevel=4)
    raw = _download()
    try:
        if not folder.is_absolute():
            raise FileNotFoundError("the home of this user is unknown")
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(file, raw)
    except OSError as e:  # that need not stop anybody who has the text in hand
        way_out = "name a folder in XDG_CACHE_HOME, or one that holds the text in FOURIERQK_DATA"
        warnings.warn(f"cannot keep the text in {folder} ({e}): it is fetched each time. {way_out}", stacklevel=4)
    return raw


def _download() -> bytes:
    """The right bytes from the first mirror that has them; ConnectionError with each one's answer, and the ways out."""
    answers: dict[str, str] = {}
    for pause in PAUSES:
        time.sleep(pause)
        for url in MIRRORS:
            request = urllib.request.Request(url, headers={"User-Agent": "fourierqk"})
            try:
                with urllib.request.urlopen(request, timeout=20) as reply:
                    raw = reply.read()
            except (OSError, http.client.HTTPException) as e:  # HTTP errors, no network, time-outs, broken transfers
                answers[url] = str(e) or type(e).__name__
                continue
            if _genuine(raw):
                return raw
            answers[url] = f"sent {len(raw)} bytes that are not the text"
    tried = "\n".join(f"  {url}: {answer}" for url, answer in answers.items())
    raise ConnectionError(
        f"could not fetch {FILE}:\n{tried}\nThree ways out: set FOURIERQK_DATA to a folder that holds {FILE}, pass "
        "shakespeare(path=...), or use verse(), which needs no file and no network."
    )
