"""One process at a time in a folder."""
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO

__all__ = ["Busy", "hold", "taken"]

LOCK = ".lock"  # in the folder that is held; it stays behind, empty: to delete it would let two processes in

_held: set[Path] = set()  # by this process: whoever holds a folder may hold it again


class Busy(OSError):
    """Another process holds the folder; the message says which."""


@contextmanager
def hold(folder: str | Path) -> Iterator[None]:
    """Make a folder, and keep other processes out of it until the end.

    The lock is the kernel's, on a file in the folder: it goes when its process goes, killed or not, so that none is
    ever stale. Where the system has no such lock (Windows), nobody is kept out. Raises Busy where another process is
    in the folder, OSError where the folder cannot be made or written.
    """
    folder = make(folder).resolve()
    if folder in _held:
        yield
        return
    with _open(folder / LOCK) as file:
        if not _lock(file):
            file.seek(0)
            owner = file.read().decode(errors="replace") or "unknown"
            raise Busy(f"{folder} is in use by another process ({owner}): wait for it, or take another folder")
        _sign(file, f"process {os.getpid()} on {socket.gethostname()} since {datetime.now():%Y-%m-%d %H:%M:%S}")
        _held.add(folder)
        try:
            yield
        finally:
            _held.discard(folder)
            _sign(file, "")


def taken(folder: str | Path) -> bool:
    """Whether another process holds a folder at this moment. One that does not exist is free."""
    path = Path(folder) / LOCK
    if not path.exists():
        return False
    with _open(path) as file:
        return not _lock(file)


def make(folder: str | Path) -> Path:
    """Make a folder and those above it, if need be. OSError says which one cannot be made."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise OSError(e.errno, f"cannot make the folder {folder}: {e.strerror}") from e
    return folder


def _open(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab+", buffering=0)  # a buffer would be written once more when the file is closed
    except OSError as e:
        raise OSError(e.errno, f"cannot write {path}: {e.strerror}") from e


def _lock(file: IO[bytes]) -> bool:
    """Take the lock that goes with the open file; False where another process has it."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(file: IO[bytes], owner: str) -> None:
    """Say in the file who holds the lock, for those who find it taken. It also holds unsigned, on a full disk."""
    try:
        file.truncate(0)
        file.write(owner.encode())
    except OSError:
        pass
