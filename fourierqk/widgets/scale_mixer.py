"""ScaleMixer: four bands of one width, the kernels that they make, and what recorded models learned, live."""
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import traitlets as t

from fourierqk import records
from fourierqk.combinators import Sum
from fourierqk.filters import Gaussian, period
from fourierqk.widgets import Number, Widget, module
from fourierqk.widgets.still import FUTURE, PAST, Curve, chart

START = (50.0, 26.0, 10.0, 5.0)  # the paper's, in tokens
FASTEST, SLOWEST, NARROWEST, WIDEST = 2.1, 256, 0.002, 0.2  # tokens a cycle, cycles per token
STUDIES = {"verse": "verse-tiny", "Shakespeare": "shakespeare-small"}


def recorded() -> dict[str, list[list[float]]]:
    """Of each text, the four bands' periods at the end of multifourier-qk's runs: one of each head, layer and seed."""
    found = {}
    for text, study in STUDIES.items():
        runs = records.study(study)["multifourier-qk"]
        freqs = torch.tensor([[last[-1] for last in r["history"]["frequencies"].values()] for r in runs])
        each = freqs.unflatten(1, (-1, len(START))).permute(2, 0, 1, 3).flatten(1)  # (4, seeds x layers x heads)
        found[text] = [[float(f"{1 / f:.4g}") for f in band] for band in each.tolist()]
    return found


class _Learned(t.TraitType):
    """A synced dictionary: a name -> of each of the four bands a list of periods in tokens."""

    def validate(self, obj: t.HasTraits, value: Any) -> Any:
        if isinstance(value, Mapping):
            found = {str(name): [[float(p) for p in band] for band in bands] for name, bands in value.items()}
            if all(len(b) == len(START) and all(len(p) and min(p) >= 2 for p in b) for b in found.values()):
                return found
        raise t.TraitError(f"{self.name} must have four lists of periods, 2 tokens or more, behind each name")


class ScaleMixer(Widget):
    """Four bands of a head on one axis: what each hears, what they make together, and where trained models put them.

    period1 to period4: tokens a cycle, 2.1 to 256. width: the standard deviation of all four, 0.002 to 0.2 cycles per
    token. learned: periods to mark, a name -> four lists, one a band; of multifourier-qk's runs on record if None. For
    a model of yours, `{"mine": torch.cat(learned_periods(model), 1).tolist()}` (`fourierqk.analysis`).

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "scale_mixer"
    _esm = module(script)
    period1, period2, period3, period4 = (Number(p, FASTEST, SLOWEST, "tokens") for p in START)
    width = Number(2 / 256, NARROWEST, WIDEST, "cycles per token")
    learned = _Learned().tag(sync=True)

    def __init__(
        self, period1: float = START[0], period2: float = START[1], period3: float = START[2],
        period4: float = START[3], width: float = 2 / 256, learned: Mapping[str, Sequence] | None = None,
    ) -> None:  # fmt: skip
        learned = recorded() if learned is None else learned
        super().__init__(
            period1=period1, period2=period2, period3=period3, period4=period4, width=width, learned=learned
        )

    @property
    def filter(self) -> Sum:
        """The four bands added to one filter, from fourierqk.combinators: hand it to a model."""
        each = (self.period1, self.period2, self.period3, self.period4)
        return Sum(*(Gaussian(period(p), self.width) for p in each))

    def picture(self) -> str:
        h, lags = self.filter.impulse(1024).reshape(-1, 1024)[0], range(-96, 97)
        return chart(
            "The kernel of all four bands: the future red, the past blue", "lag (tokens)", "weight",
            Curve([*lags[:97]], [h[lag].item() for lag in lags[:97]], FUTURE),
            Curve([*lags[96:]], [h[lag].item() for lag in lags[96:]], PAST),
        )  # fmt: skip
