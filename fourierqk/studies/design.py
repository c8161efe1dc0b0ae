"""Studies as data: which systems are trained on which text, at which size, with how many seeds."""
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fourierqk.checks import check_count, nearest, unknown_name
from fourierqk.data import TASKS, Corpus, metre, shakespeare, task, text, verse
from fourierqk.records import SCHEMA
from fourierqk.training import PRESETS, Preset, TrainConfig
from fourierqk.zoo import SYSTEMS
from fourierqk.zoo import system as look_up

__all__ = ["STUDIES", "Run", "Study", "find_preset", "find_study", "open_corpus"]


@dataclass(frozen=True)
class Run:
    """One training of one system: everything that decides what comes out, but for the machine.

    corpus: a name that `open_corpus` takes. preset: what the record calls the size. The seed and the number of steps
    are those of `size.train`. setting: what tells it from other runs of a study with this system and seed.
    """

    system: str
    corpus: str
    preset: str
    size: Preset
    setting: str = ""

    @property
    def seed(self) -> int:
        return self.size.train.seed

    @property
    def name(self) -> str:
        """What its files are called, within a study."""
        return f"{self.system}-{self.setting}-s{self.seed}" if self.setting else f"{self.system}-s{self.seed}"

    def check(self, corpus: Corpus) -> None:
        """ValueError where a text has too few symbols or too few characters for this run: before any work is done."""
        if len(corpus.vocab) < 2:
            raise ValueError(f"{corpus.name} has {corpus.vocab[0]!r} alone: there is nothing to predict in such a text")
        corpus.check_window(self.size.block_size)

    def heading(self, corpus: Corpus) -> dict[str, Any]:
        """How its record on a text begins, before anything is measured: all that `records.identity` asks for."""
        return {
            "schema": SCHEMA,
            "system": self.system,
            "preset": self.preset,
            "seed": self.seed,
            "model": asdict(self.size.gpt(len(corpus.vocab))),
            "train": asdict(self.size.train),
            "corpus": {"name": corpus.name, "sha256": corpus.sha256, "entropy_rate": corpus.entropy_rate},
        }

    def as_dict(self) -> dict[str, Any]:
        """All of it in types that JSON knows; `from_dict` makes the run again."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Run":
        size = dict(data["size"])
        return cls(**{**data, "size": Preset(**{**size, "train": TrainConfig(**size["train"])})})


@dataclass(frozen=True)
class Study:
    """Runs of several systems that are alike in all but the system and the seed.

    systems: the most telling first. seeds: how many, from first_seed. Instead of the preset's: steps of training,
    eval_every, those between two evaluations, batch, windows a step, and length, tokens a window. settings: further
    changes to the preset, by name (see `Preset.changed`); each of them makes all runs anew. own: changes of single
    systems, each tuned by itself.
    """

    systems: tuple[str, ...]
    corpus: str
    preset: str
    seeds: int = 3
    steps: int | None = None
    eval_every: int | None = None
    batch: int | None = None
    length: int | None = None
    first_seed: int = 0
    settings: tuple[Mapping[str, Any], ...] = ({},)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def runs(self) -> tuple[Run, ...]:
        """All runs, seed by seed and setting by setting, so that a study cut short compares its systems.

        ValueError for an unknown name.
        """
        size = find_preset(self.preset)
        if not self.systems or len({*self.systems}) < len(self.systems):
            raise ValueError(f"systems = {','.join(self.systems)!r} must name at least one, and none twice")
        if self.length is not None:
            check_count(self.length, "length", 2)
        check_count(self.seeds, "seeds")
        instead = {"steps": self.steps, "eval_every": self.eval_every, "batch": self.batch, "block_size": self.length}
        size = size.changed(**{name: value for name, value in instead.items() if value is not None})
        return tuple(
            self._run(look_up(s).name, size, setting, seed)
            for seed in range(self.first_seed, self.first_seed + self.seeds)
            for setting in self.settings
            for s in self.systems
        )

    def _run(self, system: str, size: Preset, setting: Mapping[str, Any], seed: int) -> Run:
        changes = {**setting, **self.own.get(system, {}), "seed": seed}
        return Run(system, self.corpus, self.preset, size.changed(**changes), self._label(setting))

    def _label(self, setting: Mapping[str, Any]) -> str:
        """What tells a setting from the others, as part of a file's name: lr=0.003,dropout=0.1."""
        first = self.settings[0]
        telling = [name for name in setting if any(other.get(name) != first.get(name) for other in self.settings)]
        return ",".join(f"{name}={setting[name]:g}" for name in telling)


