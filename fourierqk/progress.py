"""A progress bar where somebody sees it."""
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    wanted: bool | None, total: int, done: int = 0, unit: str = "step", delay: float = 0
) -> Iterator[Any]:
    """A tqdm bar, or a stand-in. wanted: None means in a terminal or notebook, unless FOURIERQK_PROGRESS=0.

    delay: seconds before it shows. `write(line, file)` prints a line and spoils no bar; with wanted=False, nothing.
    """
    silent = wanted is False
    if wanted is None:
        seen = sys.stderr.isatty() or "ipykernel" in sys.modules
        wanted = seen and os.environ.get("FOURIERQK_PROGRESS") != "0"
    tqdm = _tqdm() if wanted else None
    if tqdm is None:
        write = (lambda line, file: None) if silent else (lambda line, file: print(line, file=file, flush=True))
        yield SimpleNamespace(update=lambda n=1: None, set_postfix=lambda **_: None, write=write)
        return
    with tqdm(total=total, initial=done, unit=unit, delay=delay, dynamic_ncols=True) as bar:
        yield bar


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
