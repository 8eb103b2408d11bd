"""Graf et al.'s free points and label configurations."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from kontrast import experiments
from kontrast.experiments import charts
from kontrast.experiments.experiment import Row
from kontrast.experiments.papers.graf.points import circle_records, sphere_records
from kontrast.experiments.sweep import Sweep


def test_toy_and_label_configurations(tmp_path: Path) -> None:
    sweep = Sweep.of(experiments.find("graf-toy"), "smoke", out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    claims = {claim["text"]: claim["findings"][0]["verdict"] for claim in sweep.write()["claims"]}
    assert set(claims.values()) == {"holds"}, claims
    with np.load(sweep.cells[0].path / "points.npz") as arrays:
        assert arrays["path"].shape[1:] == (400, 3)
        np.testing.assert_allclose(np.linalg.norm(arrays["path"][-1], axis=1), 1.0, atol=1e-6)
    toy = experiments.find("graf-toy")
    rows = [Row(cell.at, "", "done", arrays=toy.keeps(cell.path)) for cell in sweep.cells]
    assert all(sum(array.nbytes for array in row.arrays.values()) < 50_000 for row in rows)
    points = sphere_records(rows)
    corners = {  # the simplex of four on its corner: two classes in front, two behind
        (record["class"], record["mark"], round(record["x"], 2) + 0.0, round(record["y"], 2) + 0.0)
        for record in points
        if record["panel"] == "sc, after"
    }
    across = round(math.sqrt(2 / 3), 2)
    assert corners == {
        ("class 1", "front", across, 0.0),
        ("class 2", "front", -across, 0.0),
        ("class 3", "behind", 0.0, across),
        ("class 4", "behind", 0.0, -across),
    }
    assert sum(record["mark"] == "weight" for record in points) == 2 * 4  # of ce-l2, before and after
    assert '"mark": "behind"' in json.dumps(charts.spec(toy.charts[1], rows))
    sweep = Sweep.of(experiments.find("graf-label-configurations"), "smoke", out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    gaps = {place["at"]["labels"]: place["cells"]["gap"]["mean"] for place in sweep.write()["places"]}
    assert gaps["3-3-3"] < 1e-6 < gaps["5-2-2"]
    keeps = experiments.find("graf-label-configurations").keeps
    drawn = circle_records([Row(cell.at, "", "done", arrays=keeps(cell.path)) for cell in sweep.cells])
    balanced = [record for record in drawn if record["panel"] == "3-3-3"]
    angles = [math.degrees(math.atan2(r["y"], r["x"])) % 360 for r in balanced]
    assert sorted({round(angle, 1) for angle in angles}) == [90.0, 210.0, 330.0]
    assert sorted({round(math.hypot(r["x"], r["y"]), 2) for r in balanced}) == [0.78, 0.89, 1.0]  # stacked inwards
