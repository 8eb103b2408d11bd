"""Raw pixels and untrained encoders: once for what they depend on, by the runs' protocols."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast import data, evaluate, experiments
from kontrast.experiments import baselines
from kontrast.experiments.baselines import RAW, UNTRAINED, baselines_of
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Preset
from kontrast.experiments.plan import plan
from kontrast.recipe import Recipe
from tests.experiments.test_plan import experiment
from tests.train.small import recipe


def test_a_sweep_has_each_once() -> None:
    made = baselines_of(plan(experiment(), "cpu"))
    assert [baseline.name for baseline in made] == [RAW, UNTRAINED], "whatever the temperature"
    for name in experiments.names():
        found = baselines_of(plan(experiments.find(name), "smoke"))
        assert len({baseline.cell.path for baseline in found}) == len(found)
        assert len(found) <= 10, name
    assert baselines_of(plan(experiments.find("graf-toy"), "smoke")) == [], "points have no pixels"


@pytest.mark.parametrize("name", experiments.names())
def test_no_two_of_an_experiment_have_one_place(name: str) -> None:
    """A ledger keeps them by name, place and seed."""
    made = baselines_of(plan(experiments.find(name), "cpu", seeds=1))
    places = [(baseline.name, *sorted(baseline.at.items())) for baseline in made]
    assert len(set(places)) == len(places)


def test_a_part_of_a_grid_gives_a_baseline_the_same_place() -> None:
    """Signed and unsigned encoders stand on one axis of methods, and are collected by two commands."""
    both = baselines_of(plan(experiments.find("graf-geometry"), "cpu", seeds=1))
    signed = baselines_of(plan(experiments.find("graf-geometry"), "cpu", ["method=[ce-signed,sc-signed]"], seeds=1))
    plain = baselines_of(plan(experiments.find("graf-geometry"), "cpu", ["method=[ce,sc]"], seeds=1))
    assert [baseline.at for baseline in both[1:]] == [plain[1].at, signed[1].at]
    assert signed[1].at == {**plain[1].at, "signed": True}
    assert [baseline.hash for baseline in both] == [plain[0].hash, plain[1].hash, signed[1].hash]


def test_where_the_data_lie_does_not_count() -> None:
    here = baselines_of(plan(experiment(), "cpu"))
    there = baselines_of(plan(experiment(), "cpu", ["run.data_root=elsewhere"]))
    assert [baseline.hash for baseline in here] == [baseline.hash for baseline in there]
    assert [baseline.cell.path for baseline in here] != [baseline.cell.path for baseline in there]


def test_what_they_depend_on_tells_them_apart() -> None:
    def make(at: At) -> Recipe:
        changes = {"encoder.features": at["features"], "data.noise": at["noise"]}
        return recipe("simclr", **changes)

    axes = {"features": (8, 16), "noise": (0.0, 0.5)}
    cells = plan(experiment(axes=axes, rows="features", presets={"cpu": Preset("", make, seeds=2)}), "cpu")
    made = [(baseline.name, baseline.at) for baseline in baselines_of(cells)]
    assert made == [
        (RAW, {"seed": 0}),
        (UNTRAINED, {"features": 8, "seed": 0}),
        (UNTRAINED, {"features": 16, "seed": 0}),
    ]


def test_they_are_evaluated_as_the_runs_are(tmp_path: Path) -> None:
    cells = plan(experiment(), "cpu", ["temperature=0.1"], seeds=1, out=tmp_path)
    raw, untrained = baselines_of(cells)
    assert baselines.read(raw).status == "missing"
    for baseline in (raw, untrained):
        baseline.cell.perform()
    row = baselines.read(raw)
    assert row.at == {"data": "digits", "seed": 0}
    [expected] = evaluate.baselines(data.load("digits", limit=200, test_limit=100, seed=0), ["knn20"], seed=0)
    assert row.values["knn20"] == pytest.approx(100 * expected.value)
    assert row.values["error:knn20"] == pytest.approx(100 * expected.error)
    # A run that takes no step worth the name ends where the untrained encoder stands.
    still = plan(
        experiment(), "cpu", ["temperature=0.1", "optim.lr=1e-12", "encoder.batch_norm=false"], seeds=1, out=tmp_path
    )
    still[0].perform()
    [_, start] = baselines_of(still)
    start.cell.perform()
    from kontrast.experiments.outcome import KNN

    assert KNN.read(still[0].path) == baselines.read(start).values["knn20"]


def test_large_images_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "MOST_BYTES", 1000)
    [raw, _] = baselines_of(plan(experiment(), "cpu", ["temperature=0.1"], seeds=1, out=tmp_path))
    found = baselines.raw_pixels(tmp_path, **raw.task.options)
    assert found["results"] == []
    assert "raw pixels take" in found["note"]


def test_a_published_protocol_on_raw_pixels(tmp_path: Path) -> None:
    made = recipe("simclr").override(
        {
            "data": "fashion-mini",
            "data.limit": 64,
            "data.test_limit": 32,
            "encoder": "small-resnet",
            "encoder.width": 4,
            "evaluate.protocols": [{"name": "wang-liu", "epochs": 1}],
        }
    )
    part = baselines._part(made)
    for task in (baselines.raw_pixels, baselines.untrained):
        [result] = task(tmp_path, recipe=part)["results"]
        assert result["name"] == "wang-liu"
        assert 0 <= result["value"] <= 1
