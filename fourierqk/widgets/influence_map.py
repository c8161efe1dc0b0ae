"""InfluenceMap: which outputs of one small head of attention move when a letter is edited, live."""
import math

import torch
import traitlets as t

from fourierqk.widgets import Text, Widget, module
from fourierqk.widgets.still import FUTURE, PAST, Spans, chart

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

    @property
    def influence(self) -> torch.Tensor:
        """How far output t moves when letter s is replaced by the next one of the alphabet (n, n), float64."""
        codes = torch.tensor([ord(c) for c in self.text], dtype=torch.float64)
        after = torch.stack([self._outputs(codes + (torch.arange(len(codes)) == s)) for s in range(len(codes))])
        return (after - self._outputs(codes)).abs().amax(-1).T

    def _outputs(self, codes: torch.Tensor) -> torch.Tensor:
        """The head's outputs for a line of letters (n, 8): each letter is a wave of its code."""
        i, n = torch.arange(8.0, dtype=torch.float64), len(codes)
        x = torch.cos(1.7 * codes[:, None] * (i + 1) + i)
        lag = (torch.arange(n)[:, None] - torch.arange(n)).double()
        weights = {
            "none": lag == 0, "causal": 0.7 ** lag.clamp(min=0) * (lag >= 0), "two-sided": 0.7 ** lag.abs(),
            "circular": 0.7 ** (lag % n), "mean": 0 * lag + 1 / n,
        }[self.kernel].double()  # fmt: skip
        later = lag < 0 if self.mask != "block" else torch.arange(n)[:, None] // 4 < torch.arange(n) // 4
        hidden = {"none": 0.0, "finite": -10.0}.get(self.mask, -math.inf)
        mixed = weights @ x
        return x + (mixed @ mixed.T / 8**0.5 + torch.where(later, hidden, 0.0)).softmax(-1) @ x

    def picture(self) -> str:
        found = self.influence
        shade = (found / found.max()).clamp(min=1e-9).log10() / 6 + 1
        cells: dict[bool, list] = {False: [], True: []}  # by whether the letter is later than the output
        for y, x in (found > 1e-12 * found.max()).nonzero().tolist():
            cells[x > y].append((x - 0.5, x + 0.5, -y - 0.5, -y + 0.5, max(0.25, shade[y, x].item())))
        marks = [Spans(cells[future], FUTURE if future else PAST) for future in cells if cells[future]]
        ticks = dict(enumerate(self.text))
        down = {-place: letter for place, letter in ticks.items()}
        title = "Which output each letter moves: the future red, the past blue"
        return chart(title, "letter edited", "output moved", *marks, xticks=ticks, yticks=down)
