"""Cells of a grid."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.experiments import claims
from kontrast.experiments.cell import At, Cell, Task
from kontrast.experiments.experiment import Chart, Experiment, Preset
from kontrast.experiments.outcome import KNN
from kontrast.experiments.plan import estimate, plan
from kontrast.recipe import Recipe
from tests.train.small import recipe


def _make(at: At) -> Recipe:
    return recipe("simclr", **{"method.temperature": at["temperature"], "data": at["data"]})


def experiment(**changes: object) -> Experiment:
    """Three temperatures of a tiny run."""
    given: dict[str, object] = {
        "name": "small",
        "title": "Small",
        "source": "nowhere",
        "axes": {"data": ("digits",), "temperature": (0.1, 0.5, 1.0)},
        "presets": {"cpu": Preset("as it is", _make, seeds=2)},
        "measures": (),
        "rows": "temperature",
    }
    return Experiment(**{**given, **changes})  # type: ignore[arg-type]


def test_every_place_with_every_seed(tmp_path: Path) -> None:
    cells = plan(experiment(), "cpu", out=tmp_path)
    assert [(cell.at["temperature"], cell.at["seed"]) for cell in cells] == [
        (t, s) for s in range(2) for t in (0.1, 0.5, 1.0)
    ]
    assert len({cell.path for cell in cells}) == 6
    for cell in cells:
        assert isinstance(cell.does, Recipe)
        assert cell.does.method.options["temperature"] == cell.at["temperature"]
        assert cell.does.seed == cell.at["seed"]
        assert cell.path.parent == tmp_path
        assert not cell.does.run.progress


def test_settings_are_axes_or_overrides() -> None:
    cells = plan(experiment(), "cpu", ["temperature=[0.2,0.3]", "optim.lr=0.5"], seeds=1)
    assert [cell.at["temperature"] for cell in cells] == [0.2, 0.3]
    assert all(isinstance(c.does, Recipe) and c.does.optim.options["lr"] == 0.5 for c in cells)
    (one,) = plan(experiment(), "cpu", ["temperature=0.2", "data=some/photos.npz"], seeds=1)
    assert one.at == {"data": "photos", "temperature": 0.2, "seed": 0}  # a table names a file, not its path
    assert isinstance(one.does, Recipe)
    assert one.does.data.name == "some/photos.npz"


def test_the_same_cell_is_the_same_folder() -> None:
    assert [c.path for c in plan(experiment())] == [c.path for c in plan(experiment())]


def test_grids_that_are_not_full_and_seeds_that_differ() -> None:
    sparse = experiment(
        keep=lambda at: at["temperature"] != 0.5,
        presets={"cpu": Preset("", _make, seeds_at=lambda at: 3 if at["temperature"] == 0.1 else 1)},
    )
    found = [(cell.at["temperature"], cell.at["seed"]) for cell in plan(sparse)]
    assert found == [(0.1, 0), (1.0, 0), (0.1, 1), (0.1, 2)]


@pytest.mark.parametrize(
    ("preset", "settings", "seeds", "message"),
    [
        ("large", [], None, "has no preset 'large'"),
        ("cpu", ["train.epoch=1"], None, "did you mean 'epochs'"),
        ("cpu", [], 0, "must be 1 or more"),
        ("cpu", ["temperature=[]"], None, "no cell at temperature"),
        ("cpu", ["seed=5"], None, "say --seeds"),
        ("cpu", ["run.out=elsewhere"], None, "say --out"),
        ("cpu", ["method.temperature=0.5"], None, "are the same run"),
        ("cpu", ["temperature=[0.1,0.1]"], None, "are the same run"),
    ],
)
def test_what_cannot_be_planned(preset: str, settings: list[str], seeds: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(experiment(), preset, settings, seeds=seeds)


def test_a_task_takes_no_overrides() -> None:
    tasks = experiment(presets={"cpu": Preset("", lambda at: Task("a:b", dict(at)))})
    assert len(plan(tasks)) == 3
    with pytest.raises(ValueError, match="no axis"):
        plan(tasks, "cpu", ["optim.lr=1"])


def test_files_of_one_name_are_told_apart() -> None:
    cells = plan(experiment(), "cpu", ["data=[a/x.npz,b/x.npz]", "temperature=0.1"], seeds=1)
    assert [cell.at["data"] for cell in cells] == ["a/x.npz", "b/x.npz"]


def test_a_value_that_no_cell_can_have_is_an_error_with_those_that_can() -> None:
    def make(at: At) -> Recipe:
        raise KeyError(at["temperature"])

    with pytest.raises(ValueError, match=r"no cell at data=digits temperature=0\.1 .*temperature: 0\.1, 0\.5, 1\.0"):
        plan(experiment(presets={"cpu": Preset("", make)}))


def _broken(at: At) -> Recipe:
    return {"lr": 0.1}["optim"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rows": "temprature"},
            r"small: rows='temprature': must be an axis; did you mean 'temperature'\? It has data",
        ),
        ({"axes": {}}, "small: axes must have an axis with its values, and there is none"),
        ({"axes": {"temperature": ()}}, r"small: axes: temperature must have a list of one value or more, got \(\)"),
        ({"axes": {"temperature": "high"}}, "temperature must have a list of one value or more, got 'high'"),
        ({"presets": {}}, r"small has no preset 'cpu'\. It has none$"),
        (
            {"presets": {"cpu": Preset("", _make, axes={"temp": (1,)})}},
            r"cpu's axes='temp': must be an axis; did you mean 'temperature'",
        ),
        ({"keep": lambda at: False}, "small: keep must leave a place of the preset 'cpu', and it leaves none"),
        (
            {"presets": {"cpu": Preset("", lambda at: None)}},
            "make must return a Recipe or a Task, and returned a NoneType",
        ),
        (
            {"presets": {"cpu": Preset("", _broken)}},
            "small: make raised KeyError: 'optim' at data=digits temperature=0.1",
        ),
        (
            {"claims": [claims.rises("τ helps", "kn", "temperature")]},
            r"claim 'τ helps': measure='kn': must be a measure",
        ),
        ({"claims": [claims.rises("τ helps", "knn", "tau")]}, r"claim 'τ helps': .*the axis 'tau'"),
        ({"claims": [claims.near("τ helps", "knn", 1, 1, {"tau": 1})]}, r"claim 'τ helps': .*the axis 'tau'"),
        (
            {"claims": [claims.higher("τ helps", "knn", {"tau": 1}, {"tau": 2}, within=("data",))]},
            r"claim 'τ helps': .*the axis 'tau'",
        ),
        (
            {"charts": [Chart("a", "A", "lines", "temperature", "knn")]},
            r"chart 'a': kind='lines': .*did you mean 'line'",
        ),
        (
            {"charts": [Chart("a", "A", "line", "temperature", "kn")]},
            r"chart 'a': y='kn': must be an axis or a measure",
        ),
        ({"charts": [Chart("a", "A", "line", "temperature", "knn", "method")]}, r"chart 'a': colour='method'"),
    ],
)
def test_an_experiment_that_is_not_whole_is_refused_before_its_first_cell(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan(experiment(**{"measures": (KNN,), **changes}))


def test_a_misspelt_axis_is_told_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"small has no axis 'temperatur'; did you mean 'temperature'\? It has data, "):
        plan(experiment(), "cpu", ["temperatur=[0.1]"])
    with pytest.raises(
        ValueError, match=r"has no cell at temperature=\[\]; its axes are data: digits; temperature: 0\.1"
    ):
        plan(experiment(), "cpu", ["temperature=[]"])


def test_each_kind_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Recipe] = []

    def measured(recipe: Recipe) -> float:
        seen.append(recipe)
        return 10.0 * (recipe.train.epochs or 0)

    monkeypatch.setattr("kontrast.train.loop.seconds_to_train", measured)
    short, long = plan(experiment()), plan(experiment(), "cpu", ["train.epochs=6"])
    found = estimate([*short, *long, Cell({}, Task("a:b"))])
    assert len(seen) == 1  # temperatures, seeds and epochs are of one kind
    assert found.cells == 13
    assert found.seconds == pytest.approx(6 * 30 + 6 * 60)
    larger = plan(experiment(), "cpu", ["train.batch_size=64"])
    assert estimate([*short, *larger]).seconds == pytest.approx(12 * 30)
    assert len(seen) == 3


def test_data_that_are_not_there_are_said(tmp_path: Path) -> None:
    found = estimate(plan(experiment(), "cpu", [f"data={tmp_path / 'none.npz'}"]))
    assert found.seconds is None
    assert "none.npz" in found.why
