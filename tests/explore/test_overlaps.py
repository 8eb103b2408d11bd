"""Classes that were drawn from one place overlap, others do not."""

from __future__ import annotations

import pytest
import torch

from kontrast.evaluate import nearest_others
from kontrast.explore import label_errors, overlaps
from tests.explore.made import blobs


def test_two_classes_of_one_place() -> None:
    x, place = blobs(600, 3, apart=6.0)
    labels = torch.where(place == 2, 2 + (torch.arange(600) // 3) % 2, place)  # the third place has classes 2 and 3
    errors = label_errors(x, labels, 4)
    assert errors is not None
    found = overlaps(labels, errors.given, nearest_others(x, 10)[1])
    assert found[0].classes == (2, 3)
    assert found[0].overlap == pytest.approx(0.5, abs=0.06)
    assert found[0].mixed == pytest.approx(0.5, abs=0.06)
    assert found[0].count == 200
    assert set(labels[list(found[0].rows)].tolist()) <= {2, 3}
    assert len(found) == 1


def test_the_equations() -> None:
    p = torch.tensor([[0.8, 0.2, 0.0], [0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.0, 0.1, 0.9], [0.2, 0.2, 0.6]])
    labels, near = torch.tensor([0, 0, 1, 2, -1]), torch.tensor([[1, 2], [0, 2], [0, 3], [2, 4], [0, 1]])
    first, second = overlaps(labels, p, near)
    assert first.classes == (0, 1)
    assert first.overlap == pytest.approx((0.2 + 0.4 + 0.3) / 3)
    assert first.mixed == pytest.approx((2 + 1) / 6), "of the votes of rows 0, 1 and 2"
    assert second.overlap == pytest.approx(0.1 / 2)
    assert second.mixed == pytest.approx(2 / 3), "a neighbour without a label has no vote"
    assert first.rows == (1, 2, 0)
