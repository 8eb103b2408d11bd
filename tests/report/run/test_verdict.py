"""The verdict on the page: the sentence, the numbers, and what is shipped."""

from __future__ import annotations

from kontrast.adaptation.comparison import Comparison
from kontrast.adaptation.verdict import judge, without_labels
from kontrast.report.page import Table, Text
from kontrast.report.records import RunRecord
from kontrast.report.run.verdict import section
from kontrast.runs import Contents, Result, Run, Verdict


def of(verdict: Verdict | None) -> RunRecord:
    return RunRecord(Contents(Run("runs/toy-1"), result=Result(verdict=verdict)))


def test_a_judged_run() -> None:
    compared = Comparison(before=0.9, after=0.93, won=80, lost=20, rows=2000)
    rows = {"learned": 800, "chose": 400, "cross-fitted": 266, "unseen": 0}
    made = section(of(judge({"knn20": compared}).model_copy(update={"rows": rows, "epoch": 7.0})))
    assert made is not None
    sentence, measures, counts, note = made.parts
    assert isinstance(sentence, Text)
    assert (sentence.kind, sentence.text[:12]) == ("good", "KNN: adapted")
    assert isinstance(measures, Table)
    assert [str(getattr(cell, "text", cell)) for cell in measures.rows[0]][:4] == [
        "kNN (k = 20)",
        "90.0 %",
        "93.0 %",
        "+3.0",
    ]
    assert isinstance(counts, Table)
    assert [row[0] for row in counts.rows] == ["800", "400", "266"]
    assert isinstance(note, Text)
    assert "is the adapted encoder" in note.text
    assert "epoch 7" in note.text


def test_a_run_that_nobody_could_judge_and_another_run() -> None:
    made = section(of(without_labels("there are no labels", accept=False)))
    assert made is not None
    assert [type(part) for part in made.parts] == [Text, Text]
    assert section(of(None)) is None
