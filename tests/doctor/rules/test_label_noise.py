"""Signs of label noise: what neighbours say counts nearly the noise."""

from __future__ import annotations

import pytest
import torch

from kontrast.data.noise import noisy_labels
from kontrast.doctor.rules._neighbours import votes_of_others
from tests.doctor import patients


def rows(classes: int = 5, each: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(classes * each) % classes
    means = torch.randn(classes, 16, generator=draw)
    return means[labels] + 0.5 * torch.randn(len(labels), 16, generator=draw), labels


def test_runs() -> None:
    assert patients.findings("mislabelled")["label-noise"].status == "ill"
    assert patients.findings("healthy")["label-noise"].status == "healthy"


@pytest.mark.parametrize(("noise", "status"), [(0.0, "healthy"), (0.05, "healthy"), (0.16, "watch"), (0.3, "ill")])
def test_features_with_labels_replaced(noise: float, status: str) -> None:
    x, y = rows()
    found = patients.of_features(x, noisy_labels(y, noise, 5))["label-noise"]
    assert found.status == status, found.evidence
    share = float(found.evidence.partition(" %")[0]) / 100
    # Classes that do not touch: every wrong label is seen, unless a tenth of its neighbours are wrong alike; 1,000
    # rows of a share of 0.3 have a standard error of 0.015, and the share is rounded to 0.01.
    assert share == pytest.approx(noise, abs=0.05)


def test_mixed_neighbours_say_nothing() -> None:
    x, y = rows()
    mixed = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    found = patients.of_features(mixed, y)["label-noise"]
    assert found.status == "unknown"
    assert "neighbours half of which agree" in found.evidence


def test_rows_with_equals_leave_only_themselves_out() -> None:
    x = torch.eye(2).repeat_interleave(30, 0)
    y = torch.arange(60) // 30
    assert torch.equal(votes_of_others(x, y).argmax(1), y)
    assert votes_of_others(x, y).shape == (60, 2)


def test_few_rows_or_no_labels_are_unknown() -> None:
    x, y = rows(each=10)
    assert patients.of_features(x, y)["label-noise"].status == "unknown"
    assert "labels" in patients.of_features(x)["label-noise"].evidence
