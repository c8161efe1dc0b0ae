"""InfluenceMap: which outputs of one small head of attention move when a letter is edited, live."""
import traitlets as t

from fourierqk.widgets import Text, Widget, module

MASKS = ("causal", "none", "finite", "block")
KERNELS = ("none", "causal", "two-sided", "circular", "mean")
TEXT = "the tide out"
LONGEST = 24  # letters of a line


class InfluenceMap(Widget):
    """One head of attention over a short line: how far each output moves when a letter is replaced by the next one.

    mask: "causal", "none", "finite" (-10 where minus infinity should be) or "block" (causal from block to block of
    four). kernel: what queries and keys pass through first, "none", "causal" (one-sided, 0.7 a token), "two-sided",
    "circular" (one-sided, but the line is a ring) or "mean" (of the whole line). text: 1 to 24 characters. token: the
    letter that is edited, from 0; the middle if None, the last if beyond the end.

    All are traits: set, observe or link them. A value out of range raises traitlets.TraitError.
    """

    script = "influence_map"
    _esm = module(script)
    mask = t.Enum(MASKS, "causal").tag(sync=True)
    kernel = t.Enum(KERNELS, "none").tag(sync=True)
    text = Text(TEXT, 1, LONGEST)
    token = t.Int(0, min=0).tag(sync=True)

    def __init__(
        self, mask: str = "causal", kernel: str = "none", text: str = TEXT, token: int | None = None
    ) -> None:
        super().__init__(mask=mask, kernel=kernel, text=text, token=len(text) // 2 if token is None else token)
