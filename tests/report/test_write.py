"""`kontrast.report.write`: which page, where it goes, and what it may not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kontrast import report
from tests.report import made
from tests.report.experiment.made_up import write_experiment


def test_a_run_s_page_goes_into_its_folder(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "runs" / "by-hand-1")
    assert report.write([run]) == run / "report.html"
    html = (run / "report.html").read_text()
    for heading in ("Result", "Training", "Accuracy", "Embedding map", "Nearest neighbours", "Views", "Geometry"):
        assert f"<h2>{heading}</h2>" in html
    assert report.write([run], out=tmp_path / "deep" / "page.html") == tmp_path / "deep" / "page.html"


def test_figures_beside_the_page(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    report.write([run], out=tmp_path / "out" / "page.html", figures="svg")
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "loss.svg" in files
    assert "embedding-map.svg" in files
    for name in files:
        if name.endswith(".svg"):
            text = (tmp_path / "out" / name).read_text()
            assert text.startswith("<svg")
            assert "currentColor" not in text


def test_figures_of_an_experiment_leave_the_sweep_s_own_alone(tmp_path: Path) -> None:
    folder = write_experiment(tmp_path)
    (folder / "squares.svg").write_text("the sweep's")
    report.write([folder], figures="svg")
    assert (folder / "squares.svg").read_text() == "the sweep's"
    assert (folder / "figures" / "squares.svg").read_text().startswith("<svg")


def test_it_needs_no_torch(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from kontrast import report; "
        "print('altair' in sys.modules); report.write([Path(sys.argv[1])]); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_real_run_fits(real_page: Path) -> None:
    assert real_page.stat().st_size < 4e6


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one run"):
        report.write([])
    with pytest.raises(ValueError, match=r"there is no folder .*nowhere"):
        report.write([tmp_path / "nowhere"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("")
    with pytest.raises(ValueError, match=r"neither a run's folder .* it has notes.txt. Give the folder that"):
        report.write([tmp_path / "other"])
    task = tmp_path / "task"
    task.mkdir()
    (task / "task.json").write_text("{}")
    with pytest.raises(ValueError, match="is a task of an experiment, not a training run"):
        report.write([task])
    experiment = tmp_path / "experiment"
    experiment.mkdir()
    (experiment / "result.json").write_text(json.dumps({"experiment": "x"}))
    with pytest.raises(ValueError, match=r"it has its own report\. Compare runs with runs"):
        report.write([experiment, made.folder(tmp_path / "run")])
    with pytest.raises(ValueError, match="figures='gif': must be one of svg, pdf, png"):
        report.write([tmp_path / "run"], figures="gif")


def test_a_run_that_failed_has_a_page_too(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run", status="failed", error="NonFiniteLoss: <nan>")
    (run / "analysis.npz").unlink()
    (run / "analysis.json").unlink()
    html = report.write([run]).read_text()
    assert "NonFiniteLoss: &lt;nan&gt;" in html
    assert "<h2>Training</h2>" in html
    assert "<h2>Embedding map</h2>" not in html


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"the report cannot be written to .* choose another --out"):
        report.write([run], out=tmp_path / "file" / "page.html")
