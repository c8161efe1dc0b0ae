"""PhaseScrambler: a line of text as a signal, its amplitudes kept, its phases shifted or scrambled, live."""
import math

import torch
import traitlets as t

from fourierqk.widgets import MARKS, Number, Text, Whole, Widget, module, uniform
from fourierqk.widgets.still import INK, Curve, chart

TEXT = "The tide comes in, the tide goes out, all day."
LONGEST = 256  # characters of a line
SHIFT, SEEDS = 32, 99  # most tokens of a shift, either way; highest seed


class PhaseScrambler(Widget):
    """A signal whose amplitudes all stay while its phases change: a phase surrogate, made by hand.

    text: 1 to 256 characters, made a signal of 0s and 1s by `signal`: 1 at "spaces" (line ends included), "vowels" or
    "capitals". shift: tokens, -32 to 32; frequency f turns by 2 pi f shift, and the line moves round its circle.
    scramble: 0 to 1, the share of a random angle, uniform in [-pi, pi) and another one for each frequency, that is
    added. seed: 0 to 99, which angles. DC and, where n is even, Nyquist must be real, and no angle is added to them.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "phase_scrambler"
    _esm = module(script)
    text = Text(TEXT, 1, LONGEST)
    signal = t.Enum(tuple(MARKS), "spaces").tag(sync=True)
    shift = Whole(0, -SHIFT, SHIFT, "tokens")
    scramble = Number(0.0, 0, 1)
    seed = Whole(0, 0, SEEDS)

    def __init__(
        self, text: str = TEXT, signal: str = "spaces", shift: int = 0, scramble: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__(text=text, signal=signal, shift=shift, scramble=scramble, seed=seed)

    @property
    def line(self) -> torch.Tensor:
        """The signal as it was (n,), float64."""
        return torch.tensor([float(MARKS[self.signal](c)) for c in self.text], dtype=torch.float64)

    @property
    def surrogate(self) -> torch.Tensor:
        """The signal with its phases changed (n,), float64."""
        x = self.line.roll(self.shift)
        z = torch.fft.rfft(x)
        draw = uniform(self.seed)
        inner = range(1, (len(x) + 1) // 2)  # all but DC and Nyquist
        angles = torch.tensor([2 * math.pi * self.scramble * (next(draw) - 0.5) for _ in inner], dtype=torch.float64)
        z[1 : 1 + len(angles)] *= torch.polar(torch.ones_like(angles), angles)
        return torch.fft.irfft(z, n=len(x))

    def picture(self) -> str:
        tokens, before, after = range(len(self.text)), self.line.tolist(), self.surrogate.tolist()
        lines = Curve(tokens, before, INK, dashed=True), Curve(tokens, after)
        return chart("The line before (dashed) and after its phases changed", "position (tokens)", "signal", *lines)
