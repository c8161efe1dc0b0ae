"""Imports point one way, and `import fourierqk` needs torch and numpy alone."""
import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "fourierqk"
MODULES = {p.relative_to(PACKAGE).parts[0].removesuffix(".py") for p in PACKAGE.rglob("*.py")} - {"__init__"}

# The whole of what a module may reach in the library, through however many steps.
REACHES_ONLY = {
    "parts": set(),
    "filters": {"parts"},
    "combinators": {"parts", "filters"},
    "channels": {"parts", "filters"},
    "model": {"parts", "filters"},
    "zoo": {"parts", "filters", "combinators", "channels", "model"},
    "analysis": {"parts", "filters", "model"},
    "specimens": {"parts", "filters", "model"},
    "rivals": {"parts", "filters", "model"},
    "verse": set(),
    "rounding": set(),  # the audit's arithmetic, and how it talks to a model, know nothing of either
    "subject": set(),
    "words": set(),
    "tinyshakespeare": set(),
    "data": {"verse", "words", "tinyshakespeare"},
    "spectrum": {"records"},
}
# What a module must not reach. The audit judges any model, so it may know none of ours.
NEVER_REACHES = {
    "leakage": {"parts", "filters", "model", "zoo", "train", "figures", "widgets", "cli"},
    "train": {"figures", "widgets", "site", "cli", "runs", "studies"},
    "tally": {"figures", "widgets", "site", "cli", "crew", "cluster"},
    "crew": {"figures", "widgets", "site", "cli", "cluster"},
    "cluster": {"figures", "widgets", "site", "cli", "crew"},
    "report": {"figures", "widgets", "site", "cli", "runs", "train"},
    "reckoning": {"figures", "widgets", "site", "cli", "runs", "train"},
    "figures": {"train", "zoo", "cli", "site"},
    "widgets": {"train", "zoo", "cli", "site"},
}
LAZY = {"anywidget", "plotly", "ray", "safetensors", "scipy", "tqdm", "typer"}  # imported where they are used


def imports_of(path: Path) -> set[str]:
    """Modules of the library that a file imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} line {node.lineno}: write the import with the package's full name"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found |= {name.split(".")[1] for name in names if name.startswith("fourierqk.")} & MODULES
    return found


def graph() -> dict[str, set[str]]:
    edges = {}
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if module != "__init__":
            edges.setdefault(module, set()).update(imports_of(path) - {module})
    return edges


def reach(module: str, edges: dict[str, set[str]]) -> set[str]:
    found, todo = set(), [module]
    while todo:
        new = edges[todo.pop()] - found
        found |= new
        todo += new
    return found


def test_no_module_imports_itself_through_others():
    edges = graph()
    assert {m for m in edges if m in reach(m, edges)} == set()


@pytest.mark.parametrize("module", REACHES_ONLY)
def test_the_core_reaches_only_what_lies_below(module):
    assert reach(module, graph()) <= REACHES_ONLY[module]


@pytest.mark.parametrize("module", NEVER_REACHES)
def test_a_layer_does_not_reach_above(module):
    assert reach(module, graph()) & NEVER_REACHES[module] == set()


def test_nothing_imports_the_command_line():
    assert [module for module, imported in graph().items() if "cli" in imported] == []


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    return {*subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()}


def test_importing_the_library_loads_torch_and_numpy_alone():
    # torch itself may load some of these (its hub uses tqdm): what counts is what we add
    added = loaded_by("import torch, numpy, fourierqk") - loaded_by("import torch, numpy")
    assert added & LAZY == set()
