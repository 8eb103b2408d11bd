"""Signs of label noise: what neighbours say counts nearly the noise."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from kontrast.data.loading import noisy_labels
from kontrast.doctor.record import collect_run
from kontrast.doctor.rules import RULES
from kontrast.doctor.rules._learned import neighbour_votes
from kontrast.train import resolve
from tests.doctor import patients


def rows(classes: int = 5, each: int = 200, within: float = 0.5, d: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(classes * each) % classes
    means = torch.randn(classes, d, generator=draw)
    return means[labels] + within * torch.randn(len(labels), d, generator=draw), labels


def test_runs() -> None:
    assert patients.findings("mislabelled")["label-noise"].status == "problem"
    assert patients.findings("healthy")["label-noise"].status == "ok"


@pytest.mark.parametrize(("noise", "status"), [(0.0, "ok"), (0.05, "ok"), (0.16, "warning"), (0.3, "problem")])
def test_features_with_labels_replaced(noise: float, status: str) -> None:
    x, y = rows()
    found = patients.of_features(x, noisy_labels(y, noise, 5))["label-noise"]
    assert found.status == status, found.evidence
    # Classes that do not touch, so every wrong label is seen: of the clearest tenth, 100 rows or more, a share of 0.3
    # has a standard error of 0.046; twice that.
    assert float(found.evidence.partition(" %")[0]) / 100 == pytest.approx(noise, abs=0.09)


@pytest.mark.parametrize(("classes", "share"), [(2, 0.3), (3, 0.4), (10, 0.3)])
def test_labels_moved_to_the_next_class(classes: int, share: float) -> None:
    # The wrong label is then among the neighbours too: one that a tenth of them have is still wrong.
    x, y = rows(classes, 1000 // classes)
    moved = torch.rand(len(y), generator=torch.Generator().manual_seed(1)) < share
    found = patients.of_features(x, torch.where(moved, (y + 1) % classes, y))["label-noise"]
    assert found.status == "problem", found.evidence


@pytest.mark.parametrize("classes", [2, 10])
def test_clusters_whose_labels_are_shuffled(classes: int) -> None:
    x, y = rows(classes, 1000 // classes, within=0.3, d=64)
    shuffled = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(1))]
    found = patients.of_features(x, shuffled)["label-noise"]
    assert found.status == "problem"
    assert "in these the labels are mixed" in found.evidence
    assert "order of the rows" in found.advice
    half = torch.where(torch.rand(len(y), generator=torch.Generator().manual_seed(2)) < 0.45, 1 - y, y)
    assert classes > 2 or patients.of_features(x, half)["label-noise"].status == "problem", "45 % of two classes"


def test_a_vote_at_chance_is_never_healthy() -> None:
    mixed = torch.randn(1000, 16, generator=torch.Generator().manual_seed(1))
    few = (torch.arange(1000) < 20).long()
    for labels in (torch.arange(1000) % 2, torch.arange(1000) % 5, few, torch.zeros(1000, dtype=torch.int64)):
        found = patients.of_features(mixed, labels)["label-noise"]
        assert found.status == "unknown", found.evidence
        assert "with shuffled labels it would be" in found.evidence


def test_mixed_neighbours_say_nothing() -> None:
    x, y = rows(within=5.0)  # kNN is better than chance, no more
    found = patients.of_features(x, y)["label-noise"]
    assert found.status == "unknown"
    assert "the features tell too little of these labels" in found.evidence


def test_labels_that_the_recipe_replaces_are_told() -> None:
    assert "label-noise" not in patients.of_recipe("supcon")
    assert "label-noise" not in patients.of_recipe("supcon", "data.noise=0.1")
    found = patients.of_recipe("supcon", "data.noise=0.2")["label-noise"]
    assert found.status == "warning"
    assert "the recipe replaces 20 % of the training labels" in found.evidence
    noisy = dataclasses.replace(
        collect_run(patients.run("healthy")),
        resolved=resolve(patients.RECIPES["healthy"]().override(["data.noise=0.4"])),
    )
    said = RULES["label_noise"]()(noisy)
    assert said is not None
    assert said.status == "warning", "the test rows are not noisy"
    assert "the recipe replaces 40 %" in said.evidence
    assert "clearest neighbours" in said.evidence


def test_collapsed_features_say_nothing() -> None:
    assert "collapsed" in patients.findings("pulled")["label-noise"].evidence


def test_rows_with_equals_leave_only_themselves_out() -> None:
    x = torch.eye(2).repeat_interleave(30, 0)
    y = torch.arange(60) // 30
    assert torch.equal(neighbour_votes(x, y).argmax(1), y)
    assert neighbour_votes(x, y).shape == (60, 2)


def test_few_rows_or_no_labels_are_unknown() -> None:
    x, y = rows(each=10)
    assert patients.of_features(x, y)["label-noise"].status == "unknown"
    assert "labels" in patients.of_features(x)["label-noise"].evidence
