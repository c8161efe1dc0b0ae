"""AttentionLens: where a trained head looks, and what that hangs on, while a filter before it moves, live."""
import traitlets as t

from fourierqk.widgets import CARRIES, Number, Whole, Widget, module
from fourierqk.widgets.readers import LENGTH, RECORDS, Line

TEXT = "sadue ralobu\nsovibon mavebe solo"
FILTERS = ("none", "window", "past")
LOWEST, HIGHEST, NARROWEST, WIDEST = 0.005, 0.495, 0.005, 0.25  # cycles per token
HEADS = RECORDS["base-dot"]["model"]["n_layer"] * RECORDS["base-dot"]["model"]["n_head"]


class AttentionLens(Widget):
    """One head of a small trained model: the attention map, and which letters each of its rows hangs on.

    The page runs the model, `system`: "base-dot" or "fourier-qk" of book/records/future. head: 0 to 3, of the first
    layer and the second. Its queries and keys then pass a `filter`: "none"; "window", a Gaussian of unit gain over all
    32 letters, which is what fourier-qk was trained with; or "past", the same with its negative lags cut off.
    frequency: its centre, 0.005 to 0.495, and width: its standard deviation, 0.005 to 0.25, in cycles per token. A row
    hangs on a letter by as much of its attention as moves if that letter falls silent in this head. text: 32 letters
    of verse. token: the row that is drawn out, 0 to 31.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "attention_lens"
    _esm = module(script)
    system = t.Enum(CARRIES[script], "base-dot").tag(sync=True)
    head = Whole(1, 0, HEADS - 1)
    filter = t.Enum(FILTERS, "window").tag(sync=True)
    frequency = Number(1 / 12, LOWEST, HIGHEST, "cycles per token")
    width = Number(1 / 32, NARROWEST, WIDEST, "cycles per token")
    text = Line(TEXT)
    token = Whole(14, 0, LENGTH - 1)

    def __init__(
        self, system: str = "base-dot", head: int = 1, filter: str = "window", frequency: float = 1 / 12,
        width: float = 1 / 32, text: str = TEXT, token: int = 14,
    ) -> None:  # fmt: skip
        super().__init__(
            system=system, head=head, filter=filter, frequency=frequency, width=width, text=text, token=token
        )
