"""Numbers read off run folders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kontrast.experiments import outcome
from kontrast.experiments.experiment import Claim, Measure, kind_of
from kontrast.experiments.plan import plan
from kontrast.files import read_npz
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

    def keeps(folder: Path) -> dict[str, np.ndarray]:
        found = read_npz(folder / "analysis.npz", "", names=("within", "rows", "no such array"))
        return {**found, "within": found["within"].astype(np.float16)}

    done, missing, failed = outcome.read([*cells, broken], MEASURES, keeps)
    record = outcome.result(cells[0].path)
    knn = next(r["value"] for r in record["results"] if r["name"] == "knn20")
    assert done.values["knn"] == pytest.approx(100 * knn)
    assert done.values["wrong"] == pytest.approx(100 - 100 * knn)
    error = 100 * next(r["error"] for r in record["results"] if r["name"] == "knn20")
    assert done.values["error:knn"] == done.values["error:wrong"] == pytest.approx(error)
    assert error > 0
    assert "error:none" not in done.values
    assert done.values["none"] is None
    assert done.values["nothing"] is None
    assert done.values["seed"] == 0
    lines = {line["name"]: line["value"] for line in record["geometry"]["embeddings"]}
    assert done.values["uniformity"] == pytest.approx(-lines["uniformity, t = 2"])
    assert done.values["distance"] == record["geometry"]["simplex"]["embeddings"]["distance"]
    assert {name: x.dtype.name for name, x in done.arrays.items()} == {"within": "float16", "rows": "int64"}
    looks = [point for point in done.curve if "knn" in point]
    logged = [point for point in done.curve if "loss" in point]
    assert [point["step"] for point in looks] == [6, 12, 18], "once an epoch of 6 steps"
    assert logged[-1]["step"] == 18
    assert all({"loss", "chance", "bound"} <= set(point) for point in logged)
    assert list(outcome.analyses([done, missing, failed])) == [(done, done.arrays)]
    assert done.seconds is not None
    assert done.path == cells[0].path
    assert (missing.status, missing.values, missing.error) == ("missing", {}, None)
    assert failed.status == "failed"
    assert failed.error is not None
    assert "NonFiniteLoss" in failed.error


def test_a_learning_curve_is_thinned(tmp_path: Path) -> None:
    lines: list[dict[str, float | None]] = [
        {"step": step, "loss": float(step), "chance": 5.0, "bound": None} for step in range(10, 10_010, 10)
    ]
    lines += [{"step": step, "monitor/knn20": step / 10_000} for step in range(100, 10_100, 100)]
    lines.append({"step": 5, "loss": None})
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    curve = outcome.learning_curve(tmp_path)
    losses = [point for point in curve if "loss" in point]
    assert len(losses) == outcome.LOSSES
    assert losses[0] == {"step": 250, "loss": sum(range(10, 260, 10)) / 25, "chance": 5.0}, "the mean of a stretch"
    assert losses[-1]["step"] == 10_000
    looks = [point for point in curve if "knn" in point]
    assert len(looks) == outcome.MONITORED
    assert (looks[0], looks[-1]) == ({"step": 100, "knn": 0.01}, {"step": 10_000, "knn": 1.0})
    assert [point["step"] for point in curve] == sorted(point["step"] for point in curve)
    assert outcome.learning_curve(tmp_path / "none") == []
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    assert outcome.learning_curve(tmp_path) == [{"step": 1, "loss": 2.0}]


def test_a_measure_has_title_and_unit() -> None:
    assert isinstance(MEASURES[0], Measure)
    assert MEASURES[0].title == "kNN, top-1 (%)"
    assert MEASURES[1].title == "kNN, error (%)"


def test_a_measure_has_its_kind() -> None:
    kinds = ["accuracy"] * 3 + ["geometry"] * 2 + ["theory"] * 2
    assert [measure.kind for measure in MEASURES] == kinds
    every = [Claim("", "", lambda rows: [], (measure.name,)) for measure in MEASURES]
    assert [kind_of(claim, MEASURES) for claim in every] == kinds
    both = Claim("", "", lambda rows: [], ("uniformity", "wrong"))
    assert kind_of(both, MEASURES) == "accuracy"
    assert kind_of(replace(both, kind="theory"), MEASURES) == "theory"
