"""MyST Markdown flattened to what Jupyter, Colab and GitHub show: no directives, no roles, no substitutions.

The page keeps its MyST source; only the notebook copy is flattened. What is not known here is refused by name, so that
no raw directive reaches a reader.
"""
import ast
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from catalogue import Catalogue

__all__ = ["Flattener", "Fence", "find_fence"]

FENCE = re.compile(r"^(?P<indent>\s*)(?P<mark>`{3,}|~{3,}|:{3,})(?P<info>[^`]*)$")
DIRECTIVE = re.compile(r"^\{(?P<name>[\w:-]+)\}\s*(?P<argument>.*)$")
OPTION = re.compile(r"^:(?P<key>[\w-]+):\s*(?P<value>.*)$")
INLINE = re.compile(
    r"""
      \{(?P<role>[\w:+-]+)\}`(?P<content>[^`]+)`                     # {eq}`label`
    | (?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))           # `code`: left alone
    | \$\$(?P<display>.+?)\$\$(?:[ ]*\((?P<equation>[\w:.-]+)\))?    # $$ ... $$ (label)
    | (?P<math>(?<![\\$])\$[^$]+\$)                                  # $x$: left alone
    | \{\{\s*(?P<claim>\w+)\s*\}\}                                   # {{ key }}
    | ^\[\^(?P<note>[\w-]+)\]:[ ]*(?P<notetext>[^\n]+(?:\n[ ]+\S[^\n]*)*)\n? # [^1]: a footnote
    | \[\^(?P<mark>[\w-]+)\]                                         # its mark in the text
    | (?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)    # [text](target), ![alt](target)
    | ^(?P<label>\([\w:.-]+\)=|%[^\n]*)[ ]*\n?                           # (label)=, % comment: dropped
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
CHOICE = re.compile(r"^- \[[ x]\] ", re.MULTILINE)  # of a prediction; which one is right, its answer says
ADMONITIONS = ("note", "tip", "warning", "important", "hint", "seealso", "caution", "attention")
CODE_ROLES = ("code", "kbd", "class", "func", "meth", "mod", "py:class", "py:func", "py:meth", "py:mod")


@dataclass(frozen=True)
class Fence:
    """A fenced block: a directive if `name` is set, else code."""

    info: str
    indent: str
    lines: tuple[str, ...]

    @property
    def name(self) -> str | None:
        found = DIRECTIVE.match(self.info)
        return found["name"] if found else None

    @property
    def argument(self) -> str:
        return DIRECTIVE.match(self.info)["argument"].strip()

    @cached_property
    def options(self) -> dict[str, str]:
        found = {}
        for line in self.lines:
            if not (option := OPTION.match(line)):
                break
            found[option["key"]] = option["value"].strip()
        return found

    @property
    def body(self) -> str:
        return "\n".join(self.lines[len(self.options) :]).strip("\n")


def find_fence(lines: list[str], start: int) -> tuple[Fence, int] | None:
    """The fenced block that opens at lines[start] and the index after it, or None if none opens there."""
    opening = FENCE.match(lines[start])
    if not opening or (opening["mark"][0] == ":" and not DIRECTIVE.match(opening["info"].strip())):
        return None
    mark, indent = opening["mark"], opening["indent"]
    closing = re.compile(rf"^\s*{mark[0]}{{{len(mark)},}}\s*$")
    for end in range(start + 1, len(lines)):
        if closing.match(lines[end]):
            inner = (line.removeprefix(indent) for line in lines[start + 1 : end])
            return Fence(opening["info"].strip(), indent, tuple(inner)), end + 1
    raise ValueError(f"the block that opens with {lines[start].strip()!r} is never closed")


@dataclass
class Flattener:
    """Flattens one chapter. It remembers what was cited and noted, for the notebook's last cell."""

    catalogue: Catalogue
    doc: str  # the chapter's path below book/, without suffix
    cited: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)

    def text(self, source: str) -> str:
        """Markdown that needs no MyST."""
        out, chunk, lines, i = [], [], source.split("\n"), 0
        while i < len(lines):
            if found := find_fence(lines, i):
                fence, i = found
                out += [self.inline("\n".join(chunk)), textwrap.indent(self.block(fence), fence.indent)]
                chunk = []
            else:
                chunk.append(lines[i])
                i += 1
        out.append(self.inline("\n".join(chunk)))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")

    def endnotes(self) -> str:
        """The footnotes and references of everything flattened so far."""
        parts = []
        if self.marks:
            missing = [mark for mark in self.marks if mark not in self.notes]
            if missing:
                raise ValueError(f"{self.doc}: footnotes without a text: {missing}")
            notes = [f"{i}. {self.notes[mark]}" for i, mark in enumerate(self.marks, 1)]
            parts.append("## Notes\n\n" + "\n".join(notes))
        if self.cited:
            entries = sorted(self.catalogue.reference(key).entry for key in self.cited)
            parts.append("## References\n\n" + "\n".join(f"- {entry}" for entry in entries))
        return "\n\n".join(parts)

    # --- blocks

    def block(self, fence: Fence) -> str:
        if fence.name is None:
            return "\n".join([f"```{fence.info}", *fence.lines, "```"])
        if fence.name in ADMONITIONS:
            body = f"{fence.argument}\n{fence.body}".strip()
            return self.admonition(fence.name.capitalize(), body, fence.options)
        handlers: dict[str, Callable[[Fence], str]] = {
            "admonition": lambda f: self.admonition(f.argument, f.body, f.options),
            "math": lambda f: self.math(f"{f.argument}\n{f.body}", f.options.get("label")),
            "figure": self.figure,
            "image": self.figure,
            "literalinclude": self.include,
            "bibliography": lambda f: "",  # the notebook ends with its own references
            "tableofcontents": lambda f: "",
        }
        if fence.name not in handlers:
            raise ValueError(f"{self.doc}: the directive {{{fence.name}}} has no plain form in tools/flatten.py")
        return handlers[fence.name](fence)

    def admonition(self, title: str, body: str, options: dict[str, str]) -> str:
        title, body = self.inline(title), self.text(CHOICE.sub("- ", body))
        if "dropdown" in options.get("class", ""):
            return f"\n<details><summary>{title}</summary>\n\n{body}\n\n</details>\n"
        # JupyterLab cuts formulas out before it reads Markdown: one that spans lines would keep the quote marks.
        body = re.sub(r"\$\$.+?\$\$", lambda m: " ".join(m[0].split("\n")), body, flags=re.DOTALL)
        quote = textwrap.indent(f"**{title}**\n\n{body}", "> ", lambda line: True)
        return "\n" + re.sub(r"^> $", ">", quote, flags=re.MULTILINE) + "\n"

    def math(self, body: str, label: str | None) -> str:
        body = body.strip()
        if "\\\\" in body and "\\begin" not in body:
            body = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
        tag = f" \\tag{{{self.catalogue.equations[label][1]}}}" if label else ""
        return f"\n$$\n{body}{tag}\n$$\n"

    def figure(self, fence: Fence) -> str:
        image = f"![{fence.options.get('alt', '')}]({self.catalogue.image_url(self.doc, fence.argument)})"
        number = self.catalogue.figures.get(fence.options.get("name", ""), ("", 0))[1]
        caption = " ".join(self.inline(fence.body).split())
        caption = f"Figure {number}. {caption}" if number else caption
        return f"\n{image}\n\n{caption}\n"

    def include(self, fence: Fence) -> str:
        path = (self.catalogue.book / self.doc).parent / fence.argument
        if unknown := set(fence.options) - {"pyobject", "language", "caption", "name"}:
            raise ValueError(f"{self.doc}: literalinclude options without a plain form: {sorted(unknown)}")
        source = path.read_text(encoding="utf-8")
        if name := fence.options.get("pyobject"):
            source = pyobject(source, name, path)
        return f"```python\n{source.rstrip()}\n```"

    # --- inside a paragraph

    def inline(self, text: str) -> str:
        return INLINE.sub(self.replace, text)

    def replace(self, m: re.Match) -> str:
        if m["role"]:
            return self.role(m["role"], m["content"])
        if m["display"]:
            return self.math(m["display"], m["equation"]).strip("\n")
        if m["claim"]:
            return self.catalogue.claim(m["claim"])
        if m["note"]:
            self.notes[m["note"]] = self.inline(" ".join(m["notetext"].split()))
            return ""
        if m["mark"]:
            if m["mark"] not in self.marks:
                self.marks.append(m["mark"])
            return f"<sup>{self.marks.index(m['mark']) + 1}</sup>"
        if m["image"]:
            return f"![{m['text']}]({self.catalogue.image_url(self.doc, m['target'])})"
        if m["target"]:
            return self.link(self.inline(m["text"]), m["target"])
        return m["code"] or m["math"] or ""

    def link(self, text: str, target: str) -> str:
        if re.match(r"[a-z]+:", target):
            return f"[{text}]({target})"
        path, _, label = target.partition("#")
        if path.endswith((".md", ".ipynb")):
            doc = self.catalogue.doc(self.doc, path)
            return f"[{text or self.catalogue.titles[doc]}]({self.catalogue.page_url(doc)})"
        if path:
            return f"[{text}]({self.catalogue.file_url(self.doc, path)})"
        return text or self.catalogue.heading(label)

    def role(self, name: str, content: str) -> str:
        found = re.fullmatch(r"(?P<text>.*?)\s*<(?P<target>[^<>]+)>", content, re.DOTALL)
        text, target = (found["text"], found["target"]) if found else (None, content)
        if name == "eq":
            doc, number = self.catalogue.equations[target]
            return f"({number})" if doc == self.doc else f"({number}) of *{self.catalogue.titles[doc]}*"
        if name == "numref" and target in self.catalogue.figures:
            doc, number = self.catalogue.figures[target]
            shown = (text or "Figure %s").replace("%s", str(number)).replace("{number}", str(number))
            return shown if doc == self.doc else f"{shown} of *{self.catalogue.titles[doc]}*"
        if name in ("ref", "numref"):
            return text or self.catalogue.heading(target)
        if name == "doc":
            return text or f"*{self.catalogue.titles[self.catalogue.doc(self.doc, target)]}*"
        if name.split(":")[0] == "cite":
            return self.cite(target, in_text=name == "cite:t")
        if name == "math":
            return f"${content}$"
        if name == "term":
            return text or content
        if name in CODE_ROLES:
            return f"`{text or (target[1:].split('.')[-1] if target.startswith('~') else target)}`"
        raise ValueError(f"{self.doc}: the role {{{name}}} has no plain form in tools/flatten.py")

    def cite(self, keys: str, in_text: bool) -> str:
        references = []
        for key in (key.strip() for key in keys.split(",")):
            references.append(self.catalogue.reference(key))
            if key not in self.cited:
                self.cited.append(key)
        if in_text:
            return ", ".join(f"{r.author} ({r.year})" for r in references)
        return "(" + "; ".join(f"{r.author}, {r.year}" for r in references) + ")"


def pyobject(source: str, name: str, path: Path) -> str:
    """The lines of a class or function (`name` or `Class.method`), decorators included, as Sphinx would show them."""
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        children = [child for child in ast.iter_child_nodes(node) if getattr(child, "name", None) == part]
        if not children:
            raise ValueError(f"{path.name} has no {name}")
        node = children[0]
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return textwrap.dedent("\n".join(source.split("\n")[first - 1 : node.end_lineno]))
