"""What made a record: code, versions, machine and time."""
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["now", "provenance"]


def provenance() -> dict[str, Any]:
    """What made a record: versions, the commit where the library is run from its repository, the machine, the time."""
    root = Path(__file__).resolve().parents[2]
    git = ["git", "-C", str(root)]
    commit = changed = None
    if (root / ".git").exists():  # not the repository that an installed copy happens to lie in
        commit = _output([*git, "rev-parse", "HEAD"])
        changed = _output([*git, "status", "--porcelain", "--untracked-files=no"])
    return {
        "versions": {name: _version(name) for name in ("fourierqk", "torch", "numpy")},
        "python": platform.python_version(),
        "commit": commit,
        "uncommitted_changes": None if changed is None else bool(changed),
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "processor": _processor()},
        "written": now(),
    }


def now() -> str:
    """The time, in UTC, as a record has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _processor() -> str:
    """The name of the processor, or at least its family."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _output(command: list[str]) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
