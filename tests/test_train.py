"""Training: the same losses after a kill, whatever else drew random numbers, and nothing lost when something fails."""
import errno
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from fourierqk import GPT, CausalFilter, Gaussian, GPTConfig, Unit
from fourierqk.data.corpus import Corpus
from fourierqk.model import filter_parameters
from fourierqk.storage import Busy, hold, read_json, read_tensors, taken, write_json, write_tensors
from fourierqk.training.loop import PRESETS, History, TrainConfig, load, lr_schedule, optimiser, train
from fourierqk.zoo import SYSTEMS, build

pytestmark = pytest.mark.usefixtures("one_thread")
CFG = TrainConfig(steps=12, batch=4, warmup=2, eval_every=4, eval_windows=8, device="cpu")
FILE, LOCK = "checkpoint.safetensors", ".lock"
module = sys.modules["fourierqk.training.loop"]  # the package gives its name to the function


WIDE = Unit(Gaussian(4 / 16, 2 / 16, heads=2, learn=True))  # wide enough to learn from windows of 16 tokens


def text(name="dice", n=2000, symbols=5, seed=0):
    rng = torch.Generator().manual_seed(seed)
    draw = lambda n: torch.randint(symbols, (n,), generator=rng)  # noqa: E731
    return Corpus(name, draw(n), draw(n // 2), tuple("abcdefgh"[:symbols]))


def gpt(system="fourier-qk", dropout=0.0, seed=0, **shape):
    torch.manual_seed(seed)
    small = dict(vocab_size=5, block_size=16, n_layer=1, n_head=2, n_embd=16, dropout=dropout)
    cfg = GPTConfig(**small | shape)
    return build(system, cfg) if isinstance(system, str) else GPT(cfg, system)


def measured(history):
    """A history without what the clock and the machine had a say in."""
    return {k: v for k, v in asdict(history).items() if k not in ("seconds", "tokens_per_second", "peak_memory")}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


# --- resuming

def long_run(out, dropout):
    model = gpt(WIDE, dropout)
    return model, train(model, text(), replace(CFG, steps=400, eval_every=10), out=out)


@pytest.mark.slow
def test_a_run_killed_at_random_moments_ends_at_the_same_losses(tmp_path):
    """Real processes, killed by SIGKILL after their first evaluation; the last one is left to finish."""
    dropout = 0.3
    command = [sys.executable, __file__, str(tmp_path / "killed"), str(dropout)]
    reached = 0
    for _ in range(2):
        child = subprocess.Popen(command)
        while _steps_done(tmp_path / "killed") <= reached:
            assert child.poll() is None, "the run ended before it could be killed"
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.1))
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        reached = _steps_done(tmp_path / "killed")
    assert 0 < reached < 400
    assert subprocess.run(command).returncode == 0
    resumed, history = long_run(tmp_path / "killed", dropout)  # finished: this only loads it
    undisturbed, expected = long_run(tmp_path / "whole", dropout)
    assert measured(history) == measured(expected)
    assert same(resumed.state_dict(), undisturbed.state_dict())


def _steps_done(out):
    if not (out / FILE).exists():
        return 0
    return max(read_tensors(out / FILE)[1]["history"]["steps"], default=0)


def test_a_finished_run_is_loaded_not_repeated(tmp_path, monkeypatch):
    first = gpt(dropout=0.1)
    history = train(first, text(), CFG, out=tmp_path)
    monkeypatch.setattr(module, "_step", lambda *_: pytest.fail("trained again"))
    again = gpt(dropout=0.1, seed=5)
    assert asdict(train(again, text(), CFG, out=tmp_path)) == asdict(history)
    assert same(first.state_dict(), again.state_dict())
    assert not any(k.startswith(("model.", "optimiser.")) for k in read_tensors(tmp_path / FILE)[0])


def test_resume_false_starts_anew(tmp_path):
    train(gpt(), text(), CFG, out=tmp_path)
    other = replace(CFG, seed=1)
    assert measured(train(gpt(), text(), other, out=tmp_path, resume=False)) == measured(train(gpt(), text(), other))


def compiled(module):
    return torch.compile(module, backend="eager")


