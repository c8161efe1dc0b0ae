"""The script for a GPU, on a CPU with tiny settings: it times, trains what fits, and bundles the records."""
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "gpu_study.sh"


def test_step_times_and_records_come_out_in_few_files(tmp_path):
    options = "--preset tiny --corpus verse --steps 2 --seeds 1 --jobs 1 --seconds 0.01 --no-compile --systems base-dot"
    command = [SCRIPT, tmp_path / "out", "--place", tmp_path / "place", *options.split()]
    env = os.environ | {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"log.txt", "records.tar.gz", "step_times.json"}
    times = json.loads((tmp_path / "out" / "step_times.json").read_text())
    assert times["systems"]["base-dot"]["ratio"] == 1 and times["precision"] and times["versions"]["torch"]
    with tarfile.open(tmp_path / "out" / "records.tar.gz") as tar:
        assert tar.getnames() == ["base-dot-s0.json"]
        assert json.load(tar.extractfile("base-dot-s0.json"))["audit"]["verdict"] == "causal"
    assert "| `base-dot` | 1 |" in done.stdout


def test_what_is_asked_wrongly_is_said():
    done = subprocess.run([SCRIPT], capture_output=True, text=True)
    assert done.returncode == 2 and "usage: " in done.stderr
