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


@pytest.mark.parametrize("page", results.pages(), ids=lambda page: page.parent.name)
def test_pages_are_made_of_summaries(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == results.page(results.pages()[page]), "run python docs/results.py"


def test_every_sweep_is_on_one_page_and_no_other_page_is_there() -> None:
    assert sorted(folder for folders in results.pages().values() for folder in folders) == results.folders()
    assert {*results.pages(), results.RESULTS / "README.md"} == set(results.RESULTS.rglob("README.md"))


@pytest.mark.parametrize("folder", results.folders(), ids=lambda folder: folder.name)
def test_summaries_are_whole(folder: Path) -> None:
    summary = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert summary["experiment"] in experiments.names()
    assert summary["made"]["command"].startswith("kontrast reproduce ")
    assert summary["made"]["commit"]
    assert (folder / "table.csv").read_bytes() == tables.csv(summary).encode()
    drawn = {file.stem for file in folder.glob("*.svg") if not file.stem.startswith("learning-")}
    charts = {chart.name for chart in experiments.find(summary["experiment"]).charts}
    assert drawn == OLDER_CHARTS.get(folder.name, charts)


def test_readme_has_the_summary_that_the_script_writes() -> None:
    readme = results.README.read_text(encoding="utf-8")
    assert readme == results.with_summary(readme), "run python docs/results.py"


def test_searches_stand_in_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert "## Searches" not in results.index(), "none is kept"
    (tmp_path / "tune").mkdir()
    trials = [
        {"setting": {"k1": k1, "k2": 1.0}, "score": {"mean": mean, "half": 0.011, "n": 3}}
        for k1, mean in ((0.0, 0.8), (4000.0, 0.8123))
    ]
    begun = {"recipe": "tcl-fashion-mini", "accuracy": True, "phases": [{"name": "start", "trials": trials}]}
    ended = {"chosen": trials[1]["setting"], "stopped": "k2 brought nothing", "remark": {"words": "not resolved"}}
    (tmp_path / "tune" / "a.json").write_text(json.dumps({**begun, **ended}))
    (tmp_path / "tune" / "b.json").write_text(json.dumps(begun))
    found = results.index()
    chosen = "k1 = 4000, k2 = 1, 81.23 ± 1.10"
    assert f"| [a](tune/a.json) | tcl-fashion-mini | 2 | {chosen} | k2 brought nothing | not resolved |\n" in found
    assert "| [b](tune/b.json) | tcl-fashion-mini | 2 | – | not ended yet | – |\n" in found


def test_the_index_is_what_the_script_writes() -> None:
    assert (results.RESULTS / "README.md").read_text(encoding="utf-8") == results.index(), "run python docs/results.py"
