"""Graf et al.'s random labels."""

from __future__ import annotations

from pathlib import Path

from kontrast import experiments
from kontrast.experiments.experiment import Row
from kontrast.experiments.papers.graf.random_labels import composition_records, interaction_records
from kontrast.experiments.sweep import Sweep


def test_random_labels_smoke(tmp_path: Path) -> None:
    """Four steps fit nothing: every run is censored, and said to be."""
    settings = ["method=[ce,sc]", "fraction=[0.5,1.0]"]
    sweep = Sweep.of(experiments.find("graf-random-labels"), "smoke", settings, seeds=1, out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    summary = sweep.write()
    assert summary["status"] == {"done": 4}
    assert [place["cells"]["steps"]["censored"] for place in summary["places"]] == [1, 1, 1, 1]
    assert "&gt; 4" in (sweep.folder / "table.md").read_text()
    experiment = experiments.find("graf-interaction")
    cell = next(cell for cell in sweep.cells if cell.at["method"] == "sc")
    assert all(0 < measure.read(cell.path) <= 1 for measure in experiment.measures[:3])  # type: ignore[operator]
    kept = experiment.keeps(cell.path)
    assert kept["step"].tolist() == [2, 4]
    row = Row(cell.at, "", "done", arrays=kept)
    assert {2, 4, 8} <= {record["rows of the class"] for record in composition_records([row])} < {2, 4, 8, 16, 32}
    assert {record["step"] for record in interaction_records([row])} == {2, 4}
