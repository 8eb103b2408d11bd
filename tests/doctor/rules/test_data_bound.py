"""Data-bound training: large pictures decoded for a small network."""

from __future__ import annotations

import pytest

from kontrast import recipes
from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from tests.doctor import patients


def test_runs() -> None:
    found = patients.findings("big-pictures")["data-bound"]
    assert found.status == "problem"
    assert "run.workers=4" in found.advice
    assert patients.findings("healthy")["data-bound"].status == "ok", "images in memory are there at once"


@pytest.mark.parametrize(("waiting", "status"), [(0.6, "problem"), (0.3, "warning"), (0.1, "ok")])
def test_thresholds(waiting: float, status: str) -> None:
    lines = [{"step": i, "waiting": w, "images_per_second": 100.0} for i, w in enumerate([0.9, waiting, waiting, 0.0])]
    record = Record(patient="run", resolved=recipes.find("supcon-fashion-mini"), metrics=lines)
    found = RULES["data_bound"]()(record)
    assert found is not None
    assert found.status == status


def test_runs_of_before_it_was_written_down_are_unknown() -> None:
    found = RULES["data_bound"]()(Record(patient="run", metrics=[{"step": 1, "loss": 2.0}]))
    assert found is not None
    assert (found.status, found.evidence) == ("unknown", "metrics.jsonl has no 'waiting'")
