"""Lists as tables of text: what the .csv files and the page's downloads hold, to the byte.

A text that a spreadsheet would take for a formula (it begins with =, +, -, @ or a tab) gets an apostrophe in front. The
.parquet file has it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FORMULA = re.compile(r"[=+\-@\t\r]")
_QUOTED = re.compile(r'[",\n\r]')


@dataclass(frozen=True)
class Table:
    """Columns, and rows of as many texts."""

    columns: list[str]
    rows: list[list[str]]


def table(lines: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Table:
    """The lines of a list as text.

    Args:
        lines: Dictionaries with the same keys.
        columns: The keys, if there may be no line.

    >>> table([{"name": "=1+1.png", "cosine": 0.5, "label": None}])
    Table(columns=['name', 'cosine', 'label'], rows=[["'=1+1.png", '0.5', '']])
    """
    keys = list(lines[0]) if lines else list(columns)
    return Table(keys, [[_cell(line[key]) for key in keys] for line in lines])


def csv(lines: Table) -> str:
    """A table as comma-separated values.

    >>> print(csv(Table(["name"], [['a "b", c']])), end="")
    name
    "a ""b"", c"
    """
    return "".join(",".join(map(_quoted, line)) + "\n" for line in [lines.columns, *lines.rows])


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}" if _FORMULA.match(value) else value
    return "" if value is None else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text
