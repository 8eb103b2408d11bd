"""Anchors without positives: the expected share, against what the sampler really draws."""

from __future__ import annotations

import pytest
import torch

from kontrast.data import ClassBalanced, Sampler, Shuffled, WithReplacement
from kontrast.doctor.rules._setup import lone
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("lonely")["lone-anchors"].status == "problem"
    assert patients.findings("healthy")["lone-anchors"].status == "ok"
    assert "lone-anchors" not in patients.findings("healthy-self"), "without labels the views are the positives"


def drawn(labels: torch.Tensor, sampler: Sampler, epochs: int) -> float:
    """The share of lone anchors in real batches."""
    lonely = []
    for epoch in range(epochs):
        for step in range(sampler.steps):
            of = labels[sampler.batch(epoch, step)]
            lonely.append(((of[:, None] == of).sum(1) == 1).double().mean())
    return float(torch.stack(lonely).mean())


def test_equation_2_is_what_the_samplers_draw() -> None:
    sizes = [5, 10, 25]
    labels = torch.arange(3).repeat_interleave(torch.tensor(sizes))
    # 2,000 batches of 5 rows: the share of 0.3 has a standard error of 0.3/√2000 ≈ 0.006; three of these.
    shuffled = drawn(labels, Shuffled(40, 5, seed=0), epochs=250)
    assert lone(sizes, 5, "shuffled") == pytest.approx(shuffled, abs=0.02)
    replaced = drawn(labels, WithReplacement(40, 5, seed=0), epochs=250)
    assert lone(sizes, 5, "with-replacement") == pytest.approx(replaced, abs=0.02)
    assert lone(sizes, 6, "class-balanced") == drawn(labels, ClassBalanced(labels, 2), epochs=3) == 0
    assert lone(sizes, 3, "class-balanced") == drawn(labels, ClassBalanced(labels, 1), epochs=3) == 1


def test_a_second_view_is_a_positive() -> None:
    assert patients.of_recipe("sc", "train.batch_size=16")["lone-anchors"].status == "problem"
    assert patients.of_recipe("sc", "train.batch_size=128")["lone-anchors"].status == "ok"
    two = patients.of_recipe("supcon", "train.batch_size=16")["lone-anchors"]
    assert two.status == "ok"
    assert "2 views" in two.evidence
