"""The command line: what it prints and writes, and one clear line with the right exit status when a thing is wrong."""
import errno
import fcntl
import functools
import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import fourierqk
from fourierqk import cli
from fourierqk.data.corpus import text, verse
from fourierqk.losses import excess, floor, honest_loss, ordered_loss
from fourierqk.storage import read_json, write_json
from fourierqk.studies import runs
from fourierqk.training.loop import PRESETS, Preset, TrainConfig, load
from fourierqk.zoo import SYSTEMS

ROOT = Path(__file__).resolve().parents[1]
QUICK = TrainConfig(steps=12, batch=4, eval_every=4, eval_windows=8, device="cpu")

poem = functools.cache(verse)  # written once: the command writes it anew for each run


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Presets that train in a second, in a folder of their own."""
    monkeypatch.setattr("fourierqk.studies.design.verse", poem)
    monkeypatch.setitem(PRESETS, "tiny", Preset(dict(n_layer=1, n_head=2, n_embd=16, dropout=0.1), 16, QUICK))
    monkeypatch.chdir(tmp_path)
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n)


def run(*args):
    return CliRunner().invoke(cli.app, [str(a) for a in args])


def refused(result, status=2):
    """The one line of a command that ends with this status."""
    assert result.exit_code == status, result.output
    assert result.stdout == "" and "Traceback" not in result.stderr
    *_, line = result.stderr.splitlines()
    assert len([x for x in result.stderr.splitlines() if x.startswith("fourierqk: ")]) == 1
    return line


def test_the_version_is_the_library_s():
    assert run("--version").stdout == f"fourierqk {fourierqk.__version__}\n"


def test_systems_lists_one_name_a_line():
    assert run("systems").stdout.splitlines() == list(SYSTEMS)
    lines = run("systems", "--summary").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(SYSTEMS)
    assert all(s.summary in line and s.verdict in line for s, line in zip(SYSTEMS.values(), lines, strict=True))


@pytest.mark.parametrize("system, verdict", [("base-dot", "causal"), ("fourier-qk", "leaks")])
def test_train_records_what_its_weights_are_worth(system, verdict):
    result = run("train", system, "--seed", 3)
    assert result.exit_code == 0, result.output
    out = Path("runs") / f"{system}-verse-tiny-s3"
    record, corpus = read_json(out / "record.json"), poem()
    model, same = load(out)
    assert same == record
    for key in ("mean", "se"):
        assert record["losses"]["ordered"][key] == pytest.approx(getattr(ordered_loss(model, corpus), key), rel=1e-6)
        assert record["losses"]["honest"][key] == pytest.approx(getattr(honest_loss(model, corpus), key), rel=1e-6)
    shuffled = ordered_loss(model, corpus.shuffled(1)).mean
    assert record["losses"]["shuffled"]["mean"] == pytest.approx(shuffled, rel=1e-6)
    d, f = floor(model, corpus), record["losses"]["floor"]
    assert (f["difference"], f["se"], f["below"]) == (pytest.approx(d.mean), pytest.approx(d.se), False)
    assert f["oracle"] + f["difference"] == pytest.approx(record["losses"]["ordered"]["mean"])
    d, f = excess(honest_loss(model, corpus), corpus), record["losses"]["honest"]["floor"]
    assert (f["difference"], f["se"], f["below"]) == (pytest.approx(d.mean), pytest.approx(d.se), False)
    assert f"{f['difference']:+.3f} ± {f['se']:.3f} above the oracle" in result.stdout
    assert f["oracle"] == pytest.approx(corpus.entropy_rate, abs=0.1)
    assert record["audit"]["verdict"] == verdict
    assert (record["system"], record["preset"], record["seed"]) == (system, "tiny", 3)
    assert record["model"] == asdict(model.cfg) and record["train"] == asdict(replace(QUICK, seed=3, device="auto"))
    assert record["corpus"] == {"name": "verse", "sha256": corpus.sha256, "entropy_rate": corpus.entropy_rate}
    assert record["history"]["steps"] == [4, 8, 12] and record["versions"]["torch"] == torch.__version__
    for said in (f"{record['losses']['ordered']['mean']:.3f} ± ", f"audit     {verdict}", "not below the floor"):
        assert said in result.stdout


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_a_record_names_the_commit():
    run("train", "base-dot", "--steps", 4, "--out", "run")
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert len(head) >= 40 and read_json("run/record.json")["commit"] == head


def test_a_second_call_trains_and_measures_nothing(monkeypatch):
    first = run("train", "base-dot", "--out", "run")
    before = Path("run/record.json").read_bytes()
    monkeypatch.setattr(runs, "measure", lambda *_: pytest.fail("measured again"))
    second = run("train", "base-dot", "--out", "run")
    assert second.exit_code == 0 and second.stdout == first.stdout
    assert Path("run/record.json").read_bytes() == before


def test_a_stopped_run_goes_on_and_ends_at_the_same_losses(monkeypatch):
    module = sys.modules["fourierqk.training.loop"]
    real, calls = module.honest_loss, []

    def stop_at_the_third(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(module, "honest_loss", stop_at_the_third)
    stop = refused(run("train", "fourier-qk", "--out", "stopped", "--restart"), 130)
    assert "The same command without --restart goes on" in stop
    assert not Path("stopped/record.json").exists()
    assert "Going on with" in run("train", "fourier-qk", "--out", "stopped").stderr
    run("train", "fourier-qk", "--out", "whole")
    stopped, whole = (read_json(f"{out}/record.json") for out in ("stopped", "whole"))
    assert stopped["losses"] == whole["losses"] and stopped["audit"] == whole["audit"]


def test_train_reads_a_file_of_ones_own():
    Path("my notes.txt").write_text("to be, or not to be: that is the question. " * 60)
    result = run("train", "sliding-fourier-qk", "--corpus", "my notes.txt", "--steps", 4)
    assert result.exit_code == 0, result.output
    (out,) = Path("runs").iterdir()
    assert " " not in out.name and out.name.startswith("sliding-fourier-qk-my-notes")
    record = read_json(out / "record.json")
    assert record["losses"]["floor"] is record["losses"]["honest"]["floor"] is None
    assert "unknown for this text" in result.stdout
    assert record["corpus"]["sha256"] == text("my notes.txt").sha256


def test_what_a_preset_sets_can_be_given():
    options = ("--length", 8, "--batch", 2, "--lr", 2e-3, "--filter-lr", 5e-2, "--steps", 4)
    result = run("train", "fourier-qk", "--out", "run", *options)
    assert result.exit_code == 0, result.output
    record = read_json("run/record.json")
    assert record["model"]["block_size"] == 8
    assert [record["train"][k] for k in ("batch", "lr", "filter_lr", "steps")] == [2, 2e-3, 5e-2, 4]
    assert "lr = -1.0 must be a number above 0" in refused(run("train", "base-dot", "--lr", -1))


def test_without_a_terminal_an_evaluation_is_a_line(monkeypatch):
    monkeypatch.delenv("FOURIERQK_PROGRESS", raising=False)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # nbval has loaded it: this is no notebook
    said = run("train", "base-dot", "--out", "run").stderr.splitlines()
    h = read_json("run/record.json")["history"]
    each = zip(h["steps"], h["ordered"], h["honest"], strict=True)
    assert [line for line in said if line.startswith("step ")] == [
        f"step {n} of 12: ordered {ordered:.3f}, honest {honest:.3f}" for n, ordered, honest in each
    ]
    monkeypatch.setenv("FOURIERQK_PROGRESS", "0")
    assert "step " not in run("train", "base-dot", "--out", "quiet").stderr


def test_a_study_of_systems_and_a_text_of_ones_own(monkeypatch):
    Path("mine.txt").write_text("to be, or not to be: that is the question. " * 60)
    asked = []
    monkeypatch.setattr(cli, "conduct", lambda runs, out, **_: asked.extend(runs) or {})
    Path("runs/verse-tiny").mkdir(parents=True)
    options = ("--systems", "base-dot, fourier-qk", "--corpus", "mine.txt", "--seeds", 2)
    assert run("study", "verse-tiny", *options).exit_code == 0
    assert [(r.system, r.corpus, r.seed) for r in asked] == [
        (system, "mine.txt", seed) for seed in (0, 1) for system in ("base-dot", "fourier-qk")
    ]
    assert "did you mean" in refused(run("study", "verse-tiny", "--systems", "base-dot,fourier-kq"))


def test_claims_weighed_on_another_text_say_so():
    folder = ROOT / "book" / "records"
    assert run("reckon", folder / "shakespeare-small").stderr == ""
    said = run("reckon", folder / "verse-tiny")
    assert said.exit_code == 0 and "these runs are on verse, the paper's on shakespeare" in said.stderr


def test_the_probes_can_be_cut_from_a_text(monkeypatch):
    run("train", "base-dot", "--out", "run", "--steps", 4)
    sentence, asked = "".join(verse().vocab[:9]) * 40, []
    Path("probes.txt").write_text(sentence)
    monkeypatch.setattr(cli, "examine", lambda *_, text, **__: asked.append(text) or sys.exit())
    run("audit", "--dir", "run", "--text", "probes.txt")
    run("audit", "base-dot", "--text", "probes.txt")
    letters = sorted({*sentence})
    assert verse().decode(asked[0]) == sentence
    assert "".join(letters[i] for i in asked[1]) == sentence
    Path("probes.txt").write_text("\u2603" * 200)
    assert "has no '\u2603'" in refused(run("audit", "--dir", "run", "--text", "probes.txt"))


@pytest.mark.parametrize(
    "args, says",
    [
        (["train", "fourier-kq"], "unknown system 'fourier-kq': did you mean fourier-qk"),
        (["train", "base-dot", "--corpus", "no/such.txt"], "no file of that name: name a text file, or one of verse, "),
        (["train", "base-dot", "--corpus", "shrt.txt"], "and no file of that name: did you mean short.txt?"),
        (["train", "base-dot", "--corpus", "vrse"], "did you mean verse?"),
        (["train", "base-dot", "--corpus", "."], "the corpus . is a folder: name a text file in it"),
        (["audit", "base-dot", "--text", "short.txt"], "short.txt has 16 characters, too few to probe 256: take a"),
        (["audit", "base-dot", "--vocab", 3, "--length", 4, "--text", "short.txt"], "has 9 different characters"),
        (["train", "base-dot", "--corpus", "empty.txt"], "empty"),
        (["study", "verse-tiny", "--systems", ","], "systems = '' must name at least one"),
        (["train", "base-dot", "--corpus", "short.txt"], "short"),
        (["train", "base-dot", "--preset", "huge"], "unknown preset 'huge': there are tiny, small, paper, paper-"),
        (["train", "base-dot", "--device", "abacus"], "device 'abacus' cannot be used"),
        (["train", "base-dot", "--out", "empty.txt"], "cannot make the folder empty.txt"),
        (["sample", "nowhere"], "no run in nowhere"),
        (["audit"], "name a system to audit"),
        (["audit", "nope"], "unknown system 'nope'"),
        (["audit", "--dir", "nowhere"], "no run in nowhere"),
        (["audit", "base-dot", "--preset", "huge"], "unknown preset"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line_and_status_2(args, says):
    Path("empty.txt").write_text("")
    Path("short.txt").write_text("too short a text")
    result = run(*args)
    line = refused(result)
    assert line.startswith("fourierqk: ") and says in line and "?." not in line and "Training" not in result.stderr


@pytest.mark.parametrize("args", ["train", "train base-dot --steps 0", "audit base-dot --length 1", "nonsense"])
def test_usage_errors_have_status_2(args):
    result = run(*args.split())
    assert result.exit_code == 2 and "Error" in result.stderr


def test_another_run_in_the_folder_is_refused_until_restart():
    run("train", "base-dot", "--out", "run")
    line = refused(run("train", "base-dot", "--out", "run", "--steps", 8))
    assert "train.steps is 12 there, 8 here" in line and "--restart" in line
    assert read_json("run/record.json")["train"]["steps"] == 12
    assert run("train", "base-dot", "--out", "run", "--steps", 8, "--restart").exit_code == 0
    assert read_json("run/record.json")["train"]["steps"] == 8


def test_a_folder_where_another_process_trains_is_refused_with_its_name():
    Path("run").mkdir()
    with open("run/.lock", "a+") as other:
        other.write("process 7 on another host"), other.flush()
        fcntl.flock(other, fcntl.LOCK_EX)
        line = refused(run("train", "base-dot", "--out", "run"))
        assert "in use by another process (process 7 on another host)" in line
    assert run("train", "base-dot", "--out", "run", "--steps", 4).exit_code == 0


def test_a_disk_without_locks_is_a_line_that_names_it_and_no_obstacle(monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fourierqk.storage._warned", set())
    monkeypatch.setattr("fcntl.flock", no_locks)
    result = run("train", "base-dot", "--out", "run", "--steps", 4)
    assert result.exit_code == 0
    (line,) = [line for line in result.stderr.splitlines() if "lock" in line]
    assert line.startswith("fourierqk: ") and str(Path("run").resolve()) in line and "another disk" in line


def test_a_restart_that_fails_leaves_no_record_of_the_old_run(monkeypatch):
    run("train", "base-dot", "--out", "run")
    module = sys.modules["fourierqk.training.loop"]
    monkeypatch.setattr(module, "_step", lambda *_: torch.tensor(torch.nan))
    line = refused(run("train", "base-dot", "--out", "run", "--restart"), 1)
    assert "the loss became nan at step 1" in line
    assert not Path("run/record.json").exists()


def test_sample_continues_a_prompt_the_same_way_for_a_seed():
    run("train", "base-dot", "--out", "run", "--steps", 4)
    letter = poem().vocab[-1]
    a, b, other = (run("sample", "run", "--prompt", letter * 3, "--length", 40, "--seed", s) for s in (0, 0, 1))
    assert a.exit_code == 0 and a.stdout == b.stdout != other.stdout
    assert a.stdout.startswith(letter * 3) and len(a.stdout) == 3 + 40 + 1
    cold = {run("sample", "run", "--length", 9, "--temperature", 0, "--seed", s).stdout for s in (0, 1)}
    assert len(cold) == 1
    assert "has no '\u2603'" in refused(run("sample", "run", "--prompt", "\u2603"))


def test_a_run_that_is_not_there_or_says_too_little_is_named():
    run("train", "base-dot", "--out", "runs/mine", "--steps", 4)
    line = refused(run("sample", "runs/mien"))
    assert "no run in runs/mien: checkpoint.safetensors is not there, did you mean runs/mine?" in line
    assert run("sample", "runs/mine", "--seed", 2**63).exit_code == 2
    record = read_json("runs/mine/record.json")
    write_json("runs/mine/record.json", {k: v for k, v in record.items() if k != "vocab"})
    Path("probes.txt").write_text("to be or not to be " * 9)
    for command in (["sample", "runs/mine"], ["audit", "--dir", "runs/mine", "--text", "probes.txt"]):
        assert "does not say which tokens the model knows" in refused(run(*command))
    write_json("runs/mine/record.json", {"system": "base-dot"})
    assert "names no system to build" in refused(run("sample", "runs/mine"))


@pytest.mark.parametrize("system, status", [("base-dot", 0), ("sliding-fourier-qk", 0), ("fourier-qk", 1)])
def test_audit_says_it_by_its_exit_status(system, status):
    args = ("--length", 16, "--vocab", 7, "--draws", 2)
    result = run("audit", system, *args)
    assert result.exit_code == status and ("CAUSAL", "LEAKS")[status] in result.stdout
    run("train", system, "--out", "run", "--steps", 4)
    result = run("audit", "--dir", "run", "--draws", 2)
    assert result.exit_code == status and ("CAUSAL", "LEAKS")[status] in result.stdout
    assert "holds" in refused(run("audit", "random-qk", "--dir", "run"))
    assert "a trained system is named by --dir run" in refused(run("audit", "run"))


class Dice(torch.nn.Module):
    """A model that no seed can hold still."""

    def __init__(self):
        super().__init__()
        self.cfg = cli.GPTConfig(5, block_size=8)
        self.rng = torch.Generator().manual_seed(0)

    def forward(self, ids):
        return torch.rand(*ids.shape, 5, generator=self.rng)


class Broken(Dice):
    def forward(self, ids):
        raise RuntimeError("no such\nkernel")


@pytest.mark.parametrize("command, step", [
    ("train base-dot --out run", "carry_out"), ("study verse-tiny", "conduct"), ("audit base-dot", "examine"),
    ("sample run", "load"),
])  # fmt: skip
def test_memory_that_runs_out_is_a_line_with_the_way_out(monkeypatch, command, step):
    def no_room(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nProcess 7 has 70 GiB.")

    monkeypatch.setattr(cli, step, no_room)
    line = refused(run(*command.split()))
    assert line.startswith("fourierqk: out of memory: ") and "smaller --" in line and "2.00 GiB" in line
    assert ("--batch" in line) == (command[0] in "ts" and "sample" not in command)


class Hungry(Dice):
    def forward(self, ids):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 134217728 bytes")


def test_memory_that_a_model_wants_in_its_audit_is_that_line_too(monkeypatch):
    monkeypatch.setattr(cli, "_fresh", lambda *_: Hungry())
    assert "out of memory: take a smaller --length" in refused(run("audit", "base-dot"))


@pytest.mark.parametrize("encoding, snowman", [("ascii", b"\xe2\x98\x83"), ("cp1252", b"\\u2603")])
def test_what_an_encoding_has_no_sign_for_is_spelt(encoding, snowman):
    """Where it is ascii, the command writes UTF-8."""
    Path("snow.txt").write_text("le flocon \u2603 tombe. " * 60, encoding="utf-8")
    run("train", "base-dot", "--corpus", "snow.txt", "--out", "run", "--steps", 4)
    command = [sys.executable, "-m", "fourierqk.cli", "sample", "run", "--prompt", "\u2603", "--length", "3"]
    env = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(command, env=env, capture_output=True)
    assert done.returncode == 0 and done.stdout.startswith(snowman), done.stderr


def test_an_undecided_audit_has_status_3_and_a_broken_model_never_1(monkeypatch):
    monkeypatch.setattr(cli, "_fresh", lambda *_: Dice())
    result = run("audit", "base-dot")
    assert result.exit_code == 3 and "INCONCLUSIVE" in result.stdout
    monkeypatch.setattr(cli, "_fresh", lambda *_: Broken())
    assert "no such kernel" in refused(run("audit", "base-dot"))
    monkeypatch.setattr(cli, "examine", lambda *_, **__: 1 / 0)
    assert "ZeroDivisionError" in refused(run("audit", "base-dot"))


MINE = """
import torch
from torch import nn

