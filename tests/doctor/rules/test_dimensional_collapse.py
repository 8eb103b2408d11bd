"""Dimensional collapse: few directions without labels are ill, K − 1 with labels are not."""

from __future__ import annotations

import torch

from kontrast.geometry import spectrum
from kontrast.simplex import vertices
from tests.doctor import patients


def test_an_encoder_with_one_hidden_unit() -> None:
    found = patients.findings("narrow")["dimensional-collapse"]
    assert found.status == "problem"
    assert "of 128" in found.evidence


def test_healthy_runs() -> None:
    for name in patients.HEALTHY:
        assert patients.findings(name)["dimensional-collapse"].status == "ok"


def test_a_simplex_of_supervised_classes_is_health() -> None:
    labels = torch.arange(400) % 4
    noise = 1e-4 * torch.randn(400, 64, generator=torch.Generator().manual_seed(0))
    x = vertices(4, 64, seed=0)[labels] + noise
    assert spectrum(x, center=True).effective_rank < 0.05 * 64, "it would be ill without the labels"
    without = patients.of_features(x)["dimensional-collapse"]
    assert without.status == "warning", "nobody knows how it was learned"
    assert "pass the labels too" in without.advice
    assert patients.of_features(x, labels)["dimensional-collapse"].status == "ok"
    wrong = torch.randint(4, (400,), generator=torch.Generator().manual_seed(1))
    assert patients.of_features(x, wrong)["dimensional-collapse"].status == "problem", "the labels must fit the rows"


def test_two_classes_take_one_direction() -> None:
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 2
    x = torch.randn(2, 64, generator=draw)[labels] + 1e-3 * torch.randn(600, 64, generator=draw)
    assert spectrum(x, center=True).effective_rank < 2, "which is ill without labels"
    found = patients.of_features(x, labels)["dimensional-collapse"]
    assert found.status == "ok"
    assert "2 classes learned by their labels take 1" in found.evidence
    shuffled = labels[torch.randperm(600, generator=draw)]
    assert patients.of_features(x, shuffled)["dimensional-collapse"].status == "problem", "half agree by chance"


def test_fewer_rows_than_directions_are_told_and_warn_nobody() -> None:
    # Warnings are errors here: a `TooFewSamples` from within would make the rule unknown.
    x = torch.randn(60, 512, generator=torch.Generator().manual_seed(0))
    found = patients.of_features(x)
    assert found["dimensional-collapse"].status == "ok"
    assert "60 rows have no more than 59 of the 512" in found["dimensional-collapse"].evidence
    assert found["complete-collapse"].status == "ok"


def test_supervised_runs_need_half_of_their_classes() -> None:
    assert patients.findings("fast")["dimensional-collapse"].status == "problem"
    assert "10 classes learned by their labels take 9" in patients.findings("healthy")["dimensional-collapse"].evidence


def test_more_classes_than_directions_can_only_take_all_of_them() -> None:
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 60
    x = torch.randn(60, 16, generator=draw)[labels] + 0.05 * torch.randn(600, 16, generator=draw)
    found = patients.of_features(x, labels)["dimensional-collapse"]
    assert found.status == "ok"
    assert "60 classes learned by their labels take 16" in found.evidence


def test_few_rows_have_no_rank() -> None:
    found = patients.of_features(torch.eye(20))["dimensional-collapse"]
    assert found.status == "unknown"
    assert "20 rows are too few" in found.evidence
