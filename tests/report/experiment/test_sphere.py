"""Points of a task folder as frames of a sphere."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.report.experiment import sphere
from kontrast.runs import Run
from tests.report.experiment.made_up import write_points


def points(path: Path, **options: Any) -> Run:
    return Run(write_points(path, **options))


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<i2").astype(float) / 32767 * sphere.LIMIT


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_vertices_are_a_regular_simplex(classes: int) -> None:
    v = sphere.vertices(classes)
    expected = np.full((classes, classes), -1 / (classes - 1))
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(v @ v.T, expected, atol=1e-12)  # a few roundings of float64


def test_five_classes_have_no_simplex_in_space() -> None:
    with pytest.raises(ValueError, match="classes=5: must be 2, 3 or 4"):
        sphere.vertices(5)


def test_the_end_faces_the_same_simplex_and_angles_stay(tmp_path: Path) -> None:
    way = sphere.read(points(tmp_path / "toy"), "sc", 0)
    assert way is not None
    with np.load(tmp_path / "toy" / "points.npz") as arrays:
        path = arrays["path"]
    for before, after in zip(path, way.points, strict=True):
        # Turning keeps inner products; the path is kept in float32, which has seven digits.
        np.testing.assert_allclose(before @ before.T, after @ after.T, atol=1e-6)
    np.testing.assert_allclose(way.means[-1], sphere.vertices(4), atol=1e-5)


def test_weights_end_on_the_sphere_where_theory_has_them(tmp_path: Path) -> None:
    way = sphere.read(points(tmp_path / "toy", weights=True), "ce", 0)
    assert way is not None
    assert way.weights is not None
    np.testing.assert_allclose(np.linalg.norm(way.weights, axis=2), 1.0, atol=1e-6)  # float32
    np.testing.assert_allclose(way.weights[-1], sphere.vertices(4), atol=1e-5)


def test_the_record_is_small_and_near(tmp_path: Path) -> None:
    way = sphere.read(points(tmp_path / "toy", frames=500), "sc", 0)
    assert way is not None
    assert len(way.steps) == sphere.FRAMES
    assert (way.steps[0], way.steps[-1]) == (0, 4990)
    made = sphere.data_of([way])["settings"][0]
    # Rounded to a whole number of 65,534ths of the range: off by half of one at most.
    assert np.abs(unpacked(made["points"]) - way.points.ravel()).max() <= 0.5001 * sphere.LIMIT / 32767
    assert len(made["values"]) == len(made["bounds"]) == len(made["steps"]) == sphere.FRAMES


@pytest.mark.parametrize(("classes", "dim"), [(4, 2), (7, 3)])
def test_what_no_sphere_can_show_is_none(tmp_path: Path, classes: int, dim: int) -> None:
    assert sphere.read(points(tmp_path / "toy", classes=classes, dim=dim), "x", 0) is None


def test_other_points_are_none(tmp_path: Path) -> None:
    assert sphere.read(Run(tmp_path), "x", 0) is None
    np.savez(tmp_path / "points.npz", points=np.zeros((3, 3)), labels=np.arange(3))
    assert sphere.read(Run(tmp_path), "x", 0) is None


def test_six_classes_have_no_optimum_but_points(tmp_path: Path) -> None:
    way = sphere.read(points(tmp_path / "toy", classes=6), "x", 0)
    assert way is not None
    assert sphere.data_of([way])["settings"][0]["optimum"] is None