FIRST = (
    "base-dot", "fourier-qk", "multifourier-qk", "sliding-fourier-qk", "causal-morlet", "random-qk",
    "causal-morlet-identity", "fourier-qk-sigma1",
)  # fmt: skip
STARTS = ("fourier-qk-from26", "fourier-qk-from10")
# filters without a future, their taps and scales varied one at a time
CAUSAL = (
    "base-dot", "causal-morlet", "causal-morlet-identity", "fourier-qk-past128", "fourier-qk-past16",
    "fourier-qk-past2", "causal-morlet-min4", "causal-morlet-scale2", "causal-morlet-scale4",
)  # fmt: skip
# what is raced: the baselines, the field's own methods, then ours, each with and without rotary positions
RACED = (
    "base-dot", "base-rope", "one-tap", "short-conv", "short-conv-rope", "kv-shift", "kv-shift-rope", "token-shift",
    "token-shift-rope", "fourier-qk-past2", "late-key", "prefix-fourier-qk", "prefix-fourier-rope", "late-fourier",
    "late-fourier-rope", "dealt-fourier", "dealt-fourier-rope", "taps-resonator", "taps-resonator-rope",
    "sliding-fourier-qk", "sliding-fourier-rope", "causal-morlet", "causal-morlet-rope", "sliding-random-qk",
    "sliding-multifourier-qk",
)  # fmt: skip
HALVES = "shakespeare-halves"  # one half of the held-out text to choose by, the other to report on
RATES = (1e-2, 3e-2, 3e-3)
CELLS = ((1e-2, 0.0), (3e-3, 0.0), (3e-2, 0.0), (1e-2, 0.1), (1e-3, 0.0), (3e-3, 0.1), (1e-3, 0.1))  # rate, dropout
RECIPE = {"beta2": 0.99, "lr_end": 0.1}  # of nanoGPT, for small models
# What has a known answer: one layer, so that a filter along time cannot be replaced by a layer below.
ANSWERED = ("echo-2", "echo-12", "echo-48", "beat-24", "beat-48", "recall-4", "recall-8", "select-2", "select-4")
ANSWERING = (
    "base-dot", "base-rope", "short-conv", "short-conv-rope", "late-key", "late-fourier-rope", "dealt-fourier-rope",
    "taps-resonator-rope", "sliding-fourier-rope", "prefix-fourier-rope",
)  # fmt: skip
# later all causal systems lie together, just above verse's floor
SHORT: dict[str, Any] = dict(seeds=2, steps=400, eval_every=50)
# How the first studies were trained, before the baseline was tuned: their records stay until they are made again.
FIRST_TINY = {"lr": 3e-3, "beta2": 0.95, "lr_end": 0.0}
FIRST_SMALL = {"lr": 1e-3, "dropout": 0.1, "beta2": 0.95, "lr_end": 0.0}

