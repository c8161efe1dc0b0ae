"""The small recorded models that pages run, which read 32 letters of verse, and such a line as a trait."""
from typing import Any

import traitlets as t

from fourierqk.widgets import Text, carried

RECORDS = {record["system"]: record for record in carried("future_editor")}
ALPHABET, LENGTH = RECORDS["base-dot"]["vocab"], RECORDS["base-dot"]["model"]["block_size"]


class Line(Text):
    """A synced line of as many letters as the models read."""

    def __init__(self, default: str) -> None:
        super().__init__(default, LENGTH, LENGTH)

    def validate(self, obj: Any, value: Any) -> Any:
        value = super().validate(obj, value)
        if foreign := sorted({*value} - {*ALPHABET}):
            raise t.TraitError(f"{self.name} has {''.join(foreign)!r}, and may have the letters of verse, {ALPHABET!r}")
        return value
