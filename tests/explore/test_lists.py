"""Lists as text: cells that stay text in a spreadsheet, and values that come back."""

from __future__ import annotations

import csv as reader
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from kontrast.explore.lists import Table, csv, table


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.text(st.characters(blacklist_categories=["Cs"])), min_size=2, max_size=2), max_size=4))
def test_what_is_written_is_read_again(rows: list[list[str]]) -> None:
    text = csv(Table(["a", "b"], rows))
    assert list(reader.reader(io.StringIO(text, newline=""))) == [["a", "b"], *rows]


def test_no_cell_is_a_formula() -> None:
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "cat/=1.png"]
    cells = [row[0] for row in table([{"name": name} for name in names]).rows]
    assert cells == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "cat/=1.png"]
    assert table([{"score": -0.5}]).rows == [["-0.5"]], "numbers are numbers"
    assert table([], ["name"]) == Table(["name"], [])
