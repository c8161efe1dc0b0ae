"""The notebook copy of a chapter: nothing of MyST is left in it, and writing it twice does nothing twice."""
import json
import textwrap

import nbformat
import notebooks
import pytest
from catalogue import Catalogue
from flatten import Flattener

HEADER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""
REFERENCES = """\
@article{cooley1965, author={Cooley, James W. and Tukey, John W.}, title={An Algorithm for {Fourier} Series},
  journal={Mathematics of Computation}, year={1965}, doi={10.1000/1}}
@misc{one2020, author={van Gogh, Theo}, title={One}, year={2020}, eprint={2001.1}}
@misc{many2021, author={L{\\'e}vy, Paul and Bo, B. and Co, C.}, title={Many}, year={2021}}
"""


@pytest.fixture
def book(tmp_path):
    """A function that writes chapters and returns the catalogue over them."""
    folder = tmp_path / "book"
    (folder / "_static").mkdir(parents=True)
    (folder / "_static" / "arrows.svg").write_text("<svg/>")
    (folder / "claims.json").write_text(json.dumps({"paper_loss": {"text": "1.474 nats", "source": "x"}}))
    (folder / "references.bib").write_text(REFERENCES)
    (tmp_path / "fourierqk").mkdir()
    source = "class A:\n    def f(self):\n        return 1\n\n\n@cache\ndef g():\n    pass\n"
    (tmp_path / "fourierqk" / "f.py").write_text(source)
    (tmp_path / "_config.yml").write_text("repository: {url: 'https://github.com/me/it', branch: trunk}\n")
    other = "# Other things\n\n(a-label)=\n## Far away\n\n```{math}\n:label: eq-other\nx\n```\n"
    (folder / "other.md").write_text(other)

    def write(text: str) -> Catalogue:
        (folder / "here.md").write_text(HEADER + textwrap.dedent(text))
        return Catalogue(tmp_path)

    return write


def flat(book, text: str) -> str:
    return Flattener(book(text), "here").text(textwrap.dedent(text).strip("\n"))


@pytest.mark.parametrize(
    ("myst", "plain"),
    [
        ("# Title\n\n(here)=\n## Section\n% a comment\ntext", "# Title\n\n## Section\ntext"),
        (":::{admonition} Why *so*\nBody {{ paper_loss }}.\n:::", "> **Why *so***\n>\n> Body 1.474 nats."),
        ("```{note}\nOne.\n\nTwo.\n```", "> **Note**\n>\n> One.\n>\n> Two."),
        (
            ":::{admonition} Solution\n:class: dropdown\n```python\nx = 1\n```\n:::",
            "<details><summary>Solution</summary>\n\n```python\nx = 1\n```\n\n</details>",
        ),
        ("```{math}\n:label: eq-a\na = b\n```", "$$\na = b \\tag{1}\n$$"),
        ("```{math}\na &= b \\\\\nc &= d\n```", "$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$"),
        ("$$ a = b $$ (eq-b)\nSee {eq}`eq-b`, {eq}`eq-other`.",
         "$$\na = b \\tag{1}\n$$\nSee (1), (1) of *Other things*."),
        (":::{tip}\n```{math}\na\n+ b\n```\n:::", "> **Tip**\n>\n> $$ a + b $$"),
        ("{ref}`a-label`, {ref}`there <a-label>`, {doc}`other`, {doc}`it <other>`",
         "Far away, there, *Other things*, it"),
        ("{term}`DFT`, {term}`the DFTs <DFT>`, {math}`x^2`, {func}`~a.b.f`", "DFT, the DFTs, $x^2$, `f`"),
        ("{cite}`cooley1965,one2020` {cite:t}`many2021`",
         "(Cooley and Tukey, 1965; van Gogh, 2020) Lévy et al. (2021)"),
        ("[text](other.md)", "[text](https://github.com/me/it/blob/trunk/book/other.md)"),
        ("[](#a-label), [web](https://example.org)", "Far away, [web](https://example.org)"),
        ("![Arrows](_static/arrows.svg)", "![Arrows](https://raw.githubusercontent.com/me/it/trunk/book/_static/arrows.svg)"),
        (
            "```{figure} _static/arrows.svg\n:name: fig-a\n:alt: Eight arrows\nThe *arrows*.\n```\n{numref}`fig-a`",
            "![Eight arrows](https://raw.githubusercontent.com/me/it/trunk/book/_static/arrows.svg)\n\n"
            "Figure 1. The *arrows*.\n\nFigure 1",
        ),
        ("```{literalinclude} ../fourierqk/f.py\n:pyobject: A.f\n```", "```python\ndef f(self):\n    return 1\n```"),
        ("```{literalinclude} ../fourierqk/f.py\n:pyobject: g\n```", "```python\n@cache\ndef g():\n    pass\n```"),
        ("`{{ paper_loss }}` and `{eq}` and $x$ and `` ` ``", "`{{ paper_loss }}` and `{eq}` and $x$ and `` ` ``"),
        ("```python\n{eq}`no`\n(x)=\n```", "```python\n{eq}`no`\n(x)=\n```"),
        ("| a | {{ paper_loss }} |\n|---|---|", "| a | 1.474 nats |\n|---|---|"),
        ("- item\n\n  ```{math}\n  x\n  ```", "- item\n\n  $$\n  x\n  $$"),
    ],
)  # fmt: skip
def test_myst_becomes_plain_markdown(book, myst, plain):
    assert flat(book, myst) == plain


