"""Where theory puts classes that are points."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kontrast.report.corners import simplex_corner, simplex_uniformity


def by_points(classes: int, labels: np.ndarray) -> float:
    """Uniformity of the rows themselves, every ordered pair, a row with itself included."""
    points = np.eye(classes) - 1 / classes
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    rows = points[labels]
    squares = ((rows[:, None] - rows[None]) ** 2).sum(-1)
    return math.log(np.exp(-2 * squares).mean())


@pytest.mark.parametrize("classes", [2, 5])
def test_uniformity_of_a_simplex_by_its_points(classes: int) -> None:
    assert simplex_uniformity(classes) == pytest.approx(by_points(classes, np.arange(classes)), abs=1e-12)


def test_classes_have_the_sizes_they_have() -> None:
    labels = np.repeat([0, 1, 3], [20, 8, 1])  # the third of four classes has no row here
    found = simplex_corner({"num_classes": 4, "reachable": True}, labels)
    assert found == (4, pytest.approx(by_points(4, labels), abs=1e-12))
    assert found[1] > simplex_uniformity(4) + 0.5, "far from that of classes of one size"


def test_no_corner_where_there_is_no_simplex() -> None:
    assert simplex_corner({"num_classes": 100, "reachable": False}, None) is None
    assert simplex_corner({"num_classes": 1}, None) is None
    assert simplex_corner(None, None) is None
    assert simplex_corner({"num_classes": 3}, None) == (3, simplex_uniformity(3))
