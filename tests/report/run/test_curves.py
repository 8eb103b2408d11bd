"""Training curves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kontrast.report.page import Figure, Text
from kontrast.report.records import read
from kontrast.report.run.curves import learning_rate, loss, monitors, section, thinned
from tests.report import made


def test_the_loss_stands_between_chance_and_bound(tmp_path: Path) -> None:
    chart = loss(read(made.folder(tmp_path / "run")))
    by = {
        what: [row["value"] for row in made.rows(chart) if row["what"].startswith(what)] for what in ("loss", "chance")
    }
    assert by == {"loss": [4.5, 4.0, 3.5, 3.0], "chance": [5.5] * 4}
    assert chart["encoding"]["strokeDash"]["scale"]["range"][0] == [1, 0], "only the theory is dashed"
    caption = next(p.caption for p in section_parts(tmp_path / "run") if p.name == "loss")
    assert caption == "At the end the loss has gone 83 % of the way from chance to its bound."


def section_parts(path: Path) -> list[Figure]:
    found = section(read(path))
    assert found is not None
    return [part for part in found.parts if isinstance(part, Figure)]


def test_a_chart_for_each_monitor_that_ran(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    assert [name for name, _ in monitors(run)] == ["knn", "uniformity", "entropy"]
    assert [part.name for part in section_parts(tmp_path / "run")] == [
        "loss",
        "learning-rate",
        "knn",
        "uniformity",
        "entropy",
    ]


def test_the_page_says_which_rows_the_monitors_look_at(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    made_of = section(read(path))
    assert made_of is not None
    (about,) = [part.text for part in made_of.parts if isinstance(part, Text)]
    assert "few hundred test rows each time" in about
    (path / "recipe.yaml").write_text(
        (path / "recipe.yaml").read_text().replace("name: pets", "name: pets\n  validation: 0.1")
    )
    held = section(read(path))
    assert held is not None
    assert any("held out of training" in part.text for part in held.parts if isinstance(part, Text))


def test_values_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    (path / "metrics.jsonl").write_text('{"step": 1, "loss": null, "bound": null}\n{"step": 2, "loss": 3.5}\n')
    assert [row["value"] for row in made.rows(loss(read(path)))] == [3.5]


def test_nothing_logged_no_section(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run", status="training")
    (path / "metrics.jsonl").unlink()
    assert section(read(path)) is None


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
    charts = dict(monitors(read(path)))
    assert {row["what"] for row in made.rows(charts["tolerance"])} == {"features"}
    assert {row["what"] for row in made.rows(charts["effective-rank"])} == {"features", "embeddings"}


def logged(path: Path, lines: list[dict[str, float]]) -> str:
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return next(part.caption for part in section_parts(path) if part.name == "loss")


def test_one_last_batch_does_not_tell_how_far_the_loss_came(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    lines = [{"step": i, "loss": 5.0, "chance": 5.0, "bound": 1.0} for i in range(20)]
    lines[-2]["loss"], lines[-1]["loss"] = 3.0, 1.0  # half of the way, and all of it
    assert logged(path, lines) == (
        "At the end the loss has gone 75 % of the way from chance to its bound (mean of the last 2 lines of the log)."
    )


@pytest.mark.parametrize(
    ("loss", "said"),
    [(5.001, "At the end the loss has gone 0 % of the way from chance to its bound."), (5.5, "stands above chance.")],
)
def test_a_loss_at_chance_or_above(tmp_path: Path, loss: float, said: str) -> None:
    caption = logged(made.folder(tmp_path / "run"), [{"step": 1, "loss": loss, "chance": 5.0, "bound": 1.0}])
    assert caption.endswith(said)


def test_ticks_of_a_learning_rate_are_told_apart(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    logged(path, [{"step": i, "loss": 1.0, "lr": 1e9 - 4e6 * i} for i in range(4)])
    form = learning_rate(read(path))["encoding"]["y"]["axis"]["format"]
    ticks = {f"{value:{form.replace('~', '')}}" for value in (1e9, 9.98e8, 9.96e8, 9.94e8, 9.92e8)}
    assert len(ticks) == 5
