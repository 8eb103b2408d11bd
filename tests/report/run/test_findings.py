"""The doctor's findings on the page."""

from __future__ import annotations

from pathlib import Path

from kontrast.files import write_json
from kontrast.report.page import Fold, Table, Text
from kontrast.report.run.collect import collect
from kontrast.report.run.findings import section
from tests.report import made


def finding(status: str) -> dict[str, str]:
    return {"rule": status, "status": status, "title": f"is {status}", "evidence": "because", "advice": "do this"}


def test_problems_first_and_what_is_ok_folded(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    states = ("ok", "warning", "unknown", "problem", "ok")
    write_json(run / "doctor.json", {"findings": [finding(status) for status in states]})
    problem, warning, rest, *_ = section(collect(run)).parts
    assert problem == Text("✗ Is problem\nbecause\nWhat to do: do this", "bad")
    assert warning == Text("! Is warning\nbecause\nWhat to do: do this", "watch")
    assert isinstance(rest, Fold)
    assert rest.title == "2 ok, 1 could not be examined"
    (table,) = rest.parts
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == ["unknown", "ok", "ok"]


def test_a_healthy_run_and_one_that_nobody_looked_at(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    first = section(collect(run)).parts[0]
    assert isinstance(first, Text)
    assert "has not been examined yet: kontrast doctor" in first.text
    write_json(run / "doctor.json", {"findings": [finding("ok")]})
    assert section(collect(run)).parts[0] == Text("No problem found: 1 of 1 rules are ok.", "good")


def test_what_next_is_for_finished_runs(tmp_path: Path) -> None:
    done = section(collect(made.folder(tmp_path / "runs" / "a"))).parts[-1]
    assert isinstance(done, Text)
    assert "kontrast train runs/a seed=1" in done.text
    begun = section(collect(made.folder(tmp_path / "runs" / "b", status="training"))).parts
    assert len(begun) == 1