def with_compiled_blocks(model):
    model.blocks = torch.nn.ModuleList(map(compiled, model.blocks))
    return model


@pytest.fixture
def distributed():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    "wrap",
    [
        compiled, torch.nn.DataParallel, with_compiled_blocks, lambda m: torch.nn.DataParallel(compiled(m)),
        torch.nn.parallel.DistributedDataParallel,
    ],
    ids=["compiled", "data parallel", "blocks compiled", "both", "distributed"],
)  # fmt: skip
def test_what_is_put_around_a_model_is_trained_through_and_stored_without(tmp_path, wrap, distributed):
    seen = []
    hooked = gpt(WIDE)
    through = wrap(hooked)
    through.register_forward_pre_hook(lambda m, _: seen.append(m))
    history = train(through, text(), CFG, out=tmp_path / "wrapped")
    assert len([m for m in seen if m is through]) >= 12 and not through.training
    bare = gpt(WIDE)
    assert measured(history) == measured(train(bare, text(), CFG, out=tmp_path / "bare"))
    weights = (read_tensors(tmp_path / place / FILE)[0] for place in ("wrapped", "bare"))
    assert same(*weights)
    again = wrap(gpt(WIDE, seed=1))
    assert load(tmp_path / "bare", again)[0] is again and load(tmp_path / "wrapped", gpt(WIDE, seed=2))
    assert all(map(torch.equal, again.parameters(), bare.parameters()))
    assert measured(train(wrap(gpt(WIDE)), text(), CFG, out=tmp_path / "bare")) == measured(history)  # resumed


def never_begun(out):
    """A run that was stopped before its first evaluation."""
    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "honest_loss", _interrupt)
        train(gpt(), text(), CFG, out=out)


def test_a_run_that_never_began_blocks_no_other(tmp_path):
    never_begun(tmp_path)
    other = replace(CFG, batch=2)
    expected = measured(train(gpt("base-dot"), text(), other))
    assert measured(train(gpt("base-dot"), text(), other, out=tmp_path)) == expected


@pytest.mark.parametrize("holds", ['{"mine": 1}', '{"system": "fou'])
def test_what_is_left_of_a_run_without_its_checkpoint_is_refused_unless_begun_anew(tmp_path, holds):
    (record := tmp_path / "record.json").write_text(holds)
    with pytest.raises(ValueError, match=f"record.json has no {FILE} beside it: take another.*resume=False"):
        train(gpt(), text(), CFG, out=tmp_path)
    assert record.read_text() == holds
    train(gpt(), text(), CFG, out=tmp_path, resume=False)
    assert not record.exists()


# --- what a run may depend on

def test_neither_the_callers_random_numbers_nor_the_model_change_what_a_run_sees(monkeypatch):
    seen, step = [], module._step

    def record(model, opt, x, *rest):
        seen.append(x.clone())
        return step(model, opt, x, *rest)

    monkeypatch.setattr(module, "_step", record)
    a = train(gpt(dropout=0.3), text(), CFG)
    model = gpt(dropout=0.3)
    torch.manual_seed(1234)  # the caller's business
    b = train(model, text(), CFG)
    train(gpt("base-dot"), text(), CFG)
    assert measured(a) == measured(b)
    first, second, third = (torch.stack(seen[i : i + 12]) for i in (0, 12, 24))
    assert torch.equal(first, second) and torch.equal(first, third)
    train(gpt("base-dot"), text(), replace(CFG, seed=1))
    assert not torch.equal(third, torch.stack(seen[36:]))


def test_the_callers_random_numbers_are_untouched():
    model = gpt(dropout=0.3)
    before = torch.get_rng_state()
    train(model, text(), CFG)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_masks_differ_from_step_to_step():
    masks = []
    model = gpt(dropout=0.5)
    model.drop.register_forward_hook(lambda m, _, y: masks.append(y == 0) if m.training else None)
    train(model, text(), CFG)
    assert len(masks) == 12 and not any(torch.equal(a, b) for a, b in zip(masks, masks[1:], strict=False))


# --- learning

