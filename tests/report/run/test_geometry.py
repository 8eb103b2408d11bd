"""The theory's side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.report.corners import simplex_uniformity
from kontrast.report.figures import draw
from kontrast.report.page import Figure
from kontrast.report.records import RunRecord, find_others, read
from kontrast.report.run.geometry import density, position, section, separation, simplex
from tests.report import made


def with_others(path: Path) -> RunRecord:
    record = read(path)
    return replace(record, others=find_others(record))


def test_the_corners_of_the_theory(tmp_path: Path) -> None:
    made.folder(tmp_path / "other")
    rows = made.rows(position(with_others(made.folder(tmp_path / "run"))))
    found = {row["name"]: (row["x"], row["y"]) for row in rows}
    assert found == {
        "other": (-2.1, 0.6),
        "uniform on the sphere": (-3.9, 0.0),
        "all rows equal": (0.0, 1.0),
        "3 points, a simplex": (pytest.approx(simplex_uniformity(3)), 1.0),
        "run": (-2.1, 0.6),
    }


def test_a_simplex_that_the_dimensions_do_not_hold_is_no_corner(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    run.geometry.simplex["features"]["reachable"] = False
    assert {row["name"] for row in made.rows(position(run))} == {"uniform on the sphere", "all rows equal", "run"}


def test_separation_has_quantiles(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    run.arrays["nearest"] = np.linspace(0, 1, 101)[:, None]
    own, nearest = made.rows(separation(run))
    assert own["median"] == pytest.approx(0.9)
    assert [nearest[key] for key in ("low", "q1", "median", "q3", "high")] == pytest.approx(
        [0.05, 0.25, 0.5, 0.75, 0.95]
    )


def test_the_optimum_is_drawn(tmp_path: Path) -> None:
    spec = simplex(read(made.folder(tmp_path / "run")))
    drawn = [row["cosine"] for row in made.rows(spec) if "name" in row]
    assert set(drawn) == {1.0, -0.5}


@pytest.mark.parametrize("classes", [2, 3, 5, 6, 10])
def test_the_optimum_lies_inside_the_plot(tmp_path: Path, classes: int) -> None:
    run = read(made.folder(tmp_path / "run", classes=[f"c{i}" for i in range(classes)]))
    run.arrays["between_means"] = np.full(3, 0.9)  # as before training: nothing but the optimum is far to the left
    low, high = x_domain(simplex(run))
    assert low < -1 / (classes - 1) < high
    picture = draw(simplex(run), "png")
    assert int.from_bytes(picture[16:20], "big") == 1280, "as wide as asked for, twice the size: nothing sticks out"


def x_domain(spec: dict[str, Any]) -> list[float]:
    found: list[float] = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    return found


def test_density_is_highest_where_the_values_are() -> None:
    grid = np.linspace(-1, 1, 401)
    found = density(np.random.default_rng(0).normal(0.4, 0.1, 5000), grid)
    assert found.max() == 1
    assert grid[found.argmax()] == pytest.approx(0.4, abs=0.03)  # the mode of 5,000 draws, in steps of 0.005
    assert density(np.array([np.nan]), grid).max() == 0


def test_what_was_not_measured_is_left_out(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run", labels=False)
    found = section(read(path))
    assert found is not None
    assert [part.name for part in found.parts if isinstance(part, Figure)] == ["local-separation"]
    for name in ("analysis.npz", "analysis.json", "result.json"):
        (path / name).unlink()
    assert section(read(path)) is None