class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 9)

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(x + x.mean(1, keepdim=True)), None

def make_model():
    return Mine()

ready = Mine()

def function(ids):
    return nn.functional.one_hot(ids, 9).float()

def chatty():
    print("hello")
    return lambda ids: print("again") or function(ids)

number = 3
def makes_a_number():
    return 3
"""


@pytest.fixture
def mine():
    Path("mine.py").write_text(MINE)
    return "mine.py"


def test_audit_a_model_from_a_file(mine):
    options = ("--vocab", 9, "--length", 12, "--draws", 2)
    for name, status in (("make_model", 1), ("Mine", 1), ("ready", 1), ("function", 0)):
        assert run("audit", f"{mine}:{name}", *options).exit_code == status
    told = json.loads(run("audit", f"{mine}:make_model", *options, "--length", 8, "--axis", "batch", "--json").stdout)
    assert (told["verdict"], told["first_leak"], told["name"]) == ("leaks", "Mine", "Mine")
    assert told["lengths"] == {"12": "leaks", "8": "leaks"} and told["axes"] == {"train": "leaks", "batch": "causal"}


TRAINED = """
from mine import Mine

class Trained(Mine):
    def forward(self, ids):
        x = self.embed(ids)
        return self.head(x + x.mean(1, keepdim=True) if self.training else x)

