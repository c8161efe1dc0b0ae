"""GapBench: what confidence and a look into the future do to the shuffled gap, in closed form, live."""
import math

import traitlets as t

from fourierqk.widgets import Number, Widget, module
from fourierqk.widgets.still import Bars, chart

LEAKS = ("any", "real")
LETTERS, TRUE, SURE = 32, 0.8, 0.98  # of the text; chances of the successor, and of what the reader sees


class GapBench(Widget):
    """A reader of a simple text, its losses on the text and on the same text shuffled, and the gap between them.

    The text: 32 equally frequent letters, each with one successor that follows it with probability 0.8, any other
    letter with equal chances. The reader knows these probabilities. confidence: the power that it raises them to, in
    [0, 4]; 1 is as sure as it should be. share: of the places where it sees the next letter too, in [0, 1]; 0 is an
    honest reader. leak: whether its look ahead works on "any" text, or on "real" text only.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "gap_bench"
    _esm = module(script)
    confidence = Number(1.0, 0, 4)
    share = Number(0.0, 0, 1)
    leak = t.Enum(LEAKS, "any").tag(sync=True)

    def __init__(self, confidence: float = 1.0, share: float = 0.0, leak: str = "any") -> None:
        super().__init__(confidence=confidence, share=share, leak=leak)

    @property
    def losses(self) -> dict[str, float]:
        """The reader's loss on the text and on shuffled text, and the two limits, in nats per letter."""
        true = [TRUE] + [(1 - TRUE) / (LETTERS - 1)] * (LETTERS - 1)
        weights = [p**self.confidence for p in true]
        nats = [-math.log(w / sum(weights)) for w in weights]
        seen = [self.share * -math.log(SURE) + (1 - self.share) * n for n in nats]
        blind = seen if self.leak == "any" else nats
        return {
            "ordered": sum(p * n for p, n in zip(true, seen, strict=True)), "shuffled": sum(blind) / LETTERS,
            "unigram entropy": math.log(LETTERS), "entropy floor": -sum(p * math.log(p) for p in true),
        }  # fmt: skip

    def picture(self) -> str:
        found = self.losses
        ticks = {float(i): f"{name} {nats:.2f}" for i, (name, nats) in enumerate(found.items())}
        bars = Bars([*ticks], [*found.values()])
        return chart("Losses of the reader, and limits", "", "nats per letter", bars, xticks=ticks)
