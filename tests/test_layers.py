"""The imports of the library point one way, down the list of its modules, and `import fourierqk` loads none of them.

A module may import what stands before it in HOUSE, no matter whether it lies in the front hall or in a wing. The front
of a wing (its `__init__`) stands behind the wing's last module: what lies inside never enters through its own front.
"""
import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fourierqk

PACKAGE = Path(__file__).resolve().parents[1] / "fourierqk"

HOUSE = """
progress checks storage parts streaming adapter sizes wrappers foreign
filters contract combinators channels prefix rotary neighbours model zoo ngram
records.identity records.provenance records.library records.statistics records.tables records
data.tinyshakespeare data.words data.grammar data.inference data.corpus data.tasks data.spectrum data
losses
causality.limits causality.rounding causality.steadiness causality.probes causality.subject causality.movement
causality.replay causality.bench causality.locate causality.examine causality.verdict causality.question causality.dice
causality.ways causality.procedure causality
specimens.models specimens.rivals specimens
analysis.phases analysis.kernels analysis.learned analysis
training.hardware training.presets training.checkpoint training.loop training
studies.design studies.measurement studies.runs studies.tally studies.pool studies.worker studies.cluster studies
reckoning.paper reckoning.evidence reckoning.judges reckoning.claims reckoning.race reckoning
figures.labels figures.draw figures.signals figures.models figures
widgets widgets.formula widgets.still widgets.readers widgets.*
exercises exercises.*
site.addresses site.sources site.answers site.numbers site.stock site.sharing site.asking site.pages site.ahead site
cli
""".split()

# Beyond the order: the whole of what a module may reach, through however many steps.
REACHES_ONLY = {
    "streaming": {"checks", "parts"},
    "filters": {"checks", "parts", "streaming"},
    "contract": {"checks", "parts", "streaming", "filters"},
    "combinators": {"checks", "parts", "streaming", "filters", "contract"},
    "channels": {"checks", "parts", "streaming", "filters"},
    "prefix": {"checks", "parts", "streaming", "filters", "contract"},
    "rotary": {"checks", "parts", "streaming", "filters"},
    "neighbours": {"checks", "parts", "streaming", "filters", "contract"},
    "model": {"checks", "parts", "streaming", "filters", "contract", "prefix", "rotary"},
    "zoo": {
        "checks", "parts", "streaming", "filters", "contract", "combinators", "channels", "prefix", "rotary",
        "neighbours", "model",
    },
    # it judges any model, so it knows none of ours
    "causality": {"checks", "adapter", "sizes", "progress", "causality"},
    "analysis": {"checks", "parts", "streaming", "filters", "contract", "prefix", "rotary", "model", "analysis"},
    "specimens": {"checks", "parts", "streaming", "filters", "contract", "prefix", "rotary", "model", "specimens"},
    "data": {"checks", "storage", "records", "data"},
    "records": {"checks", "storage", "records"},
}
# And what it must not reach.
NEVER_REACHES = {
    "losses": {"parts", "filters", "model", "zoo", "causality", "training"},
    "training": {"causality", "studies"},
    "studies": {"figures", "widgets", "site", "reckoning"},
    "reckoning": {"figures", "widgets", "site", "studies"},
    "records": {"studies", "training", "model"},
    "figures": {"training", "zoo", "studies", "site"},
    "widgets": {"training", "zoo", "studies", "site"},
}
LAZY = {"anywidget", "plotly", "ray", "safetensors", "scipy", "tqdm", "typer"}  # imported where they are used


def named(path: Path) -> str:
    """The name of a module within the library; of an `__init__`, that of its wing."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {named(p): p for p in sorted(PACKAGE.rglob("*.py"))}


def imports_of(path: Path) -> set[str]:
    """Modules of the library that a file imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} line {node.lineno}: write the import with the package's full name"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in inner if name.removeprefix("fourierqk.") in MODULES}
            found |= modules or {node.module}
    found = {name.removeprefix("fourierqk.") for name in found if name.split(".")[0] == "fourierqk"} - {"fourierqk"}
    assert found <= {*MODULES}, f"{path.name} imports {found - {*MODULES}}"
    return found


EDGES = {module: imports_of(path) for module, path in MODULES.items() if module}


def reach(modules: set[str]) -> set[str]:
    """All that modules import, and what these import, and so on."""
    found, todo = set(), [*modules]
    while todo:
        new = EDGES[todo.pop()] - found
        found |= new
        todo += new
    return found


def room(module: str) -> str:
    """A wing, or a module of the front hall."""
    return module.split(".")[0]


def floor(module: str) -> int:
    return HOUSE.index(module if module in HOUSE else f"{room(module)}.*")


def test_every_module_has_its_place():
    listed = {m for m in HOUSE if not m.endswith(".*")}
    assert listed <= {*EDGES} and len(listed) == len([m for m in HOUSE if not m.endswith(".*")])
    assert {m for m in EDGES if m not in listed and f"{room(m)}.*" not in HOUSE} == set()


@pytest.mark.parametrize("module", EDGES)
def test_every_arrow_points_down(module: str):
    assert {m for m in EDGES[module] if floor(m) >= floor(module)} == set()


@pytest.mark.parametrize("module", EDGES)
def test_a_wing_is_entered_by_its_front(module: str):
    """Which hands on names, and here and there a whole module."""
    inner = {m for m in EDGES[module] if "." in m and room(m) != room(module)}
    assert {m for m in inner if m.split(".")[1] not in importlib.import_module(f"fourierqk.{room(m)}").__all__} == set()


@pytest.mark.parametrize("name", REACHES_ONLY)
def test_the_core_reaches_only_what_it_needs(name: str):
    assert {room(m) for m in reach({m for m in EDGES if room(m) == name})} <= REACHES_ONLY[name]


@pytest.mark.parametrize("name", NEVER_REACHES)
def test_a_room_keeps_out_of_others(name: str):
    assert {room(m) for m in reach({m for m in EDGES if room(m) == name})} & NEVER_REACHES[name] == set()


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    return {*subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()}


def test_importing_the_library_loads_nothing_else():
    """Neither a room of its own nor torch: each is imported with the first name that needs it."""
    loaded = loaded_by("import fourierqk")
    assert {m for m in loaded if m.partition(".")[0] in ("fourierqk", "torch", "numpy")} == {"fourierqk"}


def test_a_name_loads_its_home_alone():
    rooms = {room(m.removeprefix("fourierqk.")) for m in loaded_by("from fourierqk import audit") if "fourierqk." in m}
    assert "causality" in rooms and rooms <= REACHES_ONLY["causality"]


def test_all_names_together_load_torch_and_numpy_alone():
    # torch itself may load some of these (its hub uses tqdm): what counts is what we add
    added = loaded_by("import torch, numpy; from fourierqk import *") - loaded_by("import torch, numpy")
    assert {name.partition(".")[0] for name in added} & LAZY == set()


def test_the_front_door_shows_its_names_and_no_others():
    listed = re.findall(r"\w+", fourierqk.__doc__.split("::\n")[1].split("Everything")[0])
    assert {*dir(fourierqk)} == {*fourierqk.__all__, "__version__"} and {*fourierqk.__all__} <= {*listed}
    assert {name for name in listed if not name.islower()} <= {*fourierqk.__all__}
    assert len(fourierqk.__all__) <= 25, "what a first program needs, at a glance: a further name has its home"
    assert {*fourierqk.__all__} & {room(m) for m in EDGES} == set(), "a name and a module would hide each other"
    with pytest.raises(AttributeError, match="honest_loss"):
        fourierqk.honest_loss  # noqa: B018
