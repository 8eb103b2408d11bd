"""What a run, a verdict or a comparison shows of itself: as HTML in Jupyter, as plain text by ``print``.

`parts_of` says what: the parts of a page, by the object's class. `html` and `text` write them. Text that comes from a
user is escaped in both: markup in HTML, a terminal's commands in text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

from kontrast.registry import one_line
from kontrast.report.comparison.differences import Comparison
from kontrast.report.page import Fold, Mark, Numbers, Part, Table, Text, fragment
from kontrast.runs import Run

COLUMN = 60  # letters of a table's column in plain text; a longer cell is cut


def html(shown: Any) -> str:
    """An object as HTML, for ``_repr_html_``.

    >>> from kontrast.runs import Run
    >>> "there is no folder runs/no-such-run" in html(Run("runs/no-such-run"))
    True
    """
    return fragment(parts_of(shown))


def text(shown: Any) -> str:
    """An object as plain text, for ``print``."""
    return "\n".join(line for part in parts_of(shown) for line in _lines(part))


@singledispatch
def parts_of(shown: Any) -> Sequence[Part]:
    """What is shown of an object; a class is added with ``parts_of.register``.

    Raises:
        TypeError: Nothing is known of its class.
    """
    raise TypeError(f"a {type(shown).__name__} does not display itself; see kontrast.report.display")


@parts_of.register
def _of_run(run: Run) -> Sequence[Part]:
    """The headline of its page. A folder that holds no run, or a damaged one, says so: a display raises no error."""
    from kontrast.report import run as pages

    try:
        return pages.headline(run.path)
    except (ValueError, OSError) as error:
        return [Text(str(error), "bad")]


@parts_of.register
def _of_comparison(comparison: Comparison) -> Sequence[Part]:
    return comparison.parts()


@parts_of.register
def _of_table(table: Table) -> Sequence[Part]:
    return [table]


# ------------------------------------------------------------------------------------------------ plain text


def _lines(part: Part) -> list[str]:
    match part:
        case Text(words):
            return [one_line(line) for line in words.split("\n")]
        case Numbers(items):
            label, value = (max((len(column) for column in columns), default=0) for columns in _columns(items))
            return [one_line(f"  {n.label:<{label}}  {n.value:<{value}}  {n.about}").rstrip() for n in items]
        case Table():
            return _table(part)
        case Fold(title, parts):
            return [one_line(title), *(line for inner in parts for line in _lines(inner))]
        case _:
            return []


def _columns(items: Sequence[Any]) -> tuple[list[str], list[str]]:
    return [item.label for item in items], [item.value for item in items]


def _table(table: Table) -> list[str]:
    r"""Columns beside each other, each as wide as its longest cell.

    >>> table = Table(["name", "top-1"], [["knn20", "85.0"], ["probe", Mark("87.25", "good")]], "in %")
    >>> print(*_table(table), sep="\n")
      name   top-1
      knn20  85.0
      probe  87.25
    in %
    """
    rows = [list(table.columns)] if any(table.columns) else []
    rows += [[cell.text if isinstance(cell, Mark) else cell for cell in row] for row in table.rows]
    cells = [[_cut(one_line(cell)) for cell in row] for row in rows]
    widths = [max((len(row[i]) for row in cells if i < len(row)), default=0) for i in range(len(table.columns))]
    lines = ["  " + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)).rstrip() for row in cells]
    return [*lines, *([one_line(table.caption)] if table.caption else [])]


def _cut(cell: str) -> str:
    return cell if len(cell) <= COLUMN else f"{cell[: COLUMN - 1]}…"
