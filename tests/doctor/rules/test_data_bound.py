"""Data-bound training: large pictures decoded for a small network."""

from __future__ import annotations

import pytest

from kontrast import recipes
from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from tests.doctor import patients


def test_runs() -> None:
    found = patients.findings("big-pictures")["data-bound"]
    assert found.status == "ill"
    assert "run.workers=4" in found.cure
    assert patients.findings("healthy")["data-bound"].status == "healthy", "images in memory are there at once"


@pytest.mark.parametrize(("waiting", "status"), [(0.6, "ill"), (0.3, "watch"), (0.1, "healthy")])
def test_thresholds(waiting: float, status: str) -> None:
    lines = [{"step": i, "waiting": w, "images_per_second": 100.0} for i, w in enumerate([0.9, waiting, waiting, 0.0])]
    record = Record(patient="run", written=recipes.find("supcon-fashion-mini"), lines=lines)
    found = RULES["data_bound"]()(record)
    assert found is not None
    assert found.status == status


def test_runs_of_before_it_was_written_down_are_unknown() -> None:
    found = RULES["data_bound"]()(Record(patient="run", lines=[{"step": 1, "loss": 2.0}]))
    assert found is not None
    assert (found.status, found.evidence) == ("unknown", "metrics.jsonl has no 'waiting'")
