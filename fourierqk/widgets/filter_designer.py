"""FilterDesigner: a filter's frequency response, impulse response and effect on a line of text, live."""
import math
from collections.abc import Callable

import torch
import traitlets as t

from fourierqk.combinators import Causal, SlidingDFT
from fourierqk.filters import Filter, Gaussian, MexicanHat, Morlet
from fourierqk.parts import check_frequency
from fourierqk.widgets import MARKS, Text, Widget, module
from fourierqk.widgets.formula import Formula, compiled
from fourierqk.widgets.still import FUTURE, PAST, Curve, chart

TAPS = 128  # reach of the causal families, in tokens: the default of fourierqk.filters
TEXT = "The tide comes in, the tide goes out, all day."
FORMULA = "exp(-((f - c) / w)^2 / 2)"
LONGEST, LENGTHY = 512, 200  # characters of a line, and of a formula


def _morlet(frequency: float, bandwidth: float, _: str) -> Filter:
    """A Gaussian envelope of scale a has a spectrum of standard deviation 1 / (2 pi a): hence a, and omega0."""
    return Morlet(scale=1 / (2 * math.pi * bandwidth), omega0=frequency / bandwidth, taps=TAPS)


FAMILIES: dict[str, Callable[[float, float, str], Filter]] = {  # of centre, bandwidth and formula
    "gaussian": lambda f, w, _: Gaussian(f, w),
    "mexican-hat": lambda f, w, _: MexicanHat(f),
    "causal-gaussian": lambda f, w, _: Causal(Gaussian(f, w), TAPS),
    "causal-mexican-hat": lambda f, w, _: Causal(MexicanHat(f), TAPS),
    "causal-morlet": _morlet,
    "sliding-gaussian": lambda f, w, _: SlidingDFT(Gaussian(f, w), TAPS),
    "own": lambda f, w, text: Formula(text, f, w),
    "causal-own": lambda f, w, text: Causal(Formula(text, f, w), TAPS),
}


class FilterDesigner(Widget):
    """A filter on the bench: its frequency response, its impulse response and what it makes of a line of text.

    family: "gaussian", "mexican-hat" (two-sided), "causal-gaussian", "causal-mexican-hat" (their future cut off),
    "causal-morlet", "sliding-gaussian", "own" (two-sided: the response is the formula) or "causal-own"; the causal ones
    reach back 128 tokens. formula: of f, the frequency, c, the centre, and w, the bandwidth, with pi, + - * / ^ < > and
    brackets, abs, cos, exp, log, max, min, sin and sqrt: "f < c" is 1 below the centre, else 0. frequency: its centre,
    inside (0, 1/2); bandwidth: a standard deviation, in (0, 1/2]; both in cycles per token (a Mexican hat has no
    bandwidth of its own). text: 1 to 512 characters, made a signal of 0s and 1s by `signal`: 1 at "spaces" (line ends
    included), "vowels" or "capitals". position: the token, from 0, whose view of the line is shaded; the middle if
    None, the last if beyond the end.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "filter_designer"
    _esm = module(script)
    family = t.Enum(tuple(FAMILIES), "gaussian").tag(sync=True)
    frequency = t.Float(1 / 16).tag(sync=True)
    bandwidth = t.Float(1 / 64).tag(sync=True)
    formula = Text(FORMULA, 1, LENGTHY)
    text = Text(TEXT, 1, LONGEST)
    signal = t.Enum(tuple(MARKS), "spaces").tag(sync=True)
    position = t.Int(0, min=0).tag(sync=True)

    def __init__(
        self, family: str = "gaussian", frequency: float = 1 / 16, bandwidth: float = 1 / 64,
        text: str = TEXT, signal: str = "spaces", position: int | None = None, formula: str = FORMULA,
    ) -> None:  # fmt: skip
        position = len(text) // 2 if position is None else position
        super().__init__(
            family=family, frequency=frequency, bandwidth=bandwidth, text=text, signal=signal, position=position,
            formula=formula,
        )  # fmt: skip

    @property
    def filter(self) -> Filter:
        """The filter now on the bench, from fourierqk.filters: hand it to a model."""
        return FAMILIES[self.family](self.frequency, self.bandwidth, self.formula)

    @t.validate("frequency")
    def _check_frequency(self, proposal: t.Bunch) -> float:
        try:
            check_frequency(torch.tensor(proposal["value"], dtype=torch.float64))
        except ValueError as e:
            raise t.TraitError(str(e)) from None
        return proposal["value"]

    @t.validate("bandwidth")
    def _check_bandwidth(self, proposal: t.Bunch) -> float:
        if not 0 < proposal["value"] <= 0.5:
            raise t.TraitError(f"bandwidth {proposal['value']} must lie inside (0, 1/2] cycles per token")
        return proposal["value"]

    @t.validate("formula")
    def _check_formula(self, proposal: t.Bunch) -> str:
        try:
            compiled(proposal["value"])
        except ValueError as e:
            raise t.TraitError(f"formula {proposal['value']!r}: {e}") from None
        return proposal["value"]

    def picture(self) -> str:
        f, lags = torch.linspace(0, 0.5, 257), range(-64, TAPS)
        gain = self.filter.response(f).detach().abs().reshape(-1, len(f))[0]
        h = self.filter.impulse(1024).detach().reshape(-1, 1024)[0].real
        passed = Curve(f.tolist(), (gain / gain.max()).tolist())
        return chart("Frequency response", "cycles per token", "gain / peak gain", passed) + chart(
            "Impulse response: the future red, the past blue", "lag (tokens)", "weight",
            Curve([*lags[:65]], [h[lag].item() for lag in lags[:65]], FUTURE),
            Curve([*lags[64:]], [h[lag].item() for lag in lags[64:]], PAST),
        )  # fmt: skip
