"""Studies: every run once and whole, whatever is killed, torn or full, and tables that say what the records say."""
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from test_train import disk
from typer.testing import CliRunner

from fourierqk import audit, build, verse
from fourierqk.analysis import coverage, future_share
from fourierqk.cli import app
from fourierqk.losses import honest_loss, loss_by_position, ordered_loss, truncated_loss
from fourierqk.model import generate
from fourierqk.records.library import runs_in
from fourierqk.storage import hold, read_json, write_json
from fourierqk.studies.design import FIRST, STUDIES, Run, Study, find_study, open_corpus
from fourierqk.studies.pool import BEGIN, LIBRARY, conduct, order
from fourierqk.studies.runs import carry_out, reason, recorded, run_in_study, workplace
from fourierqk.training import CHECKPOINT, load, steps_done, train
from fourierqk.training.presets import PRESETS, Preset, TrainConfig
from fourierqk.zoo import SYSTEMS, VARIANTS, system

pytestmark = pytest.mark.usefixtures("one_thread")
HOW = TrainConfig(steps=40, batch=2, lr=3e-3, warmup=2, eval_every=2, eval_windows=4, device="cpu")
SIZE = Preset(dict(n_layer=1, n_head=2, n_embd=8, dropout=0.1), 12, HOW)


@pytest.fixture
def text(tmp_path):
    return write_text(tmp_path / "text.txt")


def write_text(path):
    rng = random.Random(0)
    path.write_text("".join(rng.choice(["to be ", "or not ", "that is ", "the question.\n"]) for _ in range(900)))
    return path


def tiny(text, *systems, seeds=1, **changes):
    systems = systems or ("base-dot", "fourier-qk")
    size = replace(SIZE, train=replace(HOW, **changes))
    return [
        Run(s, str(text), "tiny", replace(size, train=replace(size.train, seed=seed)))
        for seed in range(seeds) for s in systems
    ]  # fmt: skip


def measured(record):
    """What the machine and the clock had no say in."""
    history = {k: v for k, v in record["history"].items() if k not in ("seconds", "tokens_per_second", "peak_memory")}
    kept = (
        "system", "preset", "seed", "model", "train", "corpus", "losses", "loss_by_position", "audit", "filters",
        "sample", "parameters",
    )  # fmt: skip
    return {**{k: record[k] for k in kept}, "history": history}


