"""RhythmFinder: the spectrum of a text, and the text in rows of one period, live."""
import torch
import traitlets as t

from fourierqk.data import Spectrum, text_spectrum
from fourierqk.widgets import MARKS, Number, Text, Widget, module
from fourierqk.widgets.still import INK, Curve, chart

WINDOW = 256  # tokens
SHORTEST, LONGEST = 16, 4096  # characters
TEXT = "The tide comes in, the tide goes out, all day.\n" * 12
KINDS = {"spaces": MARKS["spaces"], "lines": lambda c: c == "\n", **MARKS}
LISTEN = ("all", *KINDS)


class RhythmFinder(Widget):
    """A text and one of its rhythms: the spectrum, and the text written in rows as long as the period.

    text: 16 to 4096 characters. listen: the tokens that count, "all" characters or one kind against the rest:
    "spaces" (line ends included), "lines" (line ends), "vowels" or "capitals". period: in tokens per cycle, 2 to 256.
    The spectrum is `text_spectrum` in windows of 256 tokens, or of the whole text if it is shorter. In the rows the
    tokens listened to are marked; at "all", each that stands again in its place one row on.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "rhythm_finder"
    _esm = module(script)
    text = Text(TEXT, SHORTEST, LONGEST)
    listen = t.Enum(LISTEN, "all").tag(sync=True)
    period = Number(8.0, 2, WINDOW, "tokens per cycle")

    def __init__(self, text: str = TEXT, listen: str = "all", period: float = 8.0) -> None:
        super().__init__(text=text, listen=listen, period=period)

    @property
    def ids(self) -> torch.Tensor:
        """The tokens listened to, as numbers (N,)."""
        mark = KINDS.get(self.listen, ord)
        return torch.tensor([int(mark(c)) for c in self.text])

    @property
    def spectrum(self) -> Spectrum:
        """What the widget shows. ValueError where nothing in the text changes."""
        return text_spectrum(self.ids, min(WINDOW, len(self.text)))

    def picture(self) -> str:
        found = self.spectrum
        freq, power = found.freq[1:].log2().tolist(), found.relative[1:].tolist()
        ticks = {-float(k): f"{2**k}" for k in range(1, 9) if -k >= freq[0]}
        marks = Curve(freq, power), Curve([freq[0], -1], [1, 1], INK, dashed=True)
        return chart("Spectrum of the text", "tokens per cycle (log axis)", "power / chance", *marks, xticks=ticks)
