"""Numbers in what cells say: a true minus sign, and no minus before nothing. Code keeps its hyphens."""
import re

from docutils import nodes
from sphinx.application import Sphinx

__all__ = ["setup", "typeset"]

NOTHING = re.compile(r"(?<![\w.])[-−+](?=0(?:\.0+)?(?!\w|\.\d))")  # -0.00, what rounding leaves of a small difference
MINUS = re.compile(r"(?<![\w.)\]}-])-(?=\d)")


def typeset(text: str) -> str:
    """Text with a minus sign before negative numbers, and no sign before a number that is rounded to 0."""
    return MINUS.sub("−", NOTHING.sub("", text))


def _outputs(app: Sphinx, doctree: nodes.document) -> None:
    """In the sentences and tables that cells compute; formulas and code stay as they are."""
    computed = (n for n in doctree.findall(nodes.container) if "cell_output" in n["classes"])
    for text in [text for output in computed for text in output.findall(nodes.Text)]:
        verbatim = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)
        if not isinstance(text.parent, verbatim) and (new := typeset(str(text))) != text:
            text.parent.replace(text, nodes.Text(new))


def setup(app: Sphinx) -> dict[str, object]:
    """Register with Sphinx: once a page is read."""
    app.connect("doctree-read", _outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
