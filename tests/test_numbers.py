"""Numbers in what cells say."""
import pytest
from docutils import nodes

from fourierqk.site import numbers


@pytest.mark.parametrize(
    "text, typeset",
    [
        ("a gain of -0.24 (-0.3 to +0.1)", "a gain of −0.24 (−0.3 to +0.1)"), ("-0.00, +0.000, -0", "0.00, 0.000, 0"),
        ("−0.0 nats", "0.0 nats"), ("-0.004 and -0.0.", "−0.004 and 0.0."), ("base-dot, 2-3, 1e-5, qk-past2", None),
        ("2026-12-01", None), ("seed 0, -10, (-1)", "seed 0, −10, (−1)"), ("v-0.0.1, +0.05", None),
    ],
)  # fmt: skip
def test_a_negative_number_has_a_minus_and_nothing_has_no_sign(text, typeset):
    assert numbers.typeset(text) == (typeset or text)


def test_only_what_cells_say_is_set_and_no_code_in_it():
    def page(*classes: str) -> nodes.document:
        document = nodes.document(None, None)
        said = nodes.paragraph("", "", nodes.Text("by -0.24, "), nodes.literal("", "x = -1"))
        document += nodes.container("", said, classes=[*classes])
        return document

    for classes, said in ((("cell_output",), "by −0.24, x = -1"), (("cell_input",), "by -0.24, x = -1")):
        document = page(*classes)
        numbers._outputs(None, document)
        assert document.astext() == said
