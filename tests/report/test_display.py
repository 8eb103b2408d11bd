"""Parts as plain text: aligned, on one line each, without commands for a terminal."""

from __future__ import annotations

from pydantic import Field

from kontrast.report import display
from kontrast.report.page import Fold, Mark, Number, Numbers, Table, Text, fragment
from kontrast.runs.schemas import FileModel, State


class Measure(FileModel):
    """A part of what a verdict says."""

    name: str
    difference: float
    why: str | None = None


class Verdict(FileModel):
    """A model with a sentence of its own and a list of others, as that of an adaptation is."""

    shipped: str
    sentence: str
    measures: list[Measure] = Field(default_factory=list)
    rows: dict[str, int] = Field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence


def test_a_verdict_shows_its_sentence_and_its_numbers() -> None:
    measures = [Measure(name="<b>knn20</b>", difference=-0.00312), Measure(name="logistic", difference=0.5)]
    verdict = Verdict(
        shipped="frozen", sentence="kept the <i>frozen</i> encoder", measures=measures, rows={"all": 2000}
    )
    html = verdict._repr_html_()
    assert html.count("kept the &lt;i&gt;frozen&lt;/i&gt; encoder</p>") == 1
    assert "sentence" not in html, "it is said once"
    assert "<td>shipped</td><td>frozen</td>" in html
    assert "<td>all 2,000</td>" in html
    assert '<td>&lt;b&gt;knn20&lt;/b&gt;</td><td class="right">−0.00312</td>' in html
    assert "why" not in html, "no measure has one"
    assert str(verdict) == "kept the <i>frozen</i> encoder"


def test_a_models_own_text_stays_pydantics() -> None:
    state = State(status="done", step=1200)
    assert str(state).startswith("format=0 status='done'")
    assert "<td>1,200</td>" in state._repr_html_().replace(' class="right"', "")
    assert "command" not in state._repr_html_()


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
