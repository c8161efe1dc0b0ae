"""The committed notebooks, unchanged, in an environment with the versions that Colab has.

`.venv-colab` holds Colab's pins (tests/colab/requirements.txt), a stub of `google.colab`, and of the main environment
torch alone. Real Colab cannot be tried here.
"""
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
from catalogue import Catalogue
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
COLAB = ROOT / ".venv-colab"
PINS = ROOT / "tests" / "colab" / "requirements.txt"
CHAPTERS = Catalogue(ROOT).chapters
WHOLE = "dot-product"  # the training chapter that is run from its first cell to its last
LIMIT = 600  # seconds for a notebook
TRIES = 2  # once, a client of Jupyter waited for ever for a kernel that was alive


def run(*command: str | Path, **kwargs) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kwargs)
    if done.returncode:
        pytest.fail(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-4000:]}", pytrace=False)
    return done.stdout


def share_torch(site_packages: Path) -> None:
    """Make torch and the CUDA libraries it may bring visible in another environment, and nothing else of this one."""
    shared = site_packages.parent / "shared"
    shutil.rmtree(shared, ignore_errors=True)
    shared.mkdir()
    needs = [Requirement(line) for line in importlib.metadata.requires("torch") or []]
    names = {r.name for r in needs if r.marker is None or r.marker.evaluate({"extra": ""})}
    gpu = {name for name in names if name.startswith(("nvidia", "cuda", "triton"))}
    for name in ("torch", *gpu):
        distribution = importlib.metadata.distribution(name)
        for top in {Path(str(file)).parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            if not (shared / top).exists():
                (shared / top).symlink_to(distribution.locate_file(top))
    (site_packages / "shared.pth").write_text(str(shared))


@pytest.fixture(scope="session")
def python() -> Path:
    """The Python of `.venv-colab`, made anew when the pins or torch change; the library is not installed in it."""
    key = hashlib.sha256(f"{PINS.read_text()} {sys.version} {importlib.metadata.version('torch')}".encode()).hexdigest()
    stamp, python = COLAB / "made-from", COLAB / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != key:
        venv.create(COLAB, clear=True, with_pip=True)
        share_torch(next(COLAB.glob("lib/python*/site-packages")))
        run(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", "-r", PINS)
        stamp.write_text(key)
    run(python, "-m", "pip", "uninstall", "--yes", "fourierqk")
    return python


def freeze(python: Path) -> set[str]:
    return {*run(python, "-m", "pip", "freeze").split("\n")}


@pytest.fixture
def colab(python, wheel, tmp_path, monkeypatch):
    """A function that runs cells of committed notebooks as one, the way Colab would, and returns them with outputs."""
    kernel = tmp_path / "jupyter" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "Colab", "language": "python"}))
    content = tmp_path / "content"
    content.mkdir()
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "colab" / "stubs"))
    monkeypatch.setenv("FOURIERQK_SPEC", str(wheel))
    monkeypatch.delenv("FOURIERQK_DATA", raising=False)

    def play(name: str, cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
        path = content / f"{name}.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        execute(path)
        done = nbformat.read(path, as_version=4).cells
        assert [cell.execution_count for cell in done] == [*range(1, len(cells) + 1)]
        return done

    return play


def code(doc: str) -> list[nbformat.NotebookNode]:
    """The code cells of a committed notebook, the setup cell first."""
    return [c for c in nbformat.read(ROOT / "book" / f"{doc}.ipynb", as_version=4).cells if c.cell_type == "code"]


def execute(path: Path) -> None:
    """Run a notebook in place, in a process that can be stopped: Jupyter's own time limit is one for cells alone."""
    jupyter = Path(sys.executable).with_name("jupyter-execute")  # `jupyter execute` takes the first one on the PATH
    command = [jupyter, "--inplace", "--kernel_name=colab", path]
    for _ in range(TRIES):
        with suppress(subprocess.TimeoutExpired):
            run(*command, timeout=LIMIT)
            return
    pytest.fail(f"{path.name} did not end within {LIMIT} seconds, {TRIES} times", pytrace=False)


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def test_a_training_chapter_runs_whole_and_installs_nothing_but_the_library(python, colab):
    before = freeze(python)
    setup, *_ = colab(WHOLE, code(WHOLE))
    changed = freeze(python) ^ before
    assert [line.partition(" ")[0] for line in changed] == ["fourierqk"]
    assert "custom widget manager enabled" in printed(setup)
    assert "plotly 5.24.1" in printed(setup) and "numpy 2.1.3" in printed(setup) and "fourierqk " in printed(setup)


def test_colab_has_all_that_the_library_depends_on():
    """The setup cell installs with --no-deps: each dependency must be there already, and new enough."""
    pins = dict(line.split("==") for line in PINS.read_text().split() if "==" in line) | {"torch": "2.11.0"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in map(Requirement, project["dependencies"]):
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_every_chapter_begins(colab):
    """The setup cell, which all share, then the first cell of each: what it imports and loads is there in Colab."""
    (setup, *_), *_ = chapters = [code(doc) for doc in CHAPTERS]
    assert all(cells[0].source == setup.source for cells in chapters)
    colab("first-cells", [setup, *(cells[1] for cells in chapters)])


def test_the_environment_really_is_colabs(python):
    code = "import numpy, plotly, IPython, torch; print(numpy.__version__, plotly.__version__, IPython.__version__)"
    assert run(python, "-c", code, env=os.environ | {"PYTHONPATH": ""}).split() == ["2.1.3", "5.24.1", "7.34.0"]
