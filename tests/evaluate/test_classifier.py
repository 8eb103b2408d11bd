"""The classifier of plain features predicts what its protocol predicts of standardised ones."""

from __future__ import annotations

import pytest
import torch

from kontrast.evaluate import PROTOCOLS, Protocol, Subject, evaluate, fit_classifier

LINEAR = [name for name in PROTOCOLS if PROTOCOLS[name].classifier is not Protocol.classifier]


def subject() -> Subject:
    """Features far from mean 0 and deviation 1, one of them constant; classes that overlap, so that some are wrong."""
    draws = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 4
    x = torch.eye(4, 6)[labels] + 0.5 * torch.randn(400, 6, generator=draws)
    x = x * torch.tensor([1.0, 10.0, 0.01, 1.0, 5.0, 0.0]) + torch.tensor([0.0, 100.0, 0.0, -3.0, 0.0, 7.0])
    names = ["a", "b", "c", "d"]
    return Subject.from_features(x[:300], labels[:300], x[300:], labels[300:], class_names=names)


def test_there_are_linear_protocols() -> None:
    assert {"probe", "logistic"} <= {*LINEAR}


@pytest.mark.parametrize("protocol", LINEAR)
def test_the_same_predictions_and_the_same_result(protocol: str) -> None:
    data = subject()
    classifier, result = fit_classifier(data, protocol, seed=3), evaluate(data, protocol, seed=3)
    assert classifier.result.record() == result.record()
    assert 0.5 < result.value < 1, "rows that are wrong must be wrong in both"
    assert classifier.logits(data.test).argmax(1).equal(result.predictions)
    assert classifier.class_names == ["a", "b", "c", "d"]


def test_classes_without_names_are_numbers() -> None:
    corners, labels = torch.eye(3).repeat_interleave(4, 0), torch.arange(3).repeat_interleave(4)
    found = fit_classifier(Subject.from_features(corners, labels, corners, labels), "logistic", C=10.0)
    assert found.class_names == ["0", "1", "2"]
    assert found.result.details["C"] == 10.0
