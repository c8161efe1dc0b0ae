"""SeedBench: forty studies of one true difference over a few seeds each, and what their intervals say, live."""
import functools
import itertools
import math

import torch
import traitlets as t

from fourierqk.records import t_quantile
from fourierqk.widgets import Number, Whole, Widget, module, uniform
from fourierqk.widgets.still import INK, Curve, Spans, chart

STUDIES, MOST = 40, 10  # studies, seeds of a study
TABLE = 1  # which numbers: of the first tables, one whose counts are near what very many studies give
INTERVALS = {"student": lambda seeds: t_quantile(seeds - 1), "normal": lambda seeds: 1.96}  # half widths, in s.e.


class SeedBench(Widget):
    """Forty imaginary studies that compare a system with a baseline over a few seeds, and their 95 % intervals.

    In a study every seed gives a pair of runs, and the pair a difference of honest losses, system minus baseline:
    the true one, plus spread times a standard normal number. difference: the true one, -0.1 to 0.1 nats per token;
    0 is a system like the baseline. spread: the standard deviation over seeds, 0.002 to 0.1 nats per token. seeds: 2 to
    10. interval: "student", the mean plus or minus Student's quantile times the standard error, as the tables of
    fourierqk.records have it, or "normal", plus or minus 1.96 standard errors. The normal numbers come from one fixed
    table, so that a change of a setting moves the intervals and draws no new ones; a further seed joins those before.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "seed_bench"
    _esm = module(script)
    difference = Number(-0.03, -0.1, 0.1, "nats per token")
    spread = Number(0.02, 0.002, 0.1, "nats per token")
    seeds = Whole(3, 2, MOST, "seeds")
    interval = t.Enum(tuple(INTERVALS), "student").tag(sync=True)

    def __init__(
        self, difference: float = -0.03, spread: float = 0.02, seeds: int = 3, interval: str = "student"
    ) -> None:
        super().__init__(difference=difference, spread=spread, seeds=seeds, interval=interval)

    @property
    def studies(self) -> torch.Tensor:
        """The difference that each seed of each study finds (40, seeds), nats per token, float64."""
        return self.difference + self.spread * _normals()[:, : self.seeds]

    @property
    def intervals(self) -> torch.Tensor:
        """Both ends of each study's interval (40, 2), nats per token, float64."""
        x = self.studies
        half = INTERVALS[self.interval](self.seeds) * x.std(1) / math.sqrt(self.seeds)
        return torch.stack([x.mean(1) - half, x.mean(1) + half], 1)

    @property
    def counts(self) -> dict[str, int]:
        """How many of the forty intervals lie below zero ("lower"), hold it ("undecided"), lie above ("higher").

        "misses": how many do not hold the true difference.
        """
        low, high = self.intervals.T
        lower, higher = int((high < 0).sum()), int((low > 0).sum())
        misses = int(((low > self.difference) | (high < self.difference)).sum())
        return {"lower": lower, "undecided": STUDIES - lower - higher, "higher": higher, "misses": misses}

    def picture(self) -> str:
        rows = [
            Spans([(low, high, -i - 0.8, -i - 0.3, 0.8)], _ink(low, high))
            for i, (low, high) in enumerate(self.intervals.tolist())
        ]
        truth = Curve([self.difference] * 2, [-STUDIES, 0], INK, dashed=True), Curve([0, 0], [-STUDIES, 0], INK)
        title = "The studies' intervals; the true difference is dashed"
        ticks = {-1: "1", -STUDIES: str(STUDIES)}
        return chart(title, "system minus baseline (nats per token)", "study", *rows, *truth, yticks=ticks)

def _ink(low: float, high: float) -> str:
    return "#e06000" if high < 0 else "#6633ff" if low > 0 else "#7a7a7a"  # lower, higher, undecided


@functools.cache
def _normals() -> torch.Tensor:
    """The fixed table of standard normal numbers (40, 10), float64 (Box and Muller 1958)."""
    u = torch.tensor([*itertools.islice(uniform(TABLE), STUDIES * MOST)], dtype=torch.float64).view(-1, 2)
    z = torch.polar((-2 * (1 - u[:, 0]).log()).sqrt(), 2 * math.pi * u[:, 1])
    return torch.view_as_real(z).reshape(STUDIES, MOST)