def close(a, b):
    """Equal, numbers to 1e-6."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == pytest.approx(b, rel=1e-6, abs=1e-6) if isinstance(a, float) else a == b


# --- studies as data


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_of_systems_that_exist_each_once_and_seed_by_seed(name):
    made = STUDIES[name].runs()
    assert len({run.name for run in made}) == len(made)
    study = STUDIES[name]
    assert len(made) == len(study.systems) * study.seeds * len(study.settings)
    assert [run.seed for run in made] == sorted(run.seed for run in made)
    for run in made:
        assert system(run.system).name == run.system and run.preset in PRESETS
        assert Run.from_dict(json.loads(json.dumps(run.as_dict()))) == run


def test_the_studies_together_hold_every_system():
    small = {*STUDIES["shakespeare-small"].systems, *STUDIES["shakespeare-small-once"].systems}
    assert {*SYSTEMS} <= small and small - {*SYSTEMS} == {"fourier-qk-sigma1"}
    assert STUDIES["shakespeare-small-once"].runs()[0].size.train.steps == 600
    first = dict(lr=1e-3, dropout=0.1, beta2=0.95, lr_end=0.0)  # before the baseline was tuned
    assert STUDIES["shakespeare-small"].runs()[0].size == PRESETS["small"].changed(**first)


def test_a_study_can_be_changed_by_name():
    changes = dict(preset="small", seeds=1, steps=7, eval_every=3, batch=2, length=20, corpus=None)
    run = find_study("verse-tiny", **changes).runs()[-1]
    assert (run.preset, run.seed, run.corpus, run.size.block_size) == ("small", 0, "verse", 20)
    assert run.size.train == replace(PRESETS["small"].train, steps=7, eval_every=3, batch=2)
    for says, wrong in {
        "unknown preset": dict(preset="huge"), "seeds = 0": dict(seeds=0), "length = 1": dict(length=1),
        "unknown system": dict(systems=("fourier",)), "systems = '' must name at least one": dict(systems=()),
        "none twice": dict(systems=("base-dot", "base-dot")),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=says):
            find_study("verse-tiny", **wrong).runs()
    with pytest.raises(ValueError, match="unknown study 'verse-tinny': did you mean verse-tiny"):
        find_study("verse-tinny")


def test_a_study_tunes_single_systems_by_themselves():
    own = {"base-rope": {"lr": 0.003, "dropout": 0.2}}
    study = Study(("base-dot", "base-rope"), "verse", "tiny", seeds=2, settings=({"lr": 0.01}, {"lr": 0.1}), own=own)
    told = [(r.name, r.size.train.lr, r.size.model["dropout"]) for r in study.runs()]
    assert told[:3] == [("base-dot-lr=0.01-s0", 0.01, 0.0), ("base-rope-lr=0.01-s0", 0.003, 0.2), (
        "base-dot-lr=0.1-s0", 0.1, 0.0)]  # fmt: skip
    assert len(told) == 8 and {lr for name, lr, _ in told if name.startswith("base-rope")} == {0.003}


@pytest.mark.parametrize(
    "name, width, tokens", [("fourier-qk-sigma1", 1, 64), ("fourier-qk-from26", 2, 26), ("fourier-qk-from10", 2, 10)]
)
def test_a_variant_is_its_system_but_for_one_number(name, width, tokens):
    cfg = PRESETS["small"].gpt(65)
    band, usual = (system(n).filter(cfg).inner for n in (name, "fourier-qk"))
    assert band.width == pytest.approx(width / 256) and usual.width == pytest.approx(2 / 256)
    assert band.centre().flatten().tolist() == pytest.approx([1 / tokens] * 4)
    assert usual.centre().flatten().tolist() == pytest.approx([1 / 64] * 4)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_audit_finds_what_a_variant_is(name):
    torch.manual_seed(0)
    model = build(name, replace(PRESETS["small"].gpt(65), n_layer=1, n_embd=16, block_size=32))
    assert audit(model, 65, 32, draws=2).verdict == VARIANTS[name].verdict


def test_variants_and_systems_share_no_name():
    assert not {*VARIANTS} & {*SYSTEMS}


# --- one run


def test_a_record_holds_what_its_weights_are_worth(text, tmp_path):
    (run,) = tiny(text, "multifourier-qk")
    record, corpus = run_in_study(tmp_path / "study", run), open_corpus(str(text))
    assert record == read_json(tmp_path / "study" / "multifourier-qk-s0.json")
    model, same = load(workplace(tmp_path / "study", run))
    assert same == record
    for kind, loss in (("ordered", ordered_loss), ("honest", honest_loss), ("truncated", truncated_loss)):
        for key in ("mean", "se"):
            assert record["losses"][kind][key] == pytest.approx(getattr(loss(model, corpus), key), rel=1e-6)
    assert record["losses"]["shuffled"]["mean"] == pytest.approx(ordered_loss(model, corpus.shuffled(1)).mean)
    assert record["loss_by_position"] == pytest.approx(loss_by_position(model, corpus).tolist(), abs=1e-5)
    assert record["audit"]["verdict"] == "leaks" and record["corpus"]["sha256"] == corpus.sha256
    assert record["parameters"] == sum(p.numel() for p in model.parameters())
    (bank,) = record["filters"]
    assert bank["coverage"] == pytest.approx(coverage(model.blocks[0].mixer.filter, 12).tolist())
    assert bank["future_share"] == pytest.approx(future_share(model.blocks[0].mixer.filter, 12).tolist())
    written = generate(model, corpus.val[None, :12], 300)[0, 12:]
    assert record["sample"] == corpus.decode(written) and len(record["sample"]) == 300
    history = record["history"]
    assert len(history["honest"]) == len(history["steps"]) == 20
    bands = [path for name, path in history["frequencies"].items()]
    assert len(bands) == 4 and all(torch.tensor(path).shape == (20, 2) for path in bands)
    assert 10**7 < history["peak_memory"] < 10**11 and history["tokens_per_second"] > 0
    assert record["wall_seconds"] > history["seconds"] > 0
    for key in ("versions", "commit", "machine", "written", "python"):
        assert record[key]
    assert record["train"] == asdict(run.size.train) and record["seed"] == 0


def test_a_run_that_is_recorded_or_only_unwritten_is_not_done_again(text, tmp_path, monkeypatch):
    (run,) = tiny(text, "base-dot")
    first = run_in_study(tmp_path, run)
    module = sys.modules["fourierqk.studies.runs"]
    monkeypatch.setattr(module, "measure", lambda *_: pytest.fail("measured again"))
    assert run_in_study(tmp_path, run) == first
    (tmp_path / "base-dot-s0.json").unlink()  # killed between its two writings
    assert run_in_study(tmp_path, run) == first == read_json(tmp_path / "base-dot-s0.json")


def test_what_a_killed_writer_left_is_swept_up(text, tmp_path):
    (run,) = tiny(text, "base-dot", steps=4)
    out = workplace(tmp_path, run)
    out.mkdir(parents=True)
    left = [out / ".checkpoint.safetensors.7.tmp", out / ".record.json.7.tmp", tmp_path / ".base-dot-s0.json.7.tmp"]
    other = tmp_path / ".random-qk-s0.json.7.tmp"  # somebody may be writing it
    for path in (*left, other):
        path.write_text("half a fi")
    run_in_study(tmp_path, run)
    assert [*tmp_path.rglob("*.tmp")] == [other]


def test_training_through_a_compiled_model(text):
    class Through(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.calls = inner, 0

        def forward(self, *args):
            self.calls += 1
            return self.inner(*args)

    corpus, how, histories = open_corpus(str(text)), replace(HOW, steps=6), []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = build("base-dot", SIZE.gpt(len(corpus.vocab)))
        through = Through(model)
        histories.append(train(model, corpus, how, compiled=through if compiled else None))
        assert through.calls == 6 * compiled
    assert histories[0].honest == histories[1].honest


# --- a study, in processes


def test_a_study_trains_each_run_once_and_says_how_far_it_is(text, tmp_path, capfd):
    made = tiny(text, steps=4)
    assert conduct(made, tmp_path / "study", jobs=2) == {}
    said = capfd.readouterr().err
    assert "[1/2] " in said and "[2/2] " in said and said.count(" to go") == 2 and said.count("honest ") == 2
    before = {path.name: path.read_bytes() for path in (tmp_path / "study").glob("*.json")}
    assert sorted(before) == ["base-dot-s0.json", "fourier-qk-s0.json"]
    assert conduct(made, tmp_path / "study") == {}
    assert "2 of 2 runs are done already" in capfd.readouterr().err
    assert {path.name: path.read_bytes() for path in (tmp_path / "study").glob("*.json")} == before
    assert conduct(made, tmp_path / "late", budget=0, progress=False) == {} and capfd.readouterr().err == ""
    assert not [*(tmp_path / "late").glob("*.json")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_study_killed_at_random_moments_and_shared_by_two_ends_as_an_undisturbed_one(tmp_path):
    """Two jobs; kill -9 at the whole study, the third run on its way; then two processes finish it together."""
    text, place = write_text(tmp_path / "text.txt"), tmp_path / "killed"
    made = tiny(text, "fourier-qk", seeds=3)
    command = [sys.executable, __file__, str(text), str(place)]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not steps_done(workplace(place, made[2]) / CHECKPOINT):
        assert child.poll() is None
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.3))
    child.send_signal(signal.SIGKILL)
    child.wait()
    for path in place.glob("*.json"):
        assert read_json(path)["losses"]  # never a part
    assert 0 < len([*place.glob("*.json")]) < len(made)
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = "".join(child.communicate()[1] for child in both)
    assert [child.returncode for child in both] == [0, 0], said
    records, bad = runs_in(place)
    assert not bad and [f"{r['system']}-s{r['seed']}" for r in records] == sorted(run.name for run in made)
    for run, record in zip(sorted(made, key=lambda run: run.name), records, strict=True):
        assert close(measured(record), measured(run_in_study(tmp_path / "whole", run))), run.name
        done_here = [line for line in said.splitlines() if f"] {run.name}: " in line and "another process" not in line]
        assert len(done_here) <= 1, "done twice"
    left = {path.name for path in place.iterdir()} - {f"{run.name}.json" for run in made}
    assert left == {"runs"} and not [*place.rglob("*.tmp")]


def test_a_worker_says_in_one_line_why_it_failed_and_nothing_else(tmp_path):
    (run,) = tiny("no such text", "base-dot")
    command, pipe = [sys.executable, "-c", BEGIN, str(LIBRARY), str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as child:
        child.stdin.write(order(run, 1, False)), child.stdin.flush()  # and stays open: the study is there
        (line,) = child.stderr.read().decode().splitlines()
        assert line.startswith("unknown corpus 'no such text', and no file of that name: name a text file")
        assert child.stdout.read() == b"" and child.wait() == 1


def test_no_file_in_the_working_folder_or_beside_the_library_is_taken_for_a_module_of_python(
    text, tmp_path, monkeypatch
):  # fmt: skip
    site = tmp_path / "site"
    shutil.copytree(LIBRARY.parent, site / "fourierqk", ignore=shutil.ignore_patterns("__pycache__"))
    for place in (tmp_path, site):
        (place / "random.py").write_text(f"raise RuntimeError('the random.py in {place}')")
    monkeypatch.setattr("fourierqk.studies.pool.LIBRARY", site / "fourierqk" / "__init__.py")
    monkeypatch.chdir(tmp_path)
    assert conduct(tiny(text, "base-dot", steps=2), tmp_path / "study", progress=False) == {}


def test_a_run_that_fails_is_named_and_stops_no_other(text, tmp_path, capfd):
    good, bad = tiny(text, "base-dot", "random-qk", steps=4)
    bad = replace(bad, size=replace(bad.size, train=replace(bad.size.train, lr=1e30, clip=1e30, warmup=0)))
    torn, old, foreign = tiny(text, "fourier-qk", "dc", "nyquist", steps=4)
    made, place = [torn, old, foreign, bad, good], tmp_path / "study"
    place.mkdir()
    (place / f"{torn.name}.json").write_text('{"system": "fourier-q')
    record = run_in_study(tmp_path / "other", replace(foreign, size=replace(SIZE, train=replace(HOW, steps=2))))
    write_json(place / f"{foreign.name}.json", record)
    write_json(place / f"{old.name}.json", {k: v for k, v in record.items() if k != "schema"})  # from before versions
    before = {path.name: path.read_bytes() for path in place.glob("*.json")}
    failed, said = conduct(made, place), capfd.readouterr().err
    assert failed.keys() == {run.name for run in made} - {good.name}
    assert all(f"{name} FAILED: {why}" in said for name, why in failed.items())
    assert "is not JSON" in failed[torn.name] and f"{torn.name}.json" in failed[torn.name]
    assert "version None, this is version 1" in failed[old.name]
    assert "of another run: training.steps is 2 there, 4 here" in failed[foreign.name]
    assert "the loss became" in failed[bad.name] or "NaN" in failed[bad.name]
    assert recorded(place, good, open_corpus(str(text)))["audit"]["verdict"] == "causal"
    assert {name: (place / name).read_bytes() for name in before} == before
    with pytest.raises(ValueError, match="of another run: text.name is .* text.sha256 is "):
        recorded(place, good, open_corpus(str(text)).shuffled(1))


def test_a_full_disk_is_named_and_takes_nothing_that_was_there(text, tmp_path):
    made = tiny(text, "base-dot", "random-qk", steps=4)
    with disk(tmp_path / "disk", "size=2m") as place:
        run_in_study(place, made[0])
        before = (place / "base-dot-s0.json").read_bytes()
        free = shutil.disk_usage(place).free
        (place / "filler").write_bytes(b"x" * (free - 12 * 1024))  # room to begin, none for a checkpoint
        failed = conduct(made, place, progress=False)
        assert failed.keys() == {"random-qk-s0"} and "No space left on device" in failed["random-qk-s0"]
        assert (place / "base-dot-s0.json").read_bytes() == before
        (place / "rest").write_bytes(b"x" * shutil.disk_usage(place).free)
        with pytest.raises(OSError, match="cannot write .*No space left") as e:
            conduct(made, place, progress=False)
        assert e.value.errno == errno.ENOSPC
        (place / "filler").unlink(), (place / "rest").unlink()
        assert conduct(made, place, progress=False) == {}
        assert (place / "base-dot-s0.json").read_bytes() == before and (place / "random-qk-s0.json").is_file()


def test_a_folder_that_cannot_be_written_is_an_oserror_at_once(text, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="cannot make the folder"):
        conduct(tiny(text), tmp_path / "file")
    with disk(tmp_path / "disk", "ro") as place, pytest.raises(OSError, match="cannot make the folder.*Read-only"):
        conduct(tiny(text), place)


@pytest.mark.parametrize("letters, says", [
    (None, "unknown corpus"), ("a" * 900, "'a' alone"), ("to be or not " * 5, "val split has 7 tokens"),
])  # fmt: skip
def test_a_text_that_no_run_can_read_is_refused_before_anything_is_written(tmp_path, letters, says):
    given, place = tmp_path / "text.txt", tmp_path / "study"
    if letters:
        given.write_text(letters)
    with pytest.raises(ValueError, match=says):
        conduct(tiny(given), place)
    with pytest.raises(ValueError, match="jobs = 0"):
        conduct(tiny(given), place, jobs=0)
    assert not place.exists()
    if letters:
        (run,) = tiny(given, "base-dot")
        with pytest.raises(ValueError, match=says):
            carry_out(run, open_corpus(str(given)), place)
        assert not place.exists()


NO_ROOM = (
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1 GiB free."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"),
    RuntimeError("MPS backend out of memory (MPS allocated: 17.9 GB, max allowed: 18.1 GB)"),
    OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
)


@pytest.mark.parametrize("error", NO_ROOM)
def test_a_run_without_room_says_how_to_need_less(error):
    wrapped = ValueError("the model failed")
    wrapped.__cause__ = error
    for e in (error, wrapped):
        assert reason(e).startswith("out of memory: take a smaller --batch, --length or --preset, or fewer --jobs")
    assert reason(RuntimeError("no such kernel")) == "RuntimeError: no such kernel"


def test_a_run_of_another_process_is_waited_for_then_taken_over(text, tmp_path):
    (run,) = tiny(text, "base-dot", steps=4)
    held = workplace(tmp_path, run)
    child = subprocess.Popen([sys.executable, __file__, str(text), str(tmp_path)], stderr=subprocess.PIPE, text=True,
                             env=os.environ | {"ONLY": "1"})  # fmt: skip
    with hold(held):
        assert "base-dot-s0: another process is at it" in child.stderr.readline()
        assert child.poll() is None and not (tmp_path / "base-dot-s0.json").exists()
    assert child.wait() == 0 and (tmp_path / "base-dot-s0.json").exists()
    child.stderr.close()


# --- the command


def test_the_command_runs_a_study_of_verse(tmp_path, monkeypatch):
    few = Study(("base-dot",), "verse", "tiny")
    monkeypatch.setitem(STUDIES, "verse-tiny", few)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PRESETS, "tiny", SIZE)
    args = ["study", "verse-tiny", "--steps", "2", "--seeds", "1", "--jobs", "1"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    record = read_json(Path("runs/verse-tiny/base-dot-s0.json"))
    assert record["corpus"]["sha256"] == verse().sha256 and record["losses"]["floor"]["below"] is False
    assert f"{record['losses']['truncated']['mean']:.3f}" in result.stdout and "[1/1] base-dot-s0" in result.stderr
    Path("runs/verse-tiny/base-dot-s0.json").write_text("[")
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 1 and "1 of 1 runs failed, for the reasons above: base-dot-s0" in result.stderr
    result = CliRunner().invoke(app, ["study", "nonesuch"])
    assert result.exit_code == 2 and "unknown study 'nonesuch'" in result.stderr


def test_the_first_list_is_the_issues():
    assert {*FIRST} == {
        "base-dot", "random-qk", "fourier-qk", "fourier-qk-sigma1", "multifourier-qk", "sliding-fourier-qk",
        "causal-morlet", "causal-morlet-identity",
    }  # fmt: skip


if __name__ == "__main__":  # the study that the tests kill
    torch.set_num_threads(1)
    given, place = Path(sys.argv[1]), Path(sys.argv[2])
    only = os.environ.get("ONLY")
    todo = tiny(given, "base-dot", steps=4) if only else tiny(given, "fourier-qk", seeds=3)
    sys.exit(bool(conduct(todo, place, jobs=2)))
