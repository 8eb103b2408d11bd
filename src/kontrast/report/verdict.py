"""The verdict of an adaptation as parts of a page: its sentence, and a line for each measure.

The same parts stand on the page of the run and in a notebook, where the verdict displays itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kontrast.report.comparison.tables import p_value, points
from kontrast.report.page import Cell, Mark, Part, Table, Text

NOTE = (
    "Rows of the verdict have neither taught nor chosen the encoder. ± is half of the 95 % interval of the paired "
    "bootstrap; smallest: the difference that these rows show in four cases of five."
)


class Measure(Protocol):
    """The frozen and the adapted encoder by one measure, on the same rows; shares of 0…1."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def frozen(self) -> float: ...
    @property
    def adapted(self) -> float: ...
    @property
    def difference(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def won(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def p(self) -> float: ...
    @property
    def smallest(self) -> float: ...


class Verdict(Protocol):
    """What an adaptation decided (``verdict`` of result.json)."""

    @property
    def shipped(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def sentence(self) -> str: ...
    @property
    def measures(self) -> Sequence[Measure]: ...


def parts(verdict: Verdict) -> list[Part]:
    """The sentence, in green if the adapted encoder was shipped because it is better, and the measures."""
    shown: list[Part] = [Text(f"Shipped: the {verdict.shipped} encoder ({verdict.status})", "title")]
    shown.append(Text(verdict.sentence, "good" if verdict.status == "better" else "watch"))
    if not verdict.measures:
        return shown
    rows: list[list[Cell]] = []
    for measure in verdict.measures:
        half = (measure.high - measure.low) / 2
        side = "good" if measure.low > 0 else "bad" if measure.high < 0 else "watch"
        rows.append(
            [
                measure.title or measure.name,
                f"{100 * measure.frozen:.1f}",
                f"{100 * measure.adapted:.1f}",
                Mark(points(measure.difference, half), side),
                f"{measure.won:,} : {measure.lost:,}",
                p_value(measure.p),
                f"{100 * measure.smallest:.1f}",
                f"{measure.rows:,}",
            ]
        )
    columns = ["measure", "frozen, %", "adapted, %", "difference", "won : lost rows", "p", "smallest", "rows"]
    return [*shown, Table(columns, rows), Text(NOTE, "note")]
