"""Parts as plain text: aligned, on one line each, without commands for a terminal."""

from __future__ import annotations

from kontrast.report import display
from kontrast.report.page import Fold, Mark, Number, Numbers, Table, Text, fragment


def test_a_table_displays_itself() -> None:
    table = Table(["name", "value"], [["<b>", "1.0"], [Mark("a\nb", "bad"), "200.25"]], "in %")
    assert str(table) == "  name  value\n  <b>   1.0\n  a\\nb  200.25\nin %"
    html = table._repr_html_()
    assert html == display.html(table) == fragment([table])
    assert "<td>&lt;b&gt;</td>" in html
    assert '<td class="bad">a\nb</td>' in html
    assert "<b>" not in html


def test_every_kind_of_part_as_text() -> None:
    table = Table(["", ""], [["a", "b" * 100]])
    numbers = Numbers([Number("kNN", "85.0 %", "k = 20"), Number("Loss, training", "2")])
    lines = [line for part in (Fold("more", [Text("one\ntwo\x07"), table]), numbers) for line in display._lines(part)]
    assert lines == [
        "more",
        "one",
        "two\\x07",
        f"  a  {'b' * 59}…",
        "  kNN             85.0 %  k = 20",
        "  Loss, training  2",
    ]
