"""The paper's table on a page."""

from __future__ import annotations

from kontrast.report.experiment.table import tables
from kontrast.report.page import Mark
from tests.report.experiment.made_up import summary


def test_ours_the_papers_and_the_difference_have_columns() -> None:
    (table,) = tables(summary())
    assert table.columns == ["loss", "kNN (%)", "paper", "difference"]
    assert table.rows[0] == ["tcl", "83.4 ± 0.5", "83.3", "+0.1"]
    assert table.caption == "kNN (%); n = 2 seeds a cell"


def test_what_failed_is_marked_and_no_number() -> None:
    (table,) = tables(summary())
    name, ours, *rest = table.rows[1]
    assert name == "supcon"
    assert ours == Mark("failed: RuntimeError: <b>nan</b>", "bad")
    assert rest == ["–", "–"]


def test_a_paper_on_other_data_has_its_name_and_no_difference() -> None:
    made = summary()
    made["places"][0]["cells"]["knn"] |= {"paper_data": "CIFAR-10", "paper_half": 0.25, "difference": None}
    (table,) = tables(made)
    assert table.columns == ["loss", "kNN (%)", "paper, on CIFAR-10"]
    assert table.rows[0][2] == "83.3 ± 0.2"


def test_bounds_and_other_numbers_of_seeds_are_told_in_the_cell() -> None:
    made = summary()
    made["places"][1] = {**made["places"][0], "at": {"loss": "supcon"}}
    made["places"][1]["cells"] = {"knn": {**made["places"][0]["cells"]["knn"], "n": 1, "half": None, "censored": 1}}
    (table,) = tables(made)
    assert [row[1] for row in table.rows] == ["83.4 ± 0.5 (n = 2)", "> 83.4 (n = 1; 1 without a value)"]
    assert "seeds" not in table.caption


def test_a_paper_without_values_has_no_column() -> None:
    made = summary()
    made["places"][0]["cells"]["knn"] |= {"paper": None, "difference": None}
    assert tables(made)[0].columns == ["loss", "kNN (%)"]