class Twice(Mine):
    def forward(self, ids):
        return self.head(self.embed(ids).flip(1)) + super().forward(ids)[0]
"""


def test_audit_asks_in_training_mode_and_names_every_module(mine):
    Path("trained.py").write_text(TRAINED)
    options = ("--vocab", 9, "--length", 8, "--draws", 2)
    both = run("audit", "trained.py:Trained", *options)
    assert both.exit_code == 1 and "In training mode" in both.stdout
    rows = json.loads(run("audit", "trained.py:Trained", *options, "--axis", "batch", "--json").stdout)
    assert rows["axes"] == {"train": "leaks", "batch": "causal"} and rows["verdict"] == "leaks"
    told = json.loads(run("audit", "trained.py:Twice", *options, "--every", "--json").stdout)
    assert told["leaking"] == ["Twice"] and told["way"] == "eval" and told["axes"] == {"train": "leaks"}


AWKWARD = """
from mine import Mine, function
import torch
from torch import nn

class Rows(Mine):
    def forward(self, ids):
        x = self.embed(ids)
        return self.head(x - x.mean(0))

class Masked(Mine):
    def forward(self, ids, mask):
        return super().forward(ids)

masked = Masked()
half = Masked

def sized(config):
    return Mine(config.width)

def wrapped(config):
    return Mine()

