"""A progress bar where somebody sees it."""
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    wanted: bool | None, total: int, done: int = 0, unit: str = "step", delay: float = 0
) -> Iterator[Any]:
    """A tqdm bar in a terminal or notebook, elsewhere lines; nothing with wanted=False.

    wanted: None means unless FOURIERQK_PROGRESS=0, which still lets `write(line, file)` print. delay: seconds before
    a bar shows. `set_postfix` is called once an evaluation: without a bar, that is a line each.
    """
    if wanted is None and os.environ.get("FOURIERQK_PROGRESS") == "0":
        yield _Quiet()
        return
    if wanted is False:
        yield _Silent()
        return
    seen = wanted or _in_terminal() or "ipykernel" in sys.modules
    tqdm = _tqdm() if seen else None
    if tqdm is None:
        yield _Lines(total, done, unit)
        return
    with tqdm(total=total, initial=done, unit=unit, delay=delay, dynamic_ncols=True) as bar:
        yield bar


class _Silent:
    """A bar that nobody sees."""

    def update(self, n: int = 1) -> None:
        pass

    def set_postfix(self, **values: object) -> None:
        pass

    def write(self, line: str, file: IO[str] | None) -> None:
        pass


class _Quiet(_Silent):
    """One that prints what it is told to."""

    def write(self, line: str, file: IO[str] | None) -> None:
        if file is not None:  # a process without a standard error has None, which print takes for the standard output
            print(line, file=file, flush=True)


class _Lines(_Quiet):
    """One that also prints a line whenever it has got on and is given values: a log, where no terminal shows a bar."""

    def __init__(self, total: int, done: int, unit: str) -> None:
        self.total, self.done, self.unit, self.told = total, done, unit, done

    def update(self, n: int = 1) -> None:
        self.done += n

    def set_postfix(self, **values: object) -> None:
        if self.done > self.told:
            self.told = self.done
            said = ", ".join(f"{name} {value}" for name, value in values.items())
            self.write(f"{self.unit} {self.done} of {self.total}: {said}", sys.stderr)


def _in_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm
