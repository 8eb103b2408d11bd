"""Dimensional collapse: few directions without labels are ill, K − 1 with labels are not."""

from __future__ import annotations

import torch

from kontrast.geometry import spectrum
from kontrast.simplex import vertices
from tests.doctor import patients


def test_an_encoder_with_one_hidden_unit() -> None:
    found = patients.findings("narrow")["dimensional-collapse"]
    assert found.status == "ill"
    assert "of 128" in found.evidence


def test_healthy_runs() -> None:
    for name in patients.HEALTHY:
        assert patients.findings(name)["dimensional-collapse"].status == "healthy"


def test_a_simplex_of_supervised_classes_is_health() -> None:
    labels = torch.arange(400) % 4
    noise = 1e-4 * torch.randn(400, 64, generator=torch.Generator().manual_seed(0))
    x = vertices(4, 64, seed=0)[labels] + noise
    assert spectrum(x, center=True).effective_rank < 0.05 * 64, "it would be ill without the labels"
    assert patients.of_features(x)["dimensional-collapse"].status == "ill"
    assert patients.of_features(x, labels)["dimensional-collapse"].status == "healthy"
    wrong = torch.randint(4, (400,), generator=torch.Generator().manual_seed(1))
    assert patients.of_features(x, wrong)["dimensional-collapse"].status == "ill", "the labels must fit the rows"


def test_supervised_runs_need_half_of_their_classes() -> None:
    assert patients.findings("fast")["dimensional-collapse"].status == "ill"
    assert "10 classes learned by their labels take 9" in patients.findings("healthy")["dimensional-collapse"].evidence


def test_more_classes_than_directions_can_only_take_all_of_them() -> None:
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 60
    x = torch.randn(60, 16, generator=draw)[labels] + 0.05 * torch.randn(600, 16, generator=draw)
    found = patients.of_features(x, labels)["dimensional-collapse"]
    assert found.status == "healthy"
    assert "60 classes learned by their labels take 16" in found.evidence


def test_few_rows_have_no_rank() -> None:
    found = patients.of_features(torch.eye(20))["dimensional-collapse"]
    assert found.status == "unknown"
    assert "20 rows are too few" in found.evidence
