"""Numbers of a result against scikit-learn, and what it says of itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, recall_score, top_k_accuracy_score

from kontrast.evaluate import Result
from kontrast.evaluate.result import rank_of

ABOUT = {"name": "demo", "protocol": "a demonstration", "train_rows": 5, "seed": 3}


def scored(rows: int = 200, classes: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(classes, (rows,), generator=draw)
    scores = torch.randn(rows, classes, generator=draw)
    return scores.scatter_add_(1, labels[:, None], torch.ones(rows, 1)), labels


def test_numbers_are_scikit_learns() -> None:
    scores, labels = scored()
    found = Result.of_scores(scores, labels, **ABOUT)
    y, p = labels.numpy(), scores.argmax(1).numpy()
    assert found.value == pytest.approx(accuracy_score(y, p), abs=1e-12)
    assert found.top5 == pytest.approx(top_k_accuracy_score(y, scores.numpy(), k=5), abs=1e-12)
    assert found.confusion == confusion_matrix(y, p).tolist()
    assert found.per_class == pytest.approx(recall_score(y, p, average=None).tolist(), abs=1e-12)
    assert found.predictions.tolist() == p.tolist()
    assert found.error == pytest.approx(np.sqrt(found.value * (1 - found.value) / 200))


def test_top5_needs_six_classes() -> None:
    assert Result.of_scores(*scored(classes=5), **ABOUT).top5 is None
    assert Result.of_scores(*scored(classes=6), **ABOUT).top5 is not None


def test_equal_scores_go_to_the_class_that_stands_first() -> None:
    scores = torch.zeros(3, 8)
    labels = torch.tensor([0, 4, 5])
    found = Result.of_scores(scores, labels, **ABOUT)
    assert found.predictions.tolist() == [0, 0, 0]
    assert rank_of(scores, labels).tolist() == [0, 4, 5]
    assert found.top5 == pytest.approx(2 / 3)


def test_record_is_json_without_predictions_and_without_nan() -> None:
    found = Result.of_scores(torch.eye(3)[:2], torch.tensor([0, 1]), details={"a": float("inf")}, **ABOUT)
    record = found.record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["per_class"] == [1.0, 1.0, None], "a class without test rows has no accuracy"
    assert record["details"] == {"a": None}
    assert "predictions" not in record
    assert (record["train_rows"], record["test_rows"], record["seed"], record["split"]) == (5, 2, 3, "test")


def test_the_line_carries_the_protocol() -> None:
    line = str(Result.of_scores(*scored(), **ABOUT))
    assert "a demonstration" in line
    assert "seed 3" in line
    assert "200 rows" in line


def test_scores_that_are_nan_are_an_error() -> None:
    scores, labels = scored()
    scores[7, 2] = torch.nan
    with pytest.raises(ValueError, match="1 of 200 rows are NaN"):
        Result.of_scores(scores, labels, **ABOUT)


def test_no_rows_are_an_error() -> None:
    with pytest.raises(ValueError, match="no test rows"):
        Result.of_scores(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), **ABOUT)
