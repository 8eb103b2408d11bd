"""Training curves."""

from __future__ import annotations

from pathlib import Path

from kontrast.report.page import Figure
from kontrast.report.run.collect import collect
from kontrast.report.run.curves import loss, monitors, section, thinned
from tests.report import made


def test_the_loss_stands_between_chance_and_bound(tmp_path: Path) -> None:
    chart = loss(collect(made.folder(tmp_path / "run")))
    by = {
        what: [row["value"] for row in made.rows(chart) if row["what"].startswith(what)] for what in ("loss", "chance")
    }
    assert by == {"loss": [4.5, 4.0, 3.5, 3.0], "chance": [5.5] * 4}
    assert chart["encoding"]["strokeDash"]["scale"]["range"][0] == [1, 0], "only the theory is dashed"
    caption = next(p.caption for p in section_parts(tmp_path / "run") if p.name == "loss")
    assert caption == "At the end the loss has gone 83 % of the way from chance to its bound."


def section_parts(path: Path) -> list[Figure]:
    found = section(collect(path))
    assert found is not None
    return [part for part in found.parts if isinstance(part, Figure)]


def test_a_chart_for_each_monitor_that_ran(tmp_path: Path) -> None:
    run = collect(made.folder(tmp_path / "run"))
    assert [name for name, _ in monitors(run)] == ["knn", "uniformity", "entropy"]
    assert [part.name for part in section_parts(tmp_path / "run")] == [
        "loss",
        "learning-rate",
        "knn",
        "uniformity",
        "entropy",
    ]


def test_values_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    (path / "metrics.jsonl").write_text('{"step": 1, "loss": null, "bound": null}\n{"step": 2, "loss": 3.5}\n')
    assert [row["value"] for row in made.rows(loss(collect(path)))] == [3.5]


def test_nothing_logged_no_section(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run", status="training")
    (path / "metrics.jsonl").unlink()
    assert section(collect(path)) is None


def test_long_runs_are_thinned() -> None:
    lines = [{"step": i} for i in range(12345)]
    kept = thinned(lines)
    assert len(kept) == 400
    assert (kept[0], kept[-1]) == (lines[0], lines[-1])


def test_what_is_the_same_twice_is_drawn_once(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 40, "monitor/tolerance": 0.5, "monitor/tolerance_features": 0.5}\n')
        file.write('{"step": 40, "monitor/effective_rank": 3, "monitor/effective_rank_embeddings": 2}\n')
    charts = dict(monitors(collect(path)))
    assert {row["what"] for row in made.rows(charts["tolerance"])} == {"features"}
    assert {row["what"] for row in made.rows(charts["effective-rank"])} == {"features", "embeddings"}