@pytest.mark.parametrize(
    ("myst", "says"),
    [
        ("```{grid}\n```", "directive {grid}"),
        ("{index}`x`", "role {index}"),
        ("{{ no_such }}", "unknown claim 'no_such': there are paper_loss"),
        ("{cite}`nobody`", "no 'nobody'"),
        ("{ref}`nowhere`", "nowhere"),
        ("{doc}`nowhere`", "nowhere"),
        ("![x](_static/gone.svg)", "gone.svg"),
        ("```{literalinclude} ../fourierqk/f.py\n:pyobject: B\n```", "has no B"),
        (":::{note}\nnever closed", "never closed"),
    ],
)
def test_what_cannot_be_flattened_is_refused_by_name(book, myst, says):
    with pytest.raises(ValueError, match=says.replace("{", r"\{")):
        flat(book, myst)


CHAPTER = """
# Here

Text {cite}`one2020` with a note[^n].

[^n]: The note,
    in two lines.

More text.

```{code-cell} ipython3
:tags: [hide-input]
x = 1
```

```{code-cell} ipython3
print(x + 1)
import sys; print("warned", file=sys.stderr)
```

```{code-cell} ipython3
:tags: [exercise]
x
```
"""


def test_a_notebook_has_the_setup_cell_tags_and_endnotes(book):
    notebook = notebooks.build(book(CHAPTER), "here")
    nbformat.validate(notebook)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds == ["markdown", "code", "code", "code", "code", "markdown"]
    setup, figure, plain, exercise = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert "git+https://github.com/me/it@trunk" in setup.source
    assert figure.metadata == {
        "cellView": "form",
        "jupyter": {"source_hidden": True},
        "tags": ["hide-input", "nbval-ignore-output"],
    }
    assert plain.metadata == {} and exercise.metadata == {"tags": ["exercise"]}
    assert notebook.cells[0].source.endswith("a note<sup>1</sup>.\n\nMore text.")
    assert notebook.cells[-1].source == (
        "## Notes\n\n1. The note, in two lines.\n\n## References\n\n- Theo van Gogh (2020). *One*. arXiv 2001.1"
    )
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert len({cell.id for cell in notebook.cells}) == 6


