"""What a run, a verdict or a comparison shows of itself: as HTML in Jupyter, as plain text by ``print``.

`parts_of` says what: the parts of a page, by the object's class. `html` and `text` write them. Text that comes from a
user is escaped in both: markup in HTML, a terminal's commands in text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from pydantic import BaseModel

from kontrast.registry import one_line
from kontrast.report.comparison.differences import Comparison
from kontrast.report.page import Fold, Mark, Numbers, Part, Table, Text, fragment
from kontrast.runs import Run
from kontrast.runs.schemas import FileModel

COLUMN = 60  # letters of a table's column in plain text; a longer cell is cut
MOST = 10  # values of a list


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


@parts_of.register
def _of_model(model: FileModel) -> Sequence[Part]:
    """A model of a file: its own words if it has any, its values, and a table of each list of models in it."""
    parts: list[Part] = []
    if type(model).__str__ is not BaseModel.__str__:
        parts.append(Text(str(model)))
    values = [(name, value) for name, value in model if _is_there(value) and str(value) != str(model)]
    rows = [[name, _plain(value)] for name, value in values if not _models_in(value)]
    parts += [Table(["", ""], rows)] if rows else []
    for name, value in values:
        models = _models_in(value)
        if isinstance(value, FileModel):
            parts.append(Fold(name, parts_of(value)))
        elif models:
            columns = [key for key in type(models[0]).model_fields if any(_is_there(getattr(m, key)) for m in models)]
            cells = [[_plain(getattr(m, key)) for key in columns] for m in models]
            parts.append(Table(columns, cells, name))
    return parts


def _models_in(value: Any) -> list[FileModel]:
    found = value if isinstance(value, list) else [value]
    return [one for one in found if isinstance(one, FileModel)]


def _is_there(value: Any) -> bool:
    return value is not None and (isinstance(value, bool | int | float) or bool(value))


def _plain(value: Any) -> str:
    """A value in words.

    >>> _plain(0.93125), _plain({"a": 1, "b": 2.0}), _plain([1, 2, 3]), _plain(None)
    ('0.9313', 'a 1, b 2', '1, 2, 3', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        more = f" and {len(value) - MOST:,} more" if len(value) > MOST else ""
        return ", ".join(map(_plain, value[:MOST])) + more
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


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
