"""Train/test gap: sixty images learned by heart."""

from __future__ import annotations

import torch

from tests.doctor import patients


def test_runs() -> None:
    found = patients.findings("by-heart")["train-test-gap"]
    assert found.status == "problem"
    assert "in training rows" in found.evidence
    for name in patients.HEALTHY:
        assert patients.findings(name)["train-test-gap"].status == "ok"


def test_without_a_test_split_or_of_features_it_is_unknown() -> None:
    assert patients.findings("one-class")["train-test-gap"].status == "unknown"
    assert "kontrast evaluate" in patients.of_features(torch.eye(9))["train-test-gap"].evidence
