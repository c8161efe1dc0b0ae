"""What pip installs: the whole library with its scripts, styles and types, our records and claims, and nothing else."""
import subprocess
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = {"fourierqk": "fourierqk", "fourierqk/_records": "book/records", "fourierqk/_claims.json": "book/claims.json"}


def test_the_wheel_holds_the_library_and_what_it_reads(wheel: Path):
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *HOME.values()],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    wanted = {inside + name.removeprefix(home) for inside, home in HOME.items() for name in tracked
              if name == home or name.startswith(f"{home}/")}  # fmt: skip
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == wanted
    assert {Path(name).suffix for name in wanted} >= {".py", ".pyi", ".typed", ".js", ".css", ".json"}
