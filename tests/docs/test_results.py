"""docs/results is what the command wrote: pages and index are made of the summaries, no number typed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kontrast import experiments
from kontrast.experiments import tables
from tests.docs.loading import script

results = script("results")
# Recorded before their experiments drew other charts; each leaves this list when it is recorded anew.
OLDER_CHARTS = {
    "graf-geometry-cpu": {"angles", "samples", "error"},
    "graf-random-labels-cpu": {"steps"},
}


@pytest.mark.parametrize("folder", results.folders(), ids=lambda folder: folder.name)
def test_pages_are_made_of_summaries(folder: Path) -> None:
    assert (folder / "README.md").read_text(encoding="utf-8") == results.page(folder), "run python docs/results.py"
    summary = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert summary["experiment"] in experiments.names()
    assert summary["made"]["command"].startswith("kontrast reproduce ")
    assert summary["made"]["commit"]
    assert (folder / "table.csv").read_bytes() == tables.csv(summary).encode()
    drawn = {file.stem for file in folder.glob("*.svg") if not file.stem.startswith("learning-")}
    charts = {chart.name for chart in experiments.find(summary["experiment"]).charts}
    assert drawn == OLDER_CHARTS.get(folder.name, charts)


def test_readme_has_the_table_that_the_script_writes() -> None:
    readme = results.README.read_text(encoding="utf-8")
    assert readme == results.with_headlines(readme), "run python docs/results.py"


def test_the_index_is_what_the_script_writes() -> None:
    assert (results.RESULTS / "README.md").read_text(encoding="utf-8") == results.index(), "run python docs/results.py"
