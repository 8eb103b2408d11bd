"""Fill in the numbers that pages quote: each stands before a comment that names its source.

    python docs/quotes.py        updates every quoted number; a test checks that nothing changes

    82.20 ± 0.57<!--= wl-table-1-cpu linear temperature=0.1 -->          a cell of docs/results/…/result.json
    -0.33 ± 0.47<!--= wl-table-1-cpu claim 0 -->                         the value of a claim's statistic
    not resolved at this scale<!--= wl-table-1-cpu verdict 0 -->         and its verdict
    83.78<!--= published WANG_LIU cifar10 ordinary 0.2 -->               a paper's table, kontrast.recipes.published
    5.53<!--= benchmarks/training: gradient caching, …: seconds -->      a cell of a page of docs/benchmarks
    3682<!--= reliability/faults: **all**: cases -->                     and of docs/reliability
    45.5<!--= goals 600 photos: knn20 -->                                the mean over seeds of a score of goals.json

The text before the comment, up to a space, bar, bracket or comma, is replaced (a "±" goes with its neighbours).
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

from kontrast.recipes import published

DOCS = Path(__file__).parent
VERDICTS = ("not resolved at this scale", "does not hold", "holds")
QUOTE = re.compile(rf"(?P<value>(?:{'|'.join(VERDICTS)})|[^\s|()*]+(?: ± [^\s|()*]+)?)<!--= (?P<source>.+?) -->")


def value(source: str) -> str:
    """The value of a source, as pages print it.

    >>> value("published WANG_LIU cifar10 ordinary 0.2"), value("published TCL cifar10 ('tcl',150)")
    ('83.78', '96.3 ± 0.1')
    """
    if source.startswith("published "):
        return _published(source.split()[1:])
    if source.startswith(("benchmarks/", "reliability/")):
        return _page(*source.split(": ", 2))
    if source.startswith("goals "):
        return _goal(*source.removeprefix("goals ").rsplit(": ", 1))
    folder, what, *rest = source.split()
    result = json.loads((DOCS / "results" / folder / "result.json").read_text(encoding="utf-8"))
    if what in ("claim", "verdict"):
        claims = [finding for claim in result["claims"] for finding in claim["findings"]]
        finding = claims[int(rest[0])]
        return str(finding["verdict"]) if what == "verdict" else _statistic(finding["says"])
    return _cell(result, what, dict(pair.split("=") for pair in rest), source)


def _cell(result: dict[str, Any], measure: str, at: dict[str, str], source: str) -> str:
    """Mean ± half-width, with the measure's digits."""
    places = [p for p in result["places"] if all(str(p["at"].get(axis)) == wanted for axis, wanted in at.items())]
    if len(places) != 1:
        raise ValueError(f"{source!r} names {len(places)} places; name one by {', '.join(result['axes'])}")
    digits = next(m["digits"] for m in result["measures"] if m["name"] == measure)
    cell = places[0]["cells"][measure]
    half = "" if cell["half"] is None else f" ± {cell['half']:.{digits}f}"
    return f"{cell['mean']:.{digits}f}{half}".replace("-", "−")


def _statistic(says: str) -> str:
    """The number in a claim's sentence."""
    match = re.search(r"= (\S+(?: ± \S+)?)", says)
    if match is None:
        raise ValueError(f"no number in the claim {says!r}")
    return match[1].rstrip(",").replace("-", "−")


def _published(keys: list[str]) -> str:
    entry: Any = getattr(published, keys[0])
    for key in keys[1:]:
        entry = entry[key] if key in entry else entry[ast.literal_eval(key)]
    return " ± ".join(f"{x:g}" for x in entry if x is not None) if isinstance(entry, tuple) else f"{entry:g}"


def _page(page: str, row: str, column: str) -> str:
    """The first table of the page that has both."""
    header: list[str] = []
    for line in (DOCS / f"{page}.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not cells:
            header = []
        elif not header:
            header = cells
        elif cells[0] == row and column in header:
            return cells[header.index(column)].partition(" (")[0]
    raise ValueError(f"{page}.md has no table with the row {row!r} and the column {column!r}")


def _goal(name: str, score: str) -> str:
    """The mean of a score of a goal's runs; ``raw/knn20`` is that of raw pixels."""
    runs = json.loads((DOCS / "experiments" / "goals.json").read_text(encoding="utf-8"))[name]
    values = [run["scores"][score.replace("raw/", "raw pixels: ")] for run in runs]
    return f"{sum(values) / len(values):.1f}"


def fill_in(page: str) -> str:
    """Fill in every quoted number of a page from its source.

    >>> fill_in("best 80.00<!--= published WANG_LIU cifar10 ordinary 0.2 --> there")
    'best 83.78<!--= published WANG_LIU cifar10 ordinary 0.2 --> there'
    """
    return QUOTE.sub(lambda match: f"{value(match['source'])}<!--= {match['source']} -->", page)


def pages() -> list[Path]:
    """The pages that quote numbers."""
    files = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    return sorted(page for page in files if "<!--= " in page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for path in pages():
        path.write_text(fill_in(path.read_text(encoding="utf-8")), encoding="utf-8")
