"""Graf et al.'s trained encoders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kontrast import experiments
from kontrast.experiments.experiment import Row
from kontrast.experiments.papers.graf.encoders import EXCESS, OFF, cosine_records
from kontrast.experiments.plan import plan
from kontrast.experiments.sweep import Sweep
from kontrast.recipe import Recipe


def test_the_papers_values_stand_at_their_places() -> None:
    value = experiments.find("graf-table").published
    assert value({"data": "cifar100", "method": "sc", "augmented": True}, "error") == 24.9
    assert value({"data": "cifar100", "method": "ce-fix", "augmented": False}, "error") == 41.3


def test_kinds_of_geometry() -> None:
    cells = {cell.at["method"]: cell.does for cell in plan(experiments.find("graf-geometry"), "cpu", seeds=1)}
    made = {kind: does for kind, does in cells.items() if isinstance(does, Recipe)}
    assert made["ce-random"].method.options["weights"] == "random"
    assert made["ce-fix"].method.options["weights"] == "simplex"
    assert (made["sc"].head.name, made["sc-projector"].head.name) == ("none", "tcl")
    signed = {kind for kind, recipe in made.items() if recipe.encoder.options["signed"]}
    assert signed == {"ce-signed", "sc-signed"}
    assert {kind for kind, recipe in made.items() if recipe.evaluate.head} == {"sc-projector"}
    table = {cell.path for cell in plan(experiments.find("graf-table"), "cpu")}
    shared = {cell.at["method"] for cell in plan(experiments.find("graf-geometry"), "cpu") if cell.path in table}
    assert shared == {"ce", "ce-fix", "sc"}


def test_experiments_on_open_questions_share_runs() -> None:
    """A projector's runs are graf-geometry's, the interaction's are graf-random-labels'."""
    for one, other, methods in (
        ("graf-projector", "graf-geometry", {"sc", "sc-projector", "ce"}),
        ("graf-interaction", "graf-random-labels", {"sc"}),
    ):
        there = {cell.path for cell in plan(experiments.find(other), "cpu")}
        shared = {cell.at["method"] for cell in plan(experiments.find(one), "cpu") if cell.path in there}
        assert shared == methods


def result(folder: Path, **simplex: object) -> Path:
    folder.mkdir()
    record = {
        "results": [{"name": "graf-linear", "protocol": "graf-linear", "value": 0.75}],
        "geometry": {"simplex": {"embeddings": simplex}},
    }
    (folder / "result.json").write_text(json.dumps(record))
    return folder


def test_closeness_is_counted_from_what_the_sign_allows(tmp_path: Path) -> None:
    """A frame of ten: one unit from the simplex, and as close as features >= 0 can be; not known in few dimensions."""
    frame = {"origin": 10**-0.5, "norm": 0.0, "distance": 0.0, "num_classes": 10}
    signed = result(tmp_path / "signed", **frame, least=0.0)
    rectified = result(tmp_path / "rectified", **frame, least=10**-0.5)
    narrow = result(tmp_path / "narrow", **frame)
    assert OFF.read(signed) == pytest.approx(10**-0.5)
    assert EXCESS.read(signed) == pytest.approx(1.0)
    assert EXCESS.read(rectified) == pytest.approx(0.0, abs=1e-12)
    assert EXCESS.read(narrow) is None
    assert OFF.read(result(tmp_path / "all", origin=0.3, norm=0.4, distance=1.2, num_classes=4)) == pytest.approx(1.3)


def test_all_of_s1_to_s3_decide() -> None:
    """A frame (S3 = 0) does not count as close where features are signed; the verdict is on all three together."""
    claim = next(c for c in experiments.find("graf-geometry").claims if "signed features both" in c.text)

    def rows(excess: float) -> list[Row]:
        return [
            Row({"data": "made", "method": kind, "seed": s}, "", "done", {"excess": excess + 0.01 * s, "s3": 0.0})
            for kind in ("ce-signed", "sc-signed")
            for s in range(3)
        ]

    assert [f.verdict for f in claim.test(rows(1.0))] == ["does not hold"]
    assert [f.verdict for f in claim.test(rows(0.1))] == ["holds"]


def test_projector_smoke(tmp_path: Path) -> None:
    """Before and after the projector: distances and errors of both; without one they are the same."""
    experiment = experiments.find("graf-projector")
    sweep = Sweep.of(experiment, "smoke", ["method=[sc,sc-projector]"], seeds=1, out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    plain, behind = ({m.name: m.read(cell.path) for m in experiment.measures} | {"cell": cell} for cell in sweep.cells)
    assert plain["nearer"] == plain["lost"] == 0.0
    assert behind["before"] != behind["off"]
    assert behind["nearer"] == pytest.approx(behind["before"] - behind["off"])
    head = json.loads((behind["cell"].path / "result.json").read_text())["head"]
    assert behind["head_error"] == pytest.approx(100 * (1 - head[0]["value"]))
    kept = experiment.keeps(behind["cell"].path)
    assert sum(array.nbytes for array in kept.values()) < 50_000
    assert kept["num_classes"] == [10]
    drawn = cosine_records([Row({"data": "d", "method": "sc", "seed": 0}, "", "done", arrays=kept)])
    assert [record["panel"] for record in drawn] == ["class means", "weights", "samples to their mean"]
    assert [record["theory"] for record in drawn] == pytest.approx([-1 / 9, -1 / 9, 1.0])
    assert drawn[0]["cosine"] == drawn[1]["cosine"] == pytest.approx(np.median(kept["between_means"]))
