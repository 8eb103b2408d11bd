"""Numbers read off run folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.experiments import outcome
from kontrast.experiments.experiment import Measure
from kontrast.experiments.plan import plan
from tests.experiments.test_plan import experiment

MEASURES = (
    outcome.accuracy("knn", "kNN", "probe", "knn20"),
    outcome.accuracy("wrong", "kNN", "knn20", error=True),
    outcome.accuracy("none", "no such protocol", "graf-linear"),
    outcome.geometry("uniformity", "uniformity", "−uniformity", sign=-1.0),
    outcome.simplex("distance", "distance", "S3"),
    outcome.value("seed", "the seed"),
    outcome.value("nothing", "no such key"),
)


def test_rows_of_cells(tmp_path: Path) -> None:
    cells = plan(experiment(), "cpu", ["temperature=[0.1,0.5]"], seeds=1, out=tmp_path)
    cells[0].perform()
    broken = plan(experiment(), "cpu", ["temperature=1.0", "optim.lr=1e30"], seeds=1, out=tmp_path)[0]
    with pytest.raises(ValueError, match="learning rate"):
        broken.perform()
    done, missing, failed = outcome.read([*cells, broken], MEASURES)
    record = outcome.result(cells[0].path)
    knn = next(r["value"] for r in record["results"] if r["name"] == "knn20")
    assert done.values["knn"] == pytest.approx(100 * knn)
    assert done.values["wrong"] == pytest.approx(100 - 100 * knn)
    assert done.values["none"] is None
    assert done.values["nothing"] is None
    assert done.values["seed"] == 0
    lines = {line["name"]: line["value"] for line in record["geometry"]["embeddings"]}
    assert done.values["uniformity"] == pytest.approx(-lines["uniformity, t = 2"])
    assert done.values["distance"] == record["geometry"]["simplex"]["embeddings"]["distance"]
    assert done.seconds is not None
    assert done.path == cells[0].path
    assert (missing.status, missing.values, missing.error) == ("missing", {}, None)
    assert failed.status == "failed"
    assert failed.error is not None
    assert "NonFiniteLoss" in failed.error


def test_a_measure_has_title_and_unit() -> None:
    assert isinstance(MEASURES[0], Measure)
    assert MEASURES[0].title == "kNN, top-1 (%)"
    assert MEASURES[1].title == "kNN, error (%)"