def test_a_periodic_text_is_learned_to_its_entropy_which_is_zero():
    cycle = torch.arange(5).repeat(400)
    corpus = Corpus("cycle", cycle, cycle[:600], tuple("abcde"))
    model = gpt("base-dot")
    history = train(model, corpus, replace(CFG, steps=150, batch=8, lr=1e-2, eval_every=50))
    assert history.steps == [50, 100, 150]
    assert history.ordered[-1] < 0.02 and history.honest[-1] < 0.02 < history.train[0]
    assert not model.training


@pytest.mark.parametrize("steps, warmup", [(100, 10), (100, 0), (10, 50), (1, 50)])
def test_schedule_is_a_ramp_and_half_a_cosine(steps, warmup):
    cfg = TrainConfig(steps=steps, warmup=warmup)
    w = min(warmup, steps // 2)
    expected = [(s + 1) / w for s in range(w)]
    expected += [math.cos(math.pi / 2 * (s - w) / (steps - w)) ** 2 for s in range(w, steps)]
    assert [lr_schedule(s, cfg) for s in range(steps)] == pytest.approx(expected)
    assert lr_schedule(steps, cfg) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("system", SYSTEMS)
def test_groups_hold_every_parameter_once_and_filters_apart(system):
    model = gpt(system)
    opt = optimiser(model, TrainConfig(lr=2e-3, weight_decay=0.3))
    filters = {id(p) for p in filter_parameters(model)}
    held = [(p, g) for g in opt.param_groups for p in g["params"]]
    assert sorted(id(p) for p, _ in held) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    for p, g in held:
        special = id(p) in filters
        assert g["weight_decay"] == (0.3 if p.dim() >= 2 and not special else 0)
        assert g["lr"] == pytest.approx(2e-2 if special else 2e-3)
        assert g["betas"] == (0.9, 0.95)
    assert bool(filters) == any(".logit" in name and p.requires_grad for name, p in model.named_parameters())


def test_filter_lr_moves_the_frequencies_and_the_history_follows_them():
    slow, fast = (train(m := gpt(WIDE), text(), replace(CFG, filter_lr=lr)) for lr in (1e-9, 0.1))
    (name, path), = slow.frequencies.items()
    assert torch.tensor(path) == pytest.approx(4 / 16, abs=1e-5)
    path = torch.tensor(fast.frequencies[name])  # (evaluations, heads), cycles per token
    assert path.shape == (3, 2) and (path - 4 / 16).abs().max() > 1e-3
    last = m.blocks[0].mixer.filter.inner.centre().flatten()
    assert path[fast.steps.index(fast.best_step)].tolist() == pytest.approx(last.tolist(), abs=1e-6)


@pytest.mark.parametrize("scripted, best", [([3.0, 1.0, 2.0], 8), ([1.0, 1.0, 1.0], 4), ([3.0, 2.0, 1.0], 12)])
def test_the_weights_of_the_lowest_ordered_loss_are_left_in_the_model(monkeypatch, tmp_path, scripted, best):
    states, values, real = {}, iter(scripted), module.ordered_loss

    def ordered(model, *args, **kwargs):
        states[4 * (len(states) + 1)] = {k: v.clone() for k, v in model.state_dict().items()}
        return replace(real(model, *args, **kwargs), mean=next(values))

    monkeypatch.setattr(module, "ordered_loss", ordered)
    model = gpt()
    history = train(model, text(), CFG, out=tmp_path)
    assert history.best_step == best and history.ordered == scripted
    assert same(model.state_dict(), states[best]) and not same(states[4], states[12])
    assert same(load(tmp_path, gpt(seed=3))[0].state_dict(), states[best])


# --- precision and device

@pytest.mark.parametrize("precision", ["auto", "float32", "bfloat16"])
def test_training_runs_in_the_precision_asked_for_and_evaluation_in_float32(precision):
    seen = {True: set(), False: set()}
    model = gpt()
    model.head.register_forward_hook(lambda m, _, y: seen[m.training].add(y.dtype))
    with torch.autocast("cpu", torch.bfloat16):  # whatever the caller is in
        history = train(model, text(), replace(CFG, precision=precision))
    assert seen[True] == {torch.bfloat16 if precision == "bfloat16" else torch.float32}
    assert seen[False] == {torch.float32}
    assert history.precision == ("float32" if precision == "auto" else precision) and history.device.startswith("cpu")
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_trains_in_bfloat16(system):
    history = train(gpt(system), text(), replace(CFG, precision="bfloat16"))
    assert history.ordered[-1] == pytest.approx(math.log(5), abs=0.3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_is_used_without_a_flag_and_resumes():
    model = gpt(dropout=0.3)
    history = train(model, text(), replace(CFG, device="auto"))
    assert next(model.parameters()).is_cuda and history.device == torch.cuda.get_device_name()


# --- things that go wrong

@pytest.mark.parametrize(
    "wrong, says",
    [
        (dict(steps=0), "steps = 0"), (dict(batch=1.5), "batch = 1.5"), (dict(eval_every=0), "eval_every"),
        (dict(lr=0), "lr = 0"), (dict(lr=math.nan), "lr = nan"), (dict(filter_lr=-1), "filter_lr = -1"),
        (dict(clip=0), "clip = 0"), (dict(weight_decay=-1), "weight_decay"), (dict(seed=-1), "seed = -1"),
        (dict(seed=2**63), "seed = .* at most"),
        (dict(precision="float16"), "precision = 'float16'"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        TrainConfig(**wrong)


def test_model_and_corpus_must_fit():
    with pytest.raises(ValueError, match="5 symbols, the model 3.*vocab_size=5"):
        train(gpt(vocab_size=3), text(), CFG)
    with pytest.raises(ValueError, match="block_size"):
        train(torch.nn.Linear(2, 2), text(), CFG)
    with pytest.raises(ValueError, match="17"):
        train(gpt(), text(n=20), CFG)
    for device in ("abacus", "cuda:99"):
        with pytest.raises(ValueError, match=f"'{device}' cannot be used.*'auto'"):
            train(gpt(), text(), replace(CFG, device=device))
    with pytest.raises(ValueError, match="the val split has 10 tokens, a window needs 17"):
        train(gpt(), replace(text(), val=text().val[:10]), replace(CFG, steps=10**9))


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[: len(b) // 2], lambda b: b[:4], lambda b: b"", lambda b: b"<p>no</p>" * 9, lambda b: b + b"more"],
    ids=["half", "header", "empty", "html", "longer"],
)
def test_a_torn_or_foreign_checkpoint_is_named_and_left_alone(tmp_path, damage):
    train(gpt(), text(), CFG, out=tmp_path)
    file = tmp_path / FILE
    file.write_bytes(torn := damage(file.read_bytes()))
    with pytest.raises(ValueError, match=rf"cannot resume: {file} is torn.*resume=False"):
        train(gpt(), text(), CFG, out=tmp_path)
    assert file.read_bytes() == torn
    train(gpt(), text(), CFG, out=tmp_path, resume=False)


def test_a_checkpoint_of_another_program_is_named(tmp_path):
    from safetensors.torch import save_file

    save_file({"w": torch.ones(2)}, tmp_path / FILE)
    with pytest.raises(ValueError, match="not one of fourierqk's"):
        train(gpt(), text(), CFG, out=tmp_path)
    write_tensors(tmp_path / FILE, {"w": torch.ones(2)}, {"unlike": 1})
    with pytest.raises(ValueError, match="cannot resume"):
        train(gpt(), text(), CFG, out=tmp_path)


@pytest.mark.parametrize(
    "model, corpus, cfg, says",
    [
        (gpt, text, replace(CFG, lr=2e-3, seed=4), r"train.lr is 0.001 there, 0.002 here; train.seed is 0 there, 4"),
        (lambda: gpt("multifourier-qk"), text, CFG, r"filters.*type is Gaussian there, Bank here"),
        (lambda: gpt(Unit(Gaussian(9 / 256, 2 / 256, 2, learn=True))), text, CFG, r"start is \[0.0156.* there, \[0.03"),
        (lambda: gpt(Unit(Gaussian(4 / 256, 3 / 256, 2, learn=True))), text, CFG, r"width is 0.0078125 there, 0.0117"),
        (lambda: gpt(n_layer=2), text, CFG, r"model.n_layer is 1 there, 2 here"),
        (gpt, lambda: text(seed=1), CFG, r"corpus.sha256"),
        (gpt, lambda: text(name="other"), CFG, r"corpus.name is dice there, other here"),
    ],
    ids=["config", "system", "start", "width", "shape", "text", "name"],
)
def test_a_checkpoint_of_another_run_is_refused_with_what_differs(tmp_path, model, corpus, cfg, says):
    train(gpt(), text(), CFG, out=tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(ValueError, match=says):
        train(model(), corpus(), cfg, out=tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_folder_that_cannot_be_written_is_an_oserror_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_step", lambda *_: pytest.fail("trained first"))
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=f"cannot make the folder {out}"):
            train(gpt(), text(), CFG, out=out)


@contextmanager
def disk(folder, options):
    """A file system of its own in memory, where the tester has the right to mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no right to mount a disk in memory")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_two_processes_never_train_in_one_folder(tmp_path):
    """The other one is named; its lock goes with it, however it ends."""
    child = subprocess.Popen([sys.executable, __file__, str(tmp_path), "0.0"])
    while _steps_done(tmp_path) < 10:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGSTOP)
    with pytest.raises(Busy, match=f"in use by another process .process {child.pid} on .*since .*another folder"):
        train(gpt(), text(), CFG, out=tmp_path, resume=False)
    assert taken(tmp_path)
    child.kill(), child.wait()
    assert not taken(tmp_path) and not taken(tmp_path / "nowhere")
    assert train(gpt(), text(), CFG, out=tmp_path, resume=False).steps[-1] == 12


def test_who_holds_a_folder_may_train_in_it(tmp_path):
    with hold(tmp_path), hold(tmp_path):
        assert train(gpt(), text(), CFG, out=tmp_path).steps[-1] == 12
        assert taken(tmp_path)
    assert not taken(tmp_path) and (tmp_path / LOCK).read_text() == ""


def test_a_lock_holds_where_the_disk_has_no_room_for_a_word(tmp_path):
    with disk(tmp_path / "disk", "size=4096") as out:
        with pytest.raises(OSError, match="No space"):
            (out / "filler").write_bytes(b"x" * 5000)
        with hold(out):
            assert taken(out) and (out / LOCK).read_text() == ""


def refusing(number):
    def call(*_):
        raise OSError(number, os.strerror(number))

    return call


def test_a_disk_without_locks_or_syncs_is_warned_of_once_and_trained_on(tmp_path, monkeypatch):
    monkeypatch.setattr("fourierqk.storage._warned", set())
    monkeypatch.setattr("fcntl.flock", refusing(errno.ENOLCK))
    monkeypatch.setattr(os, "fsync", refusing(errno.EINVAL))
    with pytest.warns(UserWarning) as said:
        train(gpt(), text(), CFG, out=tmp_path / "a")
        train(gpt(), text(), CFG, out=tmp_path / "b")
    syncs, locks = sorted(str(w.message) for w in said)
    assert locks.startswith(f"{tmp_path / 'a'}: its disk has no locks") and "another disk (No locks avail" in locks
    assert syncs.startswith(f"{tmp_path / 'a'}: its disk does not promise") and "Keep a copy" in syncs
    assert not taken(tmp_path / "a")
    monkeypatch.setattr("fcntl.flock", refusing(errno.EIO))  # no lack, but a broken disk
    with pytest.raises(OSError, match=f"cannot lock {tmp_path / 'a' / LOCK}: Input/output error"):
        train(gpt(), text(), CFG, out=tmp_path / "a")


def test_a_read_only_disk_is_an_oserror(tmp_path):
    with disk(tmp_path / "disk", "ro") as out, pytest.raises(OSError, match=f"cannot write {out}/.*: Read-only"):
        train(gpt(), text(), CFG, out=out)


def test_a_full_disk_leaves_the_earlier_checkpoint_whole(tmp_path, monkeypatch):
    fsync, calls = os.fsync, []

    def full(fd):  # delayed allocation: the write succeeds, the fsync finds no room; the third checkpoint meets it
        calls.append(fd)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return fsync(fd)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"cannot write {tmp_path / FILE}: No space left on device.*intact") as e:
        train(gpt(), text(), CFG, out=tmp_path)
    assert e.value.errno == errno.ENOSPC
    assert {*os.listdir(tmp_path)} == {FILE, LOCK} and _steps_done(tmp_path) == 4
    assert measured(train(gpt(), text(), CFG, out=tmp_path)) == measured(train(gpt(), text(), CFG))


def test_a_really_full_disk(tmp_path):
    size = len(_bytes_of_a_checkpoint(tmp_path / "probe"))
    with disk(tmp_path / "disk", f"size={size // 4096 * 4096 + 8192}") as out:
        with pytest.raises(OSError, match="No space left on device"):
            train(gpt(), text(), CFG, out=out)  # room for one checkpoint, not for its successor beside it
        assert {*os.listdir(out)} == {FILE, LOCK} and read_tensors(out / FILE)


def _bytes_of_a_checkpoint(out):
    never_begun(out)
    return (out / FILE).read_bytes()


def _interrupt(*args, **kwargs):
    raise KeyboardInterrupt


class Breaks(GPT):
    """A GPT whose loss is not a number from its 7th training step on."""

    calls = 0

    def forward(self, idx, targets=None):
        logits, loss = super().forward(idx, targets)
        self.calls += self.training
        return logits, loss * math.nan if self.calls >= 7 and self.training else loss


def test_a_loss_that_is_no_number_names_the_step_and_keeps_the_checkpoint(tmp_path):
    with pytest.raises(FloatingPointError, match=r"loss became nan at step 7: lower lr \(now 0.001\)"):
        train(Breaks(gpt().cfg), text(), CFG, out=tmp_path)
    assert _steps_done(tmp_path) == 4
    weights = load(tmp_path, gpt("base-dot", seed=1))[0].state_dict()
    assert all(w.isfinite().all() for w in weights.values())


def test_weights_that_break_at_the_last_step_are_found_by_the_evaluation():
    with pytest.raises(FloatingPointError, match="at step 1:"):
        train(gpt("base-dot"), text(), replace(CFG, steps=1, lr=1e38, weight_decay=100.0))


# --- records

def test_history_survives_json():
    history = train(gpt(), text(), CFG)
    assert History.from_json(history.to_json()) == history
    assert history.tokens_per_second > 0 and history.seconds > 0
    lists = (history.train, history.ordered, history.ordered_se, history.honest, history.honest_se)
    assert all(len(x) == len(history.steps) == 3 for x in lists)
    for bad in ("", "[1]", '{"stairs": []}'):
        with pytest.raises(ValueError, match="not the JSON of a History"):
            History.from_json(bad)


def test_load_builds_the_system_that_a_record_names(tmp_path):
    trained = gpt("causal-morlet")
    train(trained, text(), CFG, out=tmp_path)
    with pytest.raises(ValueError, match="names no system.*model="):
        load(tmp_path)
    write_json(tmp_path / "record.json", {"system": "causal-morlet", "model": asdict(trained.cfg), "note": 1})
    model, record = load(tmp_path)
    assert record["note"] == 1 and not model.training and same(model.state_dict(), trained.state_dict())
    with pytest.raises(ValueError, match="do not fit this model"):
        load(tmp_path, gpt("base-dot", n_embd=32))
    with pytest.raises(FileNotFoundError, match="no run in"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "other, says",
    [
        (lambda: gpt(Unit(Gaussian(4 / 256, 3 / 256, 2, learn=True))), r"width is 0.0078125 there, 0.01171875 here"),
        (lambda: gpt("multifourier-qk"), "type is Gaussian there, Bank here"),
        (lambda: gpt("base-dot"), "type is Unit there, AllPass here"),
        (lambda: gpt(Unit(Gaussian(4 / 256, 2 / 256, 2))), r"logit is None there, \(2, 1\)"),
        (lambda: gpt(block_size=8), "model.block_size is 16 there, 8 here"),
    ],
    ids=["width", "bank", "none", "fixed", "shape"],
)
def test_load_refuses_another_model_than_was_trained(tmp_path, other, says):
    """Even where all weights have the same names and shapes."""
    train(gpt(), text(), CFG, out=tmp_path)
    with pytest.raises(ValueError, match=f"{FILE} do not fit this model: .*{says}"):
        load(tmp_path, other())


class Taps(CausalFilter):
    """A fixed kernel that only a buffer knows."""

    def __init__(self, *taps):
        super().__init__()
        self.register_buffer("taps", torch.tensor([taps]))

    def kernel(self):
        return self.taps


def test_what_only_a_buffer_knows_tells_two_runs_apart(tmp_path):
    train(gpt(Taps(1.0, 0.5)), text(), CFG, out=tmp_path)
    train(gpt(Taps(1.0, 0.5 + 1e-7)), text(), CFG, out=tmp_path)  # another machine's round-off
    for other in (Taps(0.5, 1.0), Taps(1.0, 0.5, 0.0)):
        with pytest.raises(ValueError, match="filters.*taps is"):
            train(gpt(other), text(), CFG, out=tmp_path)


def test_load_refuses_a_run_that_was_never_evaluated(tmp_path):
    _bytes_of_a_checkpoint(tmp_path)
    with pytest.raises(ValueError, match="no evaluated weights"):
        load(tmp_path, gpt())


def test_json_records_are_whole_or_refused(tmp_path):
    file = tmp_path / "record.json"
    write_json(file, {"a": [1, 2.5, None]})
    assert read_json(file) == {"a": [1, 2.5, None]} and os.listdir(tmp_path) == ["record.json"]
    with pytest.raises(ValueError):
        write_json(file, {"a": math.nan})
    assert json.loads(file.read_text()) == {"a": [1, 2.5, None]}
    for torn in ('{"a": [1, 2', "[1]"):
        file.write_text(torn)
        with pytest.raises(ValueError, match=str(file)):
            read_json(file)


def test_presets_are_the_sizes_the_book_names():
    names = ("n_layer", "n_head", "n_embd")
    shapes = {k: (*(p.model[n] for n in names), p.block_size, p.train.batch) for k, p in PRESETS.items()}
    large = (6, 8, 256, 256, 64)
    assert shapes == {
        "tiny": (2, 4, 64, 128, 16), "small": (4, 4, 128, 128, 16), "paper": large, "paper-fast-filters": large
    }  # fmt: skip
    paper = PRESETS["paper"].train
    assert (paper.steps, paper.lr, paper.warmup, paper.weight_decay, paper.clip) == (5000, 3e-4, 200, 0.1, 1.0)
    assert paper.filter_lr == paper.lr and PRESETS["paper-fast-filters"].train == replace(paper, filter_lr=3e-3)
    assert PRESETS["small"].train.steps == 1500
    assert PRESETS["paper"].gpt(65) == GPTConfig(65)  # the paper's model is the default one


def test_no_bar_where_nobody_sees_it_and_one_on_demand(capfd):
    train(gpt(), text(), CFG)
    assert capfd.readouterr() == ("", "")
    train(gpt(), text(), CFG, progress=True)
    assert "12/12" in "".join(capfd.readouterr())


if __name__ == "__main__":  # the child that the first test kills
    torch.set_num_threads(1)
    long_run(Path(sys.argv[1]), float(sys.argv[2]))


@pytest.mark.parametrize("corpus, cfg, says", [
    ("verse", CFG, "expected a Corpus, got 'verse': write verse"),
    (PRESETS["tiny"], CFG, "expected a Corpus, got Preset"),
    (text(), PRESETS["tiny"], r'expected a TrainConfig, .* got a Preset: .*PRESETS\["tiny"\].train'),
    (text(), 500, "expected a TrainConfig, how to train, got a int"),
])  # fmt: skip
def test_what_is_no_text_and_no_training_is_explained_before_anything_is_written(tmp_path, corpus, cfg, says):
    with pytest.raises(ValueError, match=says):
        train(gpt(), corpus, cfg, tmp_path / "run")
    assert not (tmp_path / "run").exists()