def test_the_setup_cell_does_nothing_outside_colab(book, capfd):
    names = {}
    exec(next(c.source for c in notebooks.build(book(CHAPTER), "here").cells if c.cell_type == "code"), names)
    assert capfd.readouterr().out == "" and {*names} == {"__builtins__"}


def test_outputs_are_stored_as_text_and_kept_while_the_code_is_the_same(book, tmp_path, monkeypatch):
    catalogue, path = book(CHAPTER), tmp_path / "book" / "here.ipynb"
    assert notebooks.changes(catalogue, "here") == f"{path} is missing\n"
    assert notebooks.write(catalogue, "here") == "executed"
    stored = nbformat.read(path, as_version=4)
    assert [[o.get("text") or o.data for o in c.outputs] for c in stored.cells if c.cell_type == "code"] == [
        [], [], ["2\n"], [{"text/plain": "1"}]
    ]  # fmt: skip
    assert {*stored.metadata} == {"kernelspec", "language_info"}
    first = path.read_bytes()

    monkeypatch.setattr(notebooks, "execute", lambda *args: pytest.fail("executed again"))
    notebooks.write(catalogue, "here")
    assert path.read_bytes() == first and notebooks.changes(catalogue, "here") == ""

    catalogue = book(CHAPTER.replace("Text", "Other text"))
    assert "+Other text" in notebooks.changes(catalogue, "here")
    notebooks.write(catalogue, "here")  # prose alone executes nothing
    assert b'"2\\n"' in path.read_bytes() and notebooks.changes(catalogue, "here") == ""

    executed = []
    monkeypatch.setattr(notebooks, "execute", lambda *args: executed.append(args))
    notebooks.write(book(CHAPTER.replace("x = 1", "x = 2")), "here")
    (tmp_path / "fourierqk" / "f.py").write_text("changed = True")
    notebooks.write(book(CHAPTER.replace("x = 1", "x = 2")), "here")
    assert len(executed) == 2


@pytest.mark.parametrize("changed", ["fourierqk/f.py", "book/claims.json", "book/records/mine/base-dot-s0.json"])
def test_what_outputs_are_made_from_executes_a_chapter_again(book, tmp_path, monkeypatch, changed):
    executed = []
    monkeypatch.setattr(notebooks, "execute", lambda *args: executed.append(args))
    (tmp_path / changed).parent.mkdir(parents=True, exist_ok=True)
    for times in (1, 2):
        (tmp_path / changed).write_text(json.dumps({"paper_loss": {"text": f"{times} nats", "source": "x"}}))
        for _ in range(2):
            notebooks.write(book(CHAPTER), "here")
            assert len(executed) == times


@pytest.mark.parametrize("change", ["source", "tags"])
def test_a_notebook_edited_by_hand_is_noticed(book, tmp_path, change):
    catalogue, path = book(CHAPTER), tmp_path / "book" / "here.ipynb"
    notebook = notebooks.build(catalogue, "here")
    if change == "source":
        notebook.cells[0].source += "!"
    else:
        notebook.cells[2].metadata.tags = []
    nbformat.write(notebook, path)
    assert notebooks.changes(catalogue, "here") != ""


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({"text/plain": "FigureWidget", "application/vnd.plotly.v1+json": {"layout": {"meta": {"alt": "A hill."}}}},
         {"text/plain": "[Figure: A hill.]"}),
        ({"text/plain": "F", "application/vnd.plotly.v1+json": {"layout": {}}}, None),
        ({"text/plain": "W", "application/vnd.fourierqk.widget.v1+json": {}}, None),
        ({"text/plain": "<M>", "text/markdown": "**1**"}, {"text/plain": "<M>", "text/markdown": "**1**"}),
        ({"text/plain": "x", "image/png": "abc"}, None),
    ],
)  # fmt: skip
def test_figures_and_widgets_are_not_stored(data, kept):
    output = notebooks.text_only(nbformat.v4.new_output("display_data", data=data))
    assert (output and output.data) == kept
