"""A study on a Ray cluster of two nodes: every run once and whole, whatever dies, and clear words where none is."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import hear_ctrl_c
from test_runs import close, measured, tiny, write_text
from typer.testing import CliRunner

from fourierqk import cli
from fourierqk.records.library import runs_in
from fourierqk.storage import hold, read_json, taken
from fourierqk.studies.cluster import NEEDS, _way_out, conduct_on_ray
from fourierqk.studies.design import STUDIES, Run
from fourierqk.studies.runs import run_in_study, workplace
from fourierqk.training.loop import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL"),
]


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.txt")


class Nodes:
    """A cluster of two nodes on this machine, a core each, that share neither temporary files nor the library."""

    def __init__(self, base: Path) -> None:
        from ray.cluster_utils import Cluster

        self.base = base
        os.environ["RAY_TMPDIR"] = str(base)
        self.cluster = Cluster(initialize_head=True, head_node_args=self.settings("first") | {"_system_config": {
            "health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 4,
        }})  # fmt: skip
        self.second = self.cluster.add_node(**self.settings("second"))
        self.env = os.environ | {"RAY_ADDRESS": self.cluster.address}

    def settings(self, name: str) -> dict:
        (self.base / name / "fourierqk").mkdir(parents=True)
        (self.base / name / "fourierqk" / "__init__.py").write_text("raise SystemExit('the library did not travel')")
        env = {"TMPDIR": str(self.base / name), "PYTHONPATH": str(self.base / name)}
        return {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False, "env_vars": env}

    def desk(self, name: str) -> Path | None:
        """The folder of a run that is being trained on a node and has a checkpoint."""
        found = (self.base / name).glob("fourierqk-*/checkpoint.safetensors")
        return next((path.parent for path in found if taken(path.parent)), None)


@pytest.fixture(scope="module")
def nodes():
    pytest.importorskip("ray", reason='Ray is not installed: pip install "fourierqk[cluster]"')
    before = {*os.environ.items()}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    base = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # short: the path of a socket has at most 107 bytes
    made = Nodes(base)
    yield made
    made.cluster.shutdown()
    shutil.rmtree(base, ignore_errors=True)
    os.environ.clear(), os.environ.update(before)


def driver(nodes: Nodes, runs: list[Run], place: Path) -> subprocess.Popen:
    """A study on its way; its standard error says how it goes, its standard output in the end what failed."""
    command = [sys.executable, __file__, json.dumps([run.as_dict() for run in runs]), str(place)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=nodes.env, cwd=nodes.base / "first", **pipes)


def end(child: subprocess.Popen) -> tuple[dict, str]:
    """What failed, and what was said."""
    out, said = child.communicate()
    assert child.returncode == 0, said
    return json.loads(out), said


def wait_for(condition, child: subprocess.Popen):
    while not (found := condition()):
        assert child.poll() is None, child.communicate()
        time.sleep(0.01)
    return found


def test_a_study_whose_driver_worker_and_node_are_killed_ends_as_a_local_one(nodes, text, tmp_path):
    place, made = tmp_path / "study", tiny(text, "fourier-qk", "base-dot", seeds=3, steps=60)[:5]
    child = driver(nodes, made, place)
    desk = wait_for(lambda: [*place.glob("*.json")] and (nodes.desk("first") or nodes.desk("second")), child)
    child.kill()
    first_said = child.communicate()[1]
    assert 0 < len([*place.glob("*.json")]) < len(made)
    while taken(desk):  # its worker dies with it, and leaves the checkpoint to the next one
        time.sleep(0.01)
    assert (desk / "checkpoint.safetensors").exists()

    child, alive = driver(nodes, made, place), {"first": True, "second": True}
    while any(alive.values()):
        desks = wait_for(lambda: {name: desk for name in alive if alive[name] and (desk := nodes.desk(name))}, child)
        if "first" in desks:
            alive["first"] = not kill_worker(desks["first"])
        else:
            nodes.cluster.remove_node(nodes.second, allow_graceful=False)
            alive["second"] = False
    failed, said = end(child)
    assert failed == {} and re.search(r"[1-4] of 5 runs are done already", said)
    assert said.count("Lost the node ") == 1 and "(raylet)" not in said
    records, bad = runs_in(place)
    assert not bad and [f"{r['system']}-s{r['seed']}" for r in records] == sorted(run.name for run in made)
    for run, record in zip(sorted(made, key=lambda run: run.name), records, strict=True):
        whole = run_in_study(tmp_path / "whole", run)
        assert close(measured(record), measured(whole)), run.name
        assert {k: record[k] for k in ("versions", "commit")} == {k: whole[k] for k in ("versions", "commit")}
        assert (first_said + said).count(f"] {run.name}: ") <= 1, "done twice"
        assert load(workplace(place, run))[1] == record
    assert {path.name for path in place.iterdir()} - {f"{run.name}.json" for run in made} == {"runs"}
    assert not [*place.rglob("*.tmp")]


def kill_worker(desk: Path) -> bool:
    """kill -9 at who trains in a folder; False where nobody does."""
    owner = re.match(r"process (\d+) on ", (desk / ".lock").read_text())
    if owner:
        os.kill(int(owner[1]), signal.SIGKILL)
    return bool(owner)


def test_what_is_recorded_torn_failing_or_locked_stops_no_other(nodes, text, tmp_path):
    done, torn, bad, good, held = made = tiny(text, "base-dot", "dc", "random-qk", "nyquist", "fourier-qk", steps=4)
    made[2] = bad = replace(bad, size=replace(bad.size, train=replace(bad.size.train, lr=1e30, clip=1e30, warmup=0)))
    place = tmp_path / "study"
    run_in_study(place, done)
    (place / f"{torn.name}.json").write_text('{"system": "d')
    before = {path.name: path.read_bytes() for path in place.glob("*.json")}
    with hold(workplace(place, held)):
        child = driver(nodes, made, place)
        said = ""
        while f"{good.name}: " not in said or f"{bad.name} FAILED" not in said:
            said += child.stderr.readline()
            assert child.poll() is None
        assert f"{held.name}: another process is at it" in said and "1 of 5 runs are done already" in said
        assert not (place / f"{held.name}.json").exists()
    failed, more = end(child)
    assert failed.keys() == {torn.name, bad.name} and f"] {held.name}: " in more
    assert "is not JSON" in failed[torn.name] and failed[bad.name].startswith("the loss became")
    assert all(f"{name} FAILED: {why}" in said + more for name, why in failed.items())
    assert {name: (place / name).read_bytes() for name in before} == before
    for run in (good, held):
        assert read_json(place / f"{run.name}.json")["seed"] == 0
    assert not [*nodes.base.glob(f"*/fourierqk-{good.name}-*")], "left behind on a node"


def test_ctrl_c_ends_a_study_that_waits_for_a_node(nodes, tmp_path):
    command = [sys.executable, "-m", "fourierqk.cli", "study", "verse-tiny", "--seeds", "1", "--steps", "2"]
    command += ["--on", "ray", "--gpus", "1", "--out", str(tmp_path)]
    child = subprocess.Popen(command, env=nodes.env, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c)
    line = child.stderr.readline()
    assert "No node of the cluster has 1 CPU and 1 GPU" in line, line + child.stderr.read()
    run = STUDIES["verse-tiny"].runs()[0]
    assert taken(workplace(tmp_path, run))
    child.send_signal(signal.SIGINT)
    try:
        said = child.communicate(timeout=300)[1]
    finally:
        child.kill()
    assert child.returncode == 130 and "The same command goes on" in said and "Traceback" not in said
    assert not taken(workplace(tmp_path, run)) and not [*tmp_path.glob("*.json")]


# --- where there is no cluster


def test_without_ray_it_says_how_to_install_it(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert f'cluster = ["{NEEDS}"]' in (Path(__file__).parents[1] / "pyproject.toml").read_text()
    with pytest.raises(ImportError, match=f'pip install "{NEEDS}"'):
        conduct_on_ray(tiny(text), tmp_path / "study")
    result = CliRunner().invoke(cli.app, ["study", "verse-tiny", "--on", "ray", "--out", str(tmp_path / "study")])
    assert result.exit_code == 2 and result.stderr.startswith("fourierqk: a study on a cluster needs Ray: pip install")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_out_of_reach_is_a_connection_error(text, tmp_path, monkeypatch, address):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ConnectionError, match=f"no Ray cluster .* at {address}: .*ray start --head.*RAY_ADDRESS"):
        conduct_on_ray(tiny(text), tmp_path / "study")
    assert not taken(workplace(tmp_path / "study", tiny(text)[0]))


def test_ray_does_not_start_uv_on_the_nodes():
    """Else, under `uv run`, it refuses what travels: the project's pyproject.toml is not in it."""
    pytest.importorskip("ray")
    code = "import fourierqk.studies.cluster as m; m._import_ray(); from ray._private import ray_constants as c"
    command = [sys.executable, "-c", f"{code}; print(c.RAY_ENABLE_UV_RUN_RUNTIME_ENV)"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("said, says", [
    ("Your pyproject.toml is not in the working_dir ... before running 'uv run'", "RAY_ENABLE_UV_RUN_RUNTIME_ENV=0"),
    ("Version mismatch: The cluster was started with: Ray: 2.60.0 Python: 3.12.1", "Install the cluster's versions"),
])  # fmt: skip
def test_what_a_cluster_refuses_comes_with_a_way_out(said, says):
    assert says in _way_out(said)


def test_a_run_asks_for_something_sensible(text, tmp_path):
    for wrong in (dict(cpus=0), dict(gpus=-0.5), dict(gpus=1.5)):
        with pytest.raises(ValueError, match="cpus = 0 must be|gpus = -0.5 must be|gpus = 1.5 must be"):
            conduct_on_ray(tiny(text), tmp_path / "study", **wrong)


def test_the_command_hands_a_study_to_ray(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(cli, "conduct_on_ray", lambda runs, out, **how: asked.append((len(runs), how)) or {})
    monkeypatch.setattr(cli, "conduct", lambda *_, **__: pytest.fail("it ran here"))
    args = ["study", "verse-tiny", "--seeds", "1", "--out", str(tmp_path), "--on", "ray"]
    for more, how in ([], dict(cpus=1, gpus=None)), (["--cpus", "2", "--gpus", "0"], dict(cpus=2, gpus=0)):
        assert CliRunner().invoke(cli.app, args + more).exit_code == 0
        assert asked.pop() == (len(STUDIES["verse-tiny"].systems), how)
    for wrong, says in ([*args, "--jobs", "2"], "--jobs is for this"), ([*args[:-2], "--gpus", "0"], "add --on ray"):
        result = CliRunner().invoke(cli.app, wrong)
        assert result.exit_code == 2 and says in result.stderr


if __name__ == "__main__":  # the study that the tests kill
    print(json.dumps(conduct_on_ray([Run.from_dict(run) for run in json.loads(sys.argv[1])], sys.argv[2])))
