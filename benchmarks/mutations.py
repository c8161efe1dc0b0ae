"""Does the suite notice a fault? Break a line of the library, and see which test fails; one line a file.

    python benchmarks/mutations.py            # all; exit status 1 if one survives
    python benchmarks/mutations.py model zoo  # those of the files whose names hold one of these words

Each is made in a copy of the repository, and the tests that ought to see it run until the first of them fails. A test
kills a fault only if it passes without: those that failed run once more, in a copy that is whole.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["MUTATIONS", "Mutation", "main"]

ROOT = Path(__file__).resolve().parents[1]


class Mutation(NamedTuple):
    """A line of fourierqk/`file`, a wrong one in its place, and pytest's words for the tests that ought to see it."""

    file: str
    right: str
    wrong: str
    tests: str


MUTATIONS = (
    Mutation("filters.py", "torch.exp(-2j * math.pi * lag", "torch.exp(2j * math.pi * lag", "test_filters.py"),
    Mutation("parts.py", "(n - 1, n - h.shape[-1])", "(n - 2, n + 1 - h.shape[-1])", "test_filters.py"),  # one ahead
    Mutation("channels.py", "clamp_min(1e-30) ** -0.25", "clamp_min(1e-30) ** -0.5", "test_channels.py"),
    Mutation("combinators.py", "torch.cat(flat) / math.sqrt(len(", "torch.cat(flat) / (len(", "test_combinators.py"),
    Mutation("model.py", "is_causal=self.cfg.causal", "is_causal=False", "test_model.py"),
    Mutation("zoo.py", "PERIODS = (50, 26, 10, 5)", "PERIODS = (50, 26, 10, 6)", "test_zoo.py -k formula"),
    Mutation("losses.py", "_nats(model, x, y, last=1)]), where)", "_nats(model, x, y, last=2)]), where)",
             "test_leakage.py"),
    Mutation("adapter.py", "m.training = mode", "m.training = False", "test_audit_tool.py -k left"),
    Mutation("storage.py", "indent=1, allow_nan=False", "indent=1, allow_nan=True", "test_train.py -k or_refused"),
    Mutation("data/corpus.py", "return w[:, :-1], w[:, 1:]", "return w[:, :-1], w[:, :-1]", "test_data.py"),
    Mutation("data/grammar.py", "math.fsum(w * c.p * len(c.text)", "math.fsum(w * c.p * 1", "test_verse.py"),
    Mutation("data/spectrum.py", "- 2 * cross", "- cross", "test_spectrum.py -k indicators"),
    Mutation("data/words.py", "if n > 1)", "if n > 2)", "test_words.py"),
    Mutation("training/loop.py", "(step - warmup) / (cfg.steps", "step / (cfg.steps", "test_train.py -k schedule"),
    Mutation("causality/movement.py", ">= self.cut[:, None], 0)", "> self.cut[:, None], 0)", "test_audit_tool.py"),
    Mutation("causality/steadiness.py", "dof = runs - 1", "dof = runs", "test_steadiness.py"),
    Mutation("analysis/kernels.py", "energy[:, : n - 1].sum(-1) / energy", "energy[:, :n].sum(-1) / energy",
             "test_analysis.py -k share"),
    Mutation("analysis/phases.py", "stream._replace(role=0)", "stream", "test_analysis.py -k share_their"),
    Mutation("records/identity.py", 'INCIDENTAL = ("device",)', "INCIDENTAL = ()", "test_records.py"),
    Mutation("records/statistics.py", "sqrt(variance(d) / len(d))", "sqrt(variance(d))", "test_records.py -k paired"),
    Mutation("reckoning/judges.py", 'harm = -e.gain(system, "ordered")', 'harm = e.gain(system, "ordered")',
             "test_reckoning.py"),
    Mutation("specimens/rivals.py", "influence.triu(1).max()", "influence.triu(0).max()", "test_specimens.py"),
)  # fmt: skip


def copy(folder: str) -> Path:
    """A copy of the repository as it lies here, without what git ignores."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.strip("\0").split("\0"):
        if (ROOT / name).exists():
            (to := Path(folder, name)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to)
    return Path(folder)


def failed(place: Path, *words: str) -> list[str]:
    """The tests that fail in a copy, of those that pytest's words choose."""
    command = [sys.executable, "-m", "pytest", "-q", "-r", "fE", "-p", "no:cacheprovider", *words]
    env = os.environ | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}  # the copy, not what is installed
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        sys.exit(f"pytest stopped with status {done.returncode}: {words}\n{done.stdout[-2000:]}{done.stderr}")
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)


def killer(place: Path, mutation: Mutation) -> str | None:
    """The first test that fails while the mutation is in the copy; None if all pass."""
    path = place / "fourierqk" / mutation.file
    text = path.read_text("utf8")
    if (times := text.count(mutation.right)) != 1:
        sys.exit(f"{mutation.file} has {mutation.right!r} {times} times, not once: bring the list up to date")
    path.write_text(text.replace(mutation.right, mutation.wrong), "utf8")
    tests = [f"tests/{word}" if word.endswith(".py") else word for word in mutation.tests.split()]
    found = failed(place, "-x", *tests)
    path.write_text(text, "utf8")
    return found[0] if found else None


def main(words: list[str]) -> int:
    """Print a line for each mutation: whether a test kills it, and which."""
    chosen = [m for m in MUTATIONS if not words or any(word in m.file for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        place, killers = copy(folder), {}
        for m in chosen:
            killers[m] = killer(place, m)
            print(f"{'killed' if killers[m] else 'SURVIVED':9}{m.file:26}{killers[m] or m.tests}", flush=True)
        idle = failed(place, *filter(None, {*killers.values()}))
    if idle:
        print("these fail without a fault too:", *idle, sep="\n")
    return bool(idle) or None in killers.values()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
