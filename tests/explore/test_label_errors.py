"""Planted label errors are found with what their labels should be, and the probabilities hold."""

from __future__ import annotations

import pytest
import torch

from kontrast.explore import label_errors
from kontrast.explore.label_errors import _folds
from tests.explore.made import blobs


def flipped(labels: torch.Tensor, share: float, classes: int, seed: int = 1) -> tuple[torch.Tensor, set[int]]:
    rows = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))[: round(share * len(labels))]
    given = labels.clone()
    given[rows] = (given[rows] + 1) % classes
    return given, set(rows.tolist())


@pytest.mark.parametrize(("apart", "precision", "recall", "right"), [(5.0, 0.95, 0.95, 0.98), (3.0, 0.8, 0.75, 0.88)])
def test_planted_errors(apart: float, precision: float, recall: float, right: float) -> None:
    x, labels = blobs(1200, 4, apart=apart)
    given, rows = flipped(labels, 0.05, 4)
    found = label_errors(x, given, 4)
    assert found is not None
    hits = len(rows & set(found.rows))
    assert hits >= precision * len(found.rows)
    assert hits >= recall * len(rows)
    assert sum(int(found.suggested[row]) == int(labels[row]) for row in rows & set(found.rows)) >= right * hits
    # The mean probability of those listed is about the share that is wrong.
    assert float(found.probability[found.rows].mean()) == pytest.approx(hits / len(found.rows), abs=0.12)


def test_right_labels_are_believed() -> None:
    x, labels = blobs(800, 4, apart=5.0)
    found = label_errors(x, labels, 4)
    assert found is not None
    assert len(found.rows) <= 4
    assert float(found.probability.mean()) < 0.02
    assert torch.allclose(found.classes.sum(1), torch.ones(800))


def test_a_copy_with_the_same_wrong_label_does_not_vouch() -> None:
    """In high dimensions a classifier knows its own rows by heart."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(200) % 2
    x = torch.randn(200, 600, generator=draw) + 1.2 * torch.nn.functional.one_hot(labels, 600)[:, :600] * 4
    x[[0, 2, 4, 6]] = x[[10, 12, 14, 16]]
    given = labels.clone()
    copies = [0, 2, 4, 6, 10, 12, 14, 16]
    given[copies] = 1
    groups = torch.full((200,), -1)
    for number, (a, b) in enumerate(((0, 10), (2, 12), (4, 14), (6, 16))):
        groups[[a, b]] = number
    folds = _folds(given, groups, seed=0)
    assert torch.equal(folds[[0, 2, 4, 6]], folds[[10, 12, 14, 16]])
    apart, together = label_errors(x, given, 2), label_errors(x, given, 2, groups)
    assert apart is not None
    assert together is not None
    assert float(together.probability[copies].mean()) > float(apart.probability[copies].mean()) + 0.1


def test_rows_without_labels_and_small_classes_are_not_judged() -> None:
    x, labels = blobs(300, 3, apart=5.0)
    labels = labels.clone()
    labels[:30], labels[40] = -1, 3
    found = label_errors(x, labels, 5)
    assert found is not None
    assert found.judged == 269
    assert not bool(found.probability[:30].any())
    assert float(found.probability[40]) == 0
    assert found.classes.shape == (300, 5)
    assert label_errors(x, torch.where(labels == 0, 0, -1), 5) is None


def test_folds_share_every_class() -> None:
    labels = torch.arange(100) % 4
    folds = _folds(labels, None, seed=0)
    for label in range(4):
        assert torch.bincount(folds[labels == label]).tolist() == [5] * 5
