"""FutureEditor: three small models predict a line letter by letter; edit it, and see which predictions knew."""
from fourierqk.widgets import Whole, Widget, module
from fourierqk.widgets.readers import LENGTH, RECORDS, Line
from fourierqk.widgets.still import FUTURE, INK, PAST, Bars, Curve, chart

BEFORE, TEXT = "sadue ralobu\nsovibon mavepe solo", "sadue ralobu\nsovibon mavebe solo"


class FutureEditor(Widget):
    """A line of verse, and under each letter the one that each of three small models expects next.

    The page runs the models, those of book/records/future: `base-dot`, `fourier-qk` and `prefix-fourier-qk`. A
    prediction that stands before an edit and changes is marked: of a model that reads the past alone none does. Beside
    them the losses of these very weights, and the floor.

    text: the line, 32 letters of verse. before: the line before the edit. token: the letter that is chosen, from 0; the
    first that differs if None, or 0.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "future_editor"
    _esm = module(script)
    text = Line(TEXT)
    before = Line(BEFORE)
    token = Whole(0, 0, LENGTH - 1)

    def __init__(self, text: str = TEXT, before: str = BEFORE, token: int | None = None) -> None:
        if token is None:
            token = next((i for i, (a, b) in enumerate(zip(text, before, strict=False)) if a != b), 0)
        super().__init__(text=text, before=before, token=token)

    def picture(self) -> str:
        said = {name: (r["losses"]["ordered"]["mean"], r["losses"]["honest"]["mean"]) for name, r in RECORDS.items()}
        ticks = {float(i): f"{name}: {a:.2f}, {b:.2f}" for i, (name, (a, b)) in enumerate(said.items())}
        claimed, honest = ([pair[k] for pair in said.values()] for k in (0, 1))
        floor = RECORDS["base-dot"]["floor"]
        return chart(
            f"Claimed and honest loss of three small models, and the floor, {floor:.2f}", "", "nats per letter",
            Bars([i - 0.2 for i in ticks], claimed, FUTURE, 0.35), Bars([i + 0.2 for i in ticks], honest, PAST, 0.35),
            Curve([-0.5, len(ticks) - 0.5], [floor, floor], INK, dashed=True), xticks=ticks,
        )  # fmt: skip
