"""The layout of a summary's tables. What a whole summary becomes is tested in tests/experiments/test_tables.py."""

from __future__ import annotations

from typing import Any

from kontrast.report.layout import WIDEST, Entry, entry, from_ledger, heading, layouts
from kontrast.runs import Summary
from kontrast.runs.schemas import Place, SummaryMeasure

CELL = {"paper": 83.27, "mean": 83.41, "half": 0.52, "n": 2, "difference": 0.14}


def place(*statuses: str, at: dict[str, Any] | None = None, **cell: Any) -> Place:
    runs = [
        {"folder": f"run-{i}", "status": s, "error": "E: no" if s == "failed" else None} for i, s in enumerate(statuses)
    ]
    return Place.model_validate({"at": at or {}, "runs": runs, "cells": {"knn": {**CELL, **cell}}})


def words(place: Place) -> Entry:
    return entry(place, SummaryMeasure(name="knn", title="kNN (%)"))


def test_a_cell_says_what_its_other_runs_do() -> None:
    assert words(place("done", "done", "failed")) == Entry("83.4 ± 0.5 (n = 2; 1 failed)", "83.3", difference="+0.1")
    assert words(place("done", "done", "done")).ours == "83.4 ± 0.5 (n = 2; 1 without a value)"


def test_a_cell_without_numbers_says_why() -> None:
    none = {"n": 0, "mean": None, "half": None, "difference": None}
    assert words(place("failed", "missing", **none)) == Entry("failed: E: no", "83.3", good=False)
    assert words(place("missing", "training", **none)).ours == "missing, training"
    assert words(place("done", **none)).ours == "no value"


def test_a_censored_cell_is_a_bound() -> None:
    assert words(place("done", "done", censored=1, half=None)).ours == "> 83.4 (n = 2; 1 censored)"


def test_wide_tables_are_split_by_the_first_axis_across() -> None:
    taus, sets = list(range(WIDEST)), ["a", "b"]
    places = [
        place("done", "done", at={"data": d, "tau": t, "loss": loss}) for d in sets for t in taus for loss in ("x", "y")
    ]
    summary = Summary(
        experiment="demo",
        places=places,
        axes={"loss": ["x", "y"], "data": sets, "tau": taus},
        rows="loss",
        measures=[SummaryMeasure(name="knn", title="kNN (%)")],
    )
    tables = layouts(summary)
    assert [table.caption for table in tables] == ["kNN (%); data = a", "kNN (%); data = b"]
    assert all(table.rows == ["x", "y"] and len(table.columns) == WIDEST for table in tables)


def test_plain_values_give_the_same_tables() -> None:
    values = {"experiment": "demo", "places": [place("done", "done", at={"loss": "x"}).model_dump()], "rows": "loss"}
    values |= {"axes": {"loss": ["x"]}, "measures": [{"name": "knn", "title": "kNN (%)"}]}
    assert layouts(values) == layouts(Summary.model_validate(values))
    assert heading(values)[:2] == ["Source:", "Preset :"]


def test_runs_from_a_ledger_are_counted() -> None:
    assert from_ledger({}) == ""
    assert from_ledger({"cells": 3}) == "From the ledger: 3 runs"
    assert "2 of them ran with settings" in from_ledger({"cells": 3, "other_recipe": 2})
