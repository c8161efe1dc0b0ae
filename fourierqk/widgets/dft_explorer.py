"""DFTExplorer: one arrow a letter, laid head to tail, and the spectrum of how far they lead, live."""
from collections.abc import Callable

import torch
import traitlets as t

from fourierqk.widgets import Number, Text, Whole, Widget, module
from fourierqk.widgets.still import Bars, chart

TEXT = "when wild wind will wake warm west wave wide wood wolf wine "
LONGEST, ZEROS = 96, 192  # characters of a line; most zeros that are appended
WINDOWS: dict[str, Callable[..., torch.Tensor]] = {
    "rectangular": lambda n, **precision: torch.ones(n, **precision),
    "hann": lambda n, **precision: torch.hann_window(n, periodic=False, **precision),
    "hamming": lambda n, **precision: torch.hamming_window(n, periodic=False, **precision),
    "blackman": lambda n, **precision: torch.blackman_window(n, periodic=False, **precision),
}


class DFTExplorer(Widget):
    """The discrete Fourier transform as a walk: an arrow turns at every token, and is laid down at one of the letters.

    text: a line of 2 to 96 characters, of which the first `length`, 2 to 96, are heard (all of a shorter line). letter:
    the signal is 1 where it stands, 0 elsewhere. frequency: turns of the arrow a token, 0 to 1/2; `length` times that
    is k, the turns along the line, whole for a bin of the DFT. window: weight of each token, "rectangular" (1), "hann",
    "hamming" or "blackman", symmetric. zeros: 0 to 192, appended before the transform: more points of the same curve.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "dft_explorer"
    _esm = module(script)
    text = Text(TEXT, 2, LONGEST)
    letter = Text("w", 1, 1)
    length = Whole(40, 2, LONGEST, "characters")
    frequency = Number(1 / 5, 0, 0.5, "cycles per token")
    window = t.Enum(tuple(WINDOWS), "rectangular").tag(sync=True)
    zeros = Whole(0, 0, ZEROS)

    def __init__(
        self, text: str = TEXT, letter: str = "w", length: int = 40, frequency: float = 1 / 5,
        window: str = "rectangular", zeros: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(text=text, letter=letter, length=length, frequency=frequency, window=window, zeros=zeros)

    @property
    def signal(self) -> torch.Tensor:
        """The arrows' lengths (n,), float64: the window where the letter stands, 0 elsewhere."""
        heard = self.text[: self.length]
        hits = torch.tensor([float(c == self.letter) for c in heard], dtype=torch.float64)
        return hits * WINDOWS[self.window](len(heard), dtype=torch.float64)

    @property
    def walk(self) -> torch.Tensor:
        """Where the arrows lead after each token (n,), complex."""
        x = self.signal
        angle = -2 * torch.pi * self.frequency * torch.arange(len(x), dtype=torch.float64)
        return torch.polar(x, angle).cumsum(0)

    @property
    def spectrum(self) -> torch.Tensor:
        """The DFT of the signal and its zeros, bins 0 to half, complex."""
        x = self.signal
        return torch.fft.rfft(x, n=len(x) + self.zeros)

    def picture(self) -> str:
        size = self.spectrum.abs()
        bins = [k / (2 * (len(size) - 1)) for k in range(len(size))]
        title = f"How far the arrows of {self.letter!r} lead, for every frequency"
        return chart(title, "frequency (cycles per token)", "length of the sum", Bars(bins, size.tolist(), width=0.004))
