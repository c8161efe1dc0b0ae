"""Files that are whole or absent, written beside their place and moved in, and folders with one process at a time."""
import errno
import json
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from torch import Tensor

__all__ = [
    "Busy", "hold", "make_folder", "read_json", "read_tensors", "sweep", "taken", "write_atomic", "write_json",
    "write_tensors",
]  # fmt: skip

LOCK = ".lock"  # in the folder that is held; it stays behind, empty: to delete it would let two processes in

_held: set[Path] = set()  # by this process: whoever holds a folder may hold it again
_warned: set[tuple[int, str]] = set()  # device and lack: each is said once
CANNOT = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}  # said by a disk without the call


def write_atomic(path: str | Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, finds the old file or the new one, never a part.

    OSError names the path and says what failed (no such folder, no permission, disk full); the old file is then intact.
    A disk that cannot be told to write at once (fsync) is warned of once: there a power cut may take the file.
    """
    path = Path(path)
    temp = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temp, "wb") as f:
            f.write(data)
            f.flush()
            _sync(f, path.parent)  # the bytes reach the disk before the name does
        os.replace(temp, path)
    except OSError as e:
        raise OSError(e.errno, f"cannot write {path}: {e.strerror}. What was there before is intact") from e
    finally:
        try:
            temp.unlink(missing_ok=True)
        except OSError:  # the folder cannot be reached at all: the first error says so
            pass


def _sync(file: IO[bytes], folder: Path) -> None:
    try:
        os.fsync(file.fileno())
    except OSError as e:
        if e.errno not in CANNOT:
            raise
        _warn(folder, e, "its disk does not promise that a written file outlasts a power cut. Keep a copy")


def _warn(folder: Path, lack: OSError, says: str) -> None:
    """Warn, once a disk, of a protection that its file system lacks: the work goes on without it."""
    lacks = (folder.stat().st_dev, says)
    if lacks not in _warned:
        _warned.add(lacks)
        warnings.warn(f"{folder}: {says}, or take a folder on another disk ({lack.strerror})", stacklevel=2)


def sweep(path: str | Path) -> None:
    """Remove what writers of a file left beside it when they were killed. Only for who alone may write it now."""
    path = Path(path)
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        left.unlink(missing_ok=True)


def write_json(path: str | Path, record: Mapping[str, Any]) -> None:
    """Write a record as indented JSON, atomically. ValueError where it holds NaN or infinity, unknown to JSON."""
    write_atomic(path, (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a record. FileNotFoundError where there is none, ValueError where it is no JSON object, or has a NaN."""

    def refuse(constant: str) -> None:
        raise ValueError(f"it holds {constant}")

    try:
        record = json.loads(Path(path).read_bytes(), parse_constant=refuse)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"{path} is not JSON ({e}): it is torn or not a record") from e
    if not isinstance(record, dict):
        raise ValueError(f"{path} holds a JSON {type(record).__name__}, a record is an object")
    return record


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Write tensors and what is to be known about them as one safetensors file, atomically."""
    from safetensors.torch import save

    own = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}  # tied weights are stored twice
    write_atomic(path, save(own, {"fourierqk": json.dumps(about, allow_nan=False)}))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_tensors` wrote -> (tensors, about).

    FileNotFoundError where there is none, ValueError where the file is torn or of another maker.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there")
    try:
        with safe_open(str(path), "pt") as f:
            about = json.loads((f.metadata() or {})["fourierqk"])
            return {name: f.get_tensor(name) for name in f.keys()}, about
    except KeyError:
        raise ValueError(f"{path} is a safetensors file, but not one of fourierqk's: move it away") from None
    except (SafetensorError, ValueError) as e:
        raise ValueError(f"{path} is torn or not a safetensors file ({e}): move it away") from e


class Busy(OSError):
    """Another process holds the folder; the message says which."""


@contextmanager
def hold(folder: str | Path) -> Iterator[None]:
    """Make a folder, and keep other processes out of it until the end.

    The lock is the kernel's, on a file in the folder: it goes when its process goes, killed or not, so that none is
    ever stale. Where the system (Windows) or the disk (some network disks) has no such lock, nobody is kept out; of
    such a disk a warning says so. Raises Busy where another process is in the folder, OSError where the folder cannot
    be made or written.
    """
    folder = make_folder(folder).resolve()
    if folder in _held:
        yield
        return
    with _open(folder / LOCK) as file:
        if not _lock(file, folder):
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
        return not _lock(file, path.parent)


def make_folder(folder: str | Path) -> Path:
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


def _lock(file: IO[bytes], folder: Path) -> bool:
    """Take the lock that goes with the open file; False where another process has it."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as e:
        if e.errno not in CANNOT:
            raise OSError(e.errno, f"cannot lock {folder / LOCK}: {e.strerror}") from e
        _warn(folder, e, "its disk has no locks to keep a second process out. Start none there")
    return True


def _sign(file: IO[bytes], owner: str) -> None:
    """Say in the file who holds the lock, for those who find it taken. It also holds unsigned, on a full disk."""
    try:
        file.truncate(0)
        file.write(owner.encode())
    except OSError:
        pass
