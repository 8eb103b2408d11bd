"""The charts in Python are those of the page, by the page's names, as Altair objects that draw."""

from __future__ import annotations

import json
from pathlib import Path

import altair as alt
import pytest

from kontrast import report
from kontrast.report.figures import draw
from kontrast.report.page import figures
from kontrast.runs import Run
from tests.report import made
from tests.report.made import rows

NAMES = ["loss", "learning-rate", "knn", "uniformity", "entropy", "per-class", "confusion", "embedding-map"]
NAMES += ["uniformity-tolerance", "local-separation", "simplex"]
TOGETHER = {"training": ["loss", "learning_rate"], "geometry": ["local_separation", "simplex"]}
METHODS = {name: name.replace("-", "_") for name in NAMES if name not in ("knn", "uniformity", "entropy")}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(made.folder(tmp_path_factory.mktemp("runs") / "by-hand"))


def test_the_same_charts_with_the_same_numbers(run: Run) -> None:
    from kontrast.report.run import page

    charts, expected = run.charts, figures(page(run.path))
    assert list(charts) == [figure.name for figure in expected] == NAMES
    assert len(charts) == len(NAMES)
    for figure in expected:
        chart = charts[figure.name]
        assert isinstance(chart, alt.TopLevelMixin)
        assert rows(chart.to_dict()) == rows(figure.spec), figure.name


def test_each_has_a_method(run: Run) -> None:
    charts = run.charts
    for name, method in METHODS.items():
        spec = getattr(charts, method)().to_dict()
        assert spec == charts[name].to_dict(), name
        assert "currentColor" not in str(spec), "a notebook has no ink of its own"
        assert spec["config"]["background"] == "#ffffff"


@pytest.mark.parametrize("method", ["training", "geometry", "neighbours"])
def test_several_together_can_be_drawn(run: Run, method: str) -> None:
    spec = getattr(run.charts, method)().to_dict()
    if method == "neighbours":  # pictures are inside: nothing is loaded
        images = [row["image"] for row in rows(spec)]
        assert len(images) == 2 * 6
        assert all(image.startswith("data:image/") for image in images)
    else:
        drawn = draw(spec, "svg").decode()
        titles = ("Loss", "Learning rate", "Uniformity") if method == "training" else ("Local separation", "How near")
        assert all(title in drawn for title in titles)
        alone = [getattr(run.charts, name)().to_dict() for name in TOGETHER[method]]
        assert all(json.dumps(row) in json.dumps(spec) for chart in alone for row in rows(chart))


def test_what_is_not_there_says_so(run: Run, tmp_path: Path) -> None:
    bare = Run(made.folder(tmp_path / "bare", labels=False, images=False))
    with pytest.raises(ValueError, match="has no chart 'confusion': the run was not evaluated, or has no labels"):
        bare.charts.confusion()
    with pytest.raises(ValueError, match="has no pictures of neighbours: its rows are no images"):
        bare.charts.neighbours()
    with pytest.raises(KeyError, match="has no chart 'accuracy'; it has loss, learning-rate"):
        run.charts["accuracy"]
    with pytest.raises(ValueError, match="there is no folder"):
        Run(tmp_path / "nowhere").charts  # noqa: B018


def test_names_of_the_files_that_figures_writes(run: Run, tmp_path: Path) -> None:
    report.write([run.path], out=tmp_path / "page.html", figures="svg")
    assert {file.stem for file in tmp_path.glob("*.svg")} == {*run.charts}