STUDIES: dict[str, Study] = {
    "verse-tiny": Study((*FIRST, "fourier-qk-padded"), "verse", "tiny", settings=(FIRST_TINY,)),  # and no wrap-round
    "shakespeare-small": Study(FIRST, "shakespeare", "small", settings=(FIRST_SMALL,)),
    # every other system, and base-dot anew: it too is to be judged after so few steps
    "shakespeare-small-once": Study(
        ("base-dot", *(s for s in SYSTEMS if s not in FIRST)), "shakespeare", "small", seeds=1, steps=600,
        settings=(FIRST_SMALL,),
    ),
    "causal-verse": Study(
        (*CAUSAL, "causal-gaussian", "causal-mexican-hat", "causal-morlet-learned"), "verse", "tiny",
        settings=(FIRST_TINY,), **SHORT,
    ),
    "causal-shakespeare": Study(CAUSAL, "shakespeare", "tiny", settings=(FIRST_TINY,), **SHORT),
    # the fair race; its protocol is a page of the book
    "race-calibrate": Study(
        ("base-dot", "base-rope"), HALVES, "small", seeds=1, first_seed=100,
        settings=tuple({"lr": lr, "dropout": drop, **RECIPE} for lr, drop in CELLS),
    ),
    "race-recipe": Study(
        ("base-dot", "base-rope"), HALVES, "small", seeds=1, first_seed=100,
        settings=tuple({"lr": 1e-2, "dropout": 0.0, **RECIPE, **other} for other in ({"beta2": 0.95}, {"lr_end": 0.0})),
    ),
    # nanoGPT's recipe for a CPU (config/train_shakespeare_char.py and its README), at the size of `small`
    "race-nanogpt": Study(
        ("base-dot",), HALVES, "small", seeds=1, first_seed=100, length=64, batch=12, steps=2000,
        settings=({"lr": 1e-3, "dropout": 0.0, "warmup": 100, **RECIPE},),
    ),
    "race-screen": Study(
        RACED, HALVES, "tiny", seeds=2, first_seed=100, settings=tuple({"lr": lr, **RECIPE} for lr in (*RATES, 1e-1)),
    ),
    # those that the protocol sends to the main stage, at the rates that the baselines had in the calibration
    "race-rates": Study(
        ("short-conv", "short-conv-rope", "sliding-multifourier-qk", "dealt-fourier", "dealt-fourier-rope"), HALVES,
        "small", seeds=1, first_seed=100, settings=tuple({"lr": lr, "dropout": 0.0, **RECIPE} for lr in RATES),
    ),
    # tasks with known answers; what was expected of them is written down with the records
    **{
        f"task-{name}": Study(
            ANSWERING, name, "tiny", seeds=2, steps=400, batch=8,
            settings=tuple({"lr": lr, "n_layer": 1, **RECIPE} for lr in RATES),
        )
        for name in ANSWERED
    },
    "task-metre": Study(ANSWERING, "metre", "tiny", seeds=2, settings=tuple({"lr": lr, **RECIPE} for lr in RATES)),
    "shakespeare-paper": Study((*FIRST, *STARTS), "shakespeare", "paper"),  # for a GPU
}


def find_study(name: str, **changes: Any) -> Study:
    """A study by its name; changes: fields to replace, None leaves one as it is. ValueError for an unknown name.

    At another preset it is trained as that preset says, without settings of its own.
    """
    if name not in STUDIES:
        raise ValueError(unknown_name("study", name, STUDIES))
    given: dict[str, Any] = {"settings": ({},), "own": {}} if changes.get("preset") is not None else {}
    return replace(STUDIES[name], **given | {field: value for field, value in changes.items() if value is not None})


def find_preset(name: str) -> Preset:
    """A size by its name; ValueError for an unknown one."""
    if name not in PRESETS:
        raise ValueError(unknown_name("preset", name, PRESETS))
    return PRESETS[name]


def open_corpus(name: str) -> Corpus:
    """The text of a name: verse, metre, a task ("echo-12"), shakespeare, -words or -halves of it, or a file.

    With -masked behind the name, its tokens are hidden and asked for (`Corpus.masked`). ValueError where it is none.
    """
    known: dict[str, Callable[[], Corpus]] = {
        "verse": verse, "metre": metre,
        "shakespeare": shakespeare, "shakespeare-words": lambda: shakespeare(level="word"),
        "shakespeare-halves": lambda: shakespeare().halved(),
    }  # fmt: skip
    if name.endswith("-masked") and not Path(name).exists():
        return open_corpus(name.removesuffix("-masked")).masked()
    if name in known:
        return known[name]()
    if name.partition("-")[0] in TASKS:
        return task(name)
    if Path(name).is_dir():
        raise ValueError(f"the corpus {name} is a folder: name a text file in it, or one of {', '.join(known)}")
    if not Path(name).exists():
        files = [str(path) for path in Path(name).parent.glob("*") if path.is_file()]
        meant = nearest(name, [*known, *files]) or f"name a text file, or one of {', '.join(known)}"
        raise ValueError(f"unknown corpus {name!r}, and no file of that name: {meant}")
    return text(name)
