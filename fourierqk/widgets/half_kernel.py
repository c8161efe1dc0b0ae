"""HalfKernel: half a wavelet in so many taps, its response, and what of it lies beyond Nyquist, live."""
from collections.abc import Callable

import torch
import traitlets as t

from fourierqk.filters import CausalFilter, CausalGaussian, CausalMexicanHat, Morlet
from fourierqk.widgets import Number, Whole, Widget, module
from fourierqk.widgets.still import PAST, Bars, Curve, chart

SMALLEST, LARGEST, MOST = 2, 64, 256  # scales in tokens, taps
SHAPES: dict[str, Callable[..., CausalFilter]] = {
    "gaussian": CausalGaussian, "mexican-hat": CausalMexicanHat, "morlet": Morlet,
}  # fmt: skip


class HalfKernel(Widget):
    """One half of a bell or a wavelet as the library runs it: the taps, and the response with its mirror of aliases.

    shape: "gaussian", "mexican-hat" or "morlet", the paper's causal filters S5, S6 and S7. scale: 2 to 64 tokens.
    taps: 1 to 256. It shows which share of the kernel's energy the taps hold, what passes at DC, and how much energy
    of the curve, before it is sampled once a token, lies beyond Nyquist.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "half_kernel"
    _esm = module(script)
    shape = t.Enum(tuple(SHAPES), "morlet").tag(sync=True)
    scale = Number(8.0, SMALLEST, LARGEST, "tokens")
    taps = Whole(128, 1, MOST)

    def __init__(self, shape: str = "morlet", scale: float = 8.0, taps: int = 128) -> None:
        super().__init__(shape=shape, scale=scale, taps=taps)

    @property
    def filter(self) -> CausalFilter:
        """The filter now on show, from fourierqk.filters: hand it to a model."""
        return SHAPES[self.shape](self.scale, taps=self.taps)

    def picture(self) -> str:
        taps, f = self.filter.kernel()[0, :64].real.tolist(), torch.linspace(0, 0.5, 257)
        gain = self.filter.response(f)[0].abs()
        return chart("The taps, real part", "lag (tokens)", "weight", Bars(range(len(taps)), taps, PAST)) + chart(
            "Its response", "cycles per token", "gain / peak gain", Curve(f.tolist(), (gain / gain.max()).tolist())
        )
