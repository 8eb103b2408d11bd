"""Class imbalance: a class that most batches lack, though even classes would not be lacking."""

from __future__ import annotations

import pytest
import torch

from kontrast.doctor.rules._setup import absent
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("imbalanced")["class-imbalance"].status == "problem"
    assert patients.findings("healthy")["class-imbalance"].status == "ok"


def test_shares_are_readable() -> None:
    evidence = patients.findings("imbalanced")["class-imbalance"].evidence
    assert "e+" not in evidence
    alone = patients.of_recipe("sc", "train.batch_size=10", "train.sampler=class-balanced")["lone-anchors"].evidence
    assert alone.startswith("100 % of the anchors")


def test_equation_1() -> None:
    assert absent([5, 5], 5, 2, "shuffled") == pytest.approx(5 / 10 * 4 / 9)
    assert absent([5, 5], 5, 6, "shuffled") == 0, "six of ten rows cannot miss five"
    assert absent([5, 5], 5, 2, "with-replacement") == 0.25
    assert absent([1, 999], 1, 10, "class-balanced") == 0


def test_features_with_labels() -> None:
    x = torch.randn(300, 8, generator=torch.Generator().manual_seed(0))
    few = (torch.arange(300) >= 290).long()  # 290 and 10
    assert patients.of_features(x, few)["class-imbalance"].status == "warning"
    assert patients.of_features(x, torch.arange(300) % 2)["class-imbalance"].status == "ok"


def test_only_where_labels_are_learned_from() -> None:
    assert "class-imbalance" not in patients.findings("healthy-self")
    assert patients.of_recipe("ce")["class-imbalance"].status == "ok"
