"""Tables of recorded runs, seeds apart from windows."""
import html
from collections.abc import Iterable, Mapping
from typing import Any

from fourierqk.records.identity import Record, check_once, unlike
from fourierqk.records.library import by_system
from fourierqk.records.statistics import FEW_WINDOWS, compare

__all__ = ["by_seed", "markdown", "plain", "rows", "samples", "table"]

BASE = "base-dot"  # what every system is compared with
LOSSES = ("ordered", "shuffled", "honest", "truncated")


def rows(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each system, in types that JSON knows: what its seeds measured, and how they compare with base-dot.

    losses: for each kind the value of every seed, their mean, and the standard errors over windows, one a seed.
    above_oracle: the same of the honest loss minus what the oracle pays for the same tokens; None where nobody knows.
    against_base: `compare` of the honest losses. Runs of another text, size or training make rows of their own; apart:
    in which fields they differ from others of that title, folders: where they lie. side_by_side: windows that the text
    holds; of few, `FEW_WINDOWS`, no error over windows is to be believed. ValueError where two records are of one run.
    """
    records = [*records]
    check_once(records)
    groups: list[list[dict[str, Any]]] = []
    for r in records:
        group = next((g for g in groups if not unlike(g[0], r)), None)
        if group is None:
            groups.append(group := [])
        group.append(r)
    return [
        {**_title(runs[0]), **_apart(group, groups), **_row(runs, of.get(BASE, []))}
        for group in groups
        for of in [by_system(group)]
        for runs in of.values()
    ]


def _title(r: Mapping[str, Any]) -> dict[str, Any]:
    m = r["model"]
    return {
        "system": r["system"], "corpus": r["corpus"]["name"], "preset": r.get("preset"), "steps": r["train"]["steps"],
        "layers": m["n_layer"], "width": m["n_embd"], "window": m["block_size"], "schema": r.get("schema"),
    }  # fmt: skip


def _apart(group: list[dict[str, Any]], groups: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """What tells a table from others that would have its title, by field, and the folders that its runs lie in."""
    titles = [_heading(_title(g[0])) for g in groups]
    twins = [g[0] for g, title in zip(groups, titles, strict=True) if title == _heading(_title(group[0]))]
    apart = {name: here for twin in twins for name, (here, _) in unlike(group[0], twin).items()}
    folders = dict.fromkeys(str(r.path.parent) for r in group if isinstance(r, Record))
    return {"apart": apart, "folders": [*folders]}


def _row(runs: list[dict[str, Any]], base: list[dict[str, Any]]) -> dict[str, Any]:
    losses = {kind: _loss(runs, kind) for kind in LOSSES if all(kind in r["losses"] for r in runs)}
    floors = [r["losses"].get("floor") for r in runs]
    own = runs[0]["system"] != BASE
    return {
        "seeds": [r["seed"] for r in runs],
        "losses": losses,
        "above_oracle": _above_oracle(runs),
        "against_base": compare(runs, base) if own else None,
        "side_by_side": min((n for r in runs if (n := r["losses"]["ordered"].get("side_by_side"))), default=None),
        "below_floor": sum(f["below"] for f in floors) if all(floors) else None,
        "audit": [r["audit"]["verdict"] for r in runs],
        "parameters": runs[0].get("parameters"),
        "tokens_per_second": [r["history"]["tokens_per_second"] for r in runs],
    }


def _loss(runs: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return _values([(r["losses"][kind]["mean"], r["losses"][kind]["se"]) for r in runs])


def _values(pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """Of (value, standard error over windows), one a seed."""
    values = [value for value, _ in pairs]
    return {"values": values, "mean": sum(values) / len(values), "se": [se for _, se in pairs]}


def _above_oracle(runs: list[dict[str, Any]]) -> dict[str, Any] | None:
    floors = [r["losses"]["honest"].get("floor") for r in runs]
    return _values([(f["difference"], f["se"]) for f in floors]) if all(floors) else None


HEAD = ("system", "seeds", *LOSSES, f"honest - {BASE}", "audit")


def _cells(row: dict[str, Any]) -> list[str]:
    """A row in words: losses as mean and range over the seeds, the difference with its interval."""
    d = row["against_base"]
    difference = "" if d is None else f"{d['mean']:+.3f}"
    if d and d["low"] is not None:
        difference += f" [{d['low']:+.3f}, {d['high']:+.3f}]"
    verdict = "/".join(sorted({*row["audit"]}))
    if row["below_floor"]:
        verdict += f", {row['below_floor']} below the floor"
    losses = [_spread(row["losses"][kind]["values"], 3) if kind in row["losses"] else "" for kind in LOSSES]
    return [row["system"], str(len(row["seeds"])), *losses, difference, verdict]


def _spread(values: list[float], digits: int) -> str:
    """Mean, and range where there are several."""
    across = f" ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else ""
    return f"{sum(values) / len(values):.{digits}f}{across}"


def _tables(table: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
    """The rows of each text, size and training, under their title; where there are several, it says where they lie."""
    found: dict[str, list[list[str]]] = {}
    titles = [_heading(row) + "".join(f", {name} = {value}" for name, value in row["apart"].items()) for row in table]
    for row, title in zip(table, titles, strict=True):
        places = f", in {_listed(row['folders'])}" if row["folders"] and len({*titles}) > 1 else ""
        few = row["side_by_side"] is not None and row["side_by_side"] < FEW_WINDOWS
        doubt = f"; too narrow intervals: the text holds {row['side_by_side']} windows side by side" if few else ""
        found.setdefault(f"{title}{places}: nats per token, mean and range over seeds{doubt}", []).append(_cells(row))
    return found


def _heading(row: Mapping[str, Any]) -> str:
    size = f"{row['layers']} layers of width {row['width']}, window {row['window']}"
    return f"{row['corpus']}, {row['preset']} ({size}), {row['steps']} steps"


def _listed(folders: list[str]) -> str:
    """A few of them by name."""
    more = len(folders) - 3
    return ", ".join(folders[:3]) + (f" and {more} more" if more > 0 else "")


def markdown(table: list[dict[str, Any]]) -> str:
    """`rows` as Markdown, a table for each text, size and training."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    parts = []
    for title, body in _tables(table).items():
        ticked = [[f"`{first}`", *rest] for first, *rest in body]
        parts.append("\n".join([title, "", line(HEAD), "|---" * len(HEAD) + "|", *map(line, ticked)]))
    return "\n\n".join(parts)


def by_seed(table: list[dict[str, Any]]) -> str:
    """The honest loss of every seed as Markdown, the difference to base-dot with its interval, the audit.

    Where the oracle of the text is known, the losses are those above what it pays for the same tokens. The standard
    error is the largest one over windows among the seeds; the interval holds both, windows and seeds.
    """
    seeds = sorted({seed for row in table for seed in row["seeds"]})
    oracle = all(row["above_oracle"] for row in table)
    head = ["system", *(f"seed {s}" for s in seeds), "s.e. over windows", f"minus `{BASE}`", "95 % interval", "audit"]
    lines = [head, ["---"] * len(head)]
    for row in table:
        loss, d = row["above_oracle"] if oracle else row["losses"]["honest"], row["against_base"]
        values = dict(zip(row["seeds"], loss["values"], strict=True))
        mean = f"{d['mean']:+.3f}" if d else ""
        interval = f"{d['low']:+.3f} to {d['high']:+.3f}" if d and d["low"] is not None else ""
        each = [f"{values[s]:.3f}" if s in values else "" for s in seeds]
        audits = "/".join(sorted({*row["audit"]}))
        lines.append([f"`{row['system']}`", *each, f"{max(loss['se']):.3f}", mean, interval, audits])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def table(runs: Mapping[str, list[dict[str, Any]]]) -> str:
    """A study as a Markdown table, a row a system: losses in nats per token, mean and range over its seeds.

    What the oracle pays is left out where it is unknown: only `verse` has one. `markdown` shows more.
    """
    floor = all(r["losses"].get("floor") for records in runs.values() for r in records)
    above = {system: _above_oracle(records) for system, records in runs.items()}
    oracle = all(above.values())

    def row(system: str, records: list[dict[str, Any]]) -> str:
        excess = [_spread(found["values"], 3)] if oracle and (found := above[system]) else []
        below = [f"{sum(r['losses']['floor']['below'] for r in records)} of {len(records)}"] if floor else []
        verdict = "/".join(sorted({r["audit"]["verdict"] for r in records}))
        losses = [_spread([r["losses"][loss]["mean"] for r in records], 2) for loss in ("ordered", "honest")]
        return f"| {' | '.join([f'`{system}`', *losses, *excess, *below, verdict])} |"

    more = [*["honest loss above the oracle"] * oracle, *["runs below the floor"] * floor]
    names = ["system", "ordered loss", "honest loss", *more, "audit"]
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    return "\n".join([head, *(row(*item) for item in runs.items())])


def samples(runs: Mapping[str, Mapping[str, Any]], characters: int = 240) -> str:
    """What recorded runs wrote, side by side, as HTML that Markdown takes: runs by name, the start of each sample."""

    def column(name: str, run: Mapping[str, Any]) -> str:
        text = html.escape(run["sample"][:characters]).replace("\r", " ")
        text = "&#10;" + text.replace("\n", "&#10;")  # a blank line ends Markdown's HTML; HTML drops the first newline
        title = html.escape(" ".join(name.split()))
        figure = f'<figure style="flex: 1 1 15em; margin: 0"><figcaption><b>{title}</b></figcaption>'
        return f'{figure}<pre style="white-space: pre-wrap">{text}</pre></figure>'

    columns = "".join(column(*item) for item in runs.items())
    return f'<div style="display: flex; flex-wrap: wrap; gap: 1em">{columns}</div>'


def plain(table: list[dict[str, Any]]) -> str:
    """`rows` in columns, for a terminal."""
    parts = []
    for title, body in _tables(table).items():
        widths = [max(map(len, column)) for column in zip(HEAD, *body, strict=True)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip() for cells in [HEAD, *body]]
        parts.append("\n".join([title, *lines]))
    return "\n\n".join(parts)