def two(width, depth):
    return Mine()

def narrow(ids):
    return function(ids)[..., :4]
"""


@pytest.mark.parametrize("name, status, says", [
    ("Rows", 3, "--axis batch asks whether rows hear each other"),
    ("masked", 2, "needs mask beside ids, and is called with ids alone: name a function"),
    ("half", 2, "needs mask beside ids, and is called with ids alone: name a function"),
    ("sized", 2, "if sized makes a model, name a function without arguments that makes it"),
    ("wrapped", 2, "instead of logits: name a function without arguments that makes it"),
    ("two", 2, "needs arguments (width, depth): name a function"),
    ("narrow", 0, "4 numbers at each position, but --vocab 9"),
])  # fmt: skip
def test_the_command_speaks_of_models_in_its_own_words(mine, name, status, says):
    Path("awkward.py").write_text(AWKWARD)
    result = run("audit", f"awkward.py:{name}", "--vocab", 9, "--length", 8, "--draws", 2)
    said = " ".join(result.output.split())
    assert result.exit_code == status and says in said
    assert not any(python in said for python in ("kwargs", "vocab_size", "axes=", "(N,)"))


def test_a_text_of_few_windows_is_said_with_its_errors():
    Path("mine.txt").write_text("to be, or not to be: that is the question. " * 9)
    said = run("train", "base-dot", "--corpus", "mine.txt", "--steps", 4, "--out", "run").stdout
    room = (len(text("mine.txt").val) - 1) // 16
    assert room < 30 and f"this text holds {room} windows side by side: every error (±) here is too small" in said
    assert f"too narrow intervals: the text holds {room} windows side by side" in run("report", "run").stdout
    assert "side by side" not in run("train", "base-dot", "--steps", 4).stdout


def test_a_failed_run_is_explained_once_and_a_study_names_the_runs_within(monkeypatch):
    options = ("study", "verse-tiny", "--systems", "base-dot", "--seeds", 1, "--out", "st")
    assert run(*options, "--steps", 4).exit_code == 0
    again = run(*options, "--steps", 5)
    assert again.exit_code == 1 and again.stderr.count("training.steps is 4 there, 5 here") == 1
    assert "1 of 1 runs failed, for the reasons above: base-dot-s0" in again.stderr
    assert "name one of the runs within, st/runs/base-dot-s0 say" in refused(run("sample", "st"))
    assert "name one of the runs within, st/runs/base-dot-s0 say" in refused(run("sample", "st/runs"))


def test_what_a_model_prints_is_no_part_of_the_json(mine):
    result = run("audit", f"{mine}:chatty", "--vocab", 9, "--length", 8, "--draws", 2, "--json")
    assert json.loads(result.stdout)["verdict"] == "causal"


def test_audit_with_the_weights_of_a_checkpoint(mine):
    """With a head of zeros nothing leaks yet: only the checkpoint tells."""
    from safetensors.torch import save_file

    from fourierqk.foreign import load_model

    model = load_model(f"{mine}:make_model")
    torch.nn.init.zeros_(model.head.weight)
    torch.save(model.state_dict(), "bare.pt")
    torch.save({"state_dict": model.state_dict(), "step": 3}, "nested.pt")
    save_file(model.state_dict(), "tensors.safetensors")
    for file in ("bare.pt", "nested.pt", "tensors.safetensors"):
        args = ("--vocab", 9, "--length", 8, "--draws", 2, "--json", "--checkpoint", file)
        assert json.loads(run("audit", f"{mine}:make_model", *args).stdout)["realised"] in (False, None)


@pytest.mark.parametrize("place, checkpoint, says", [
    ("nowhere.py:make", None, "no file nowhere.py"),
    ("mine.py:nothing", None, "no 'nothing'"),
    ("mine.py:make_modle", None, "no 'make_modle' that could be called: did you mean make_model"),
    ("mine.py:number", None, "no 'number'"),
    ("mine.py:makes_a_number", None, "made int"),
    ("mine.py:make_model", "missing.pt", "no checkpoint missing.pt"),
    ("mine.py:make_model", "mine.py", "holds more than tensors, or is damaged: save model.state_dict() alone"),
    ("mine.py:make_model", "cut.pt", "holds more than tensors, or is damaged: save model.state_dict() alone"),
    ("mine.py:make_model", "other.pt", "do not fit the model"),
    ("mine.py:make_model", "list.pt", "no state_dict"),
    ("mine.py:make_model", "bad.safetensors", "no .safetensors file"),
    ("mine.py:function", "other.pt", "none to fill"),
    ("quits.py:make", None, "ends the program"),
    ("quits_later.py:make", None, "instead of making a model"),
    ("wrong.py:make", None, "SyntaxError"),
])  # fmt: skip
def test_files_that_do_not_fit_are_named(mine, place, checkpoint, says):
    torch.save({"embed.weight": torch.zeros(2)}, "other.pt")
    torch.save([1, 2], "list.pt")
    Path("cut.pt").write_bytes(Path("other.pt").read_bytes()[:200])
    Path("bad.safetensors").write_bytes(b"not at all")
    Path("quits.py").write_text("import sys; sys.exit(4)")
    Path("quits_later.py").write_text("def make(): raise SystemExit(0)")
    Path("wrong.py").write_text("def make(:")
    more = ("--checkpoint", checkpoint) if checkpoint else ()
    line = refused(run("audit", place, "--vocab", 9, "--length", 8, *more))
    assert says in line and "weights_only" not in line


def test_audit_refuses_what_does_not_go_together(mine):
    run("train", "base-dot", "--out", "run", "--steps", 4)
    assert "leave --vocab 9 out" in refused(run("audit", "--dir", "run", "--vocab", 9))
    assert "--checkpoint fills a model from a file" in refused(run("audit", "base-dot", "--checkpoint", "x.pt"))
    assert "give --vocab" in refused(run("audit", f"{mine}:function"))
    assert "did you mean batch?" in refused(run("audit", "base-dot", "--axis", "bacth"))


def test_the_installed_command_and_its_light_import():
    code = "import sys, fourierqk.cli; print({'plotly', 'anywidget', 'scipy', 'safetensors'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
    done = subprocess.run([sys.executable, "-m", "fourierqk.cli", "train", "nope"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("fourierqk: unknown system 'nope'")


def test_a_record_is_plain_json():
    run("train", "multifourier-qk", "--out", "run", "--steps", 4)
    json.loads(Path("run/record.json").read_text(), parse_constant=lambda c: pytest.fail(f"{c} is not JSON"))


def test_a_record_without_a_checkpoint_is_left_alone_until_restart():
    run("train", "base-dot", "--out", "run", "--steps", 4)
    Path("run/checkpoint.safetensors").unlink()
    before = Path("run/record.json").read_bytes()
    line = refused(run("train", "base-dot", "--out", "run", "--steps", 8))
    assert "take another folder, or start anew with --restart" in line
    assert Path("run/record.json").read_bytes() == before
    assert run("train", "base-dot", "--out", "run", "--steps", 8, "--restart").exit_code == 0
    assert read_json("run/record.json")["train"]["steps"] == 8
