"""A batch too small for the classes: the expected positives of an anchor."""

from __future__ import annotations

import pytest

from kontrast.doctor.rules._setup import others
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("lonely")["batch-too-small"].status == "problem"
    assert patients.findings("healthy")["batch-too-small"].status == "ok"


@pytest.mark.parametrize(("batch", "status"), [(8, "problem"), (16, "warning"), (64, "ok")])
def test_recipes_of_ten_classes(batch: int, status: str) -> None:
    # (b − 1)/10 others: 0.7, 1.5 and 6.3
    assert patients.of_recipe("supcon", f"train.batch_size={batch}")["batch-too-small"].status == status


def test_the_cure_can_be_typed_as_it_stands() -> None:
    found = patients.of_recipe("supcon", "train.batch_size=4")["batch-too-small"]
    assert "train.batch_size to 40" in found.advice, "a multiple of the ten classes"
    assert "class-balanced" in found.advice
    assert patients.of_recipe("supcon", "train.batch_size=40")["batch-too-small"].status == "ok"
    on = patients.of_recipe("supcon", "train.batch_size=4", "train.sampler=class-balanced")["batch-too-small"]
    assert "class-balanced" not in on.advice, "it is on"
    assert on.evidence.startswith("0 other images"), "never fewer than none"
    few = patients.of_recipe("supcon", "data.limit=20", "train.batch_size=10")["batch-too-small"]
    assert "train.batch_size to 20" in few.advice, "no more than there are rows"


def test_equation_3_counts_others() -> None:
    assert others([5, 5], 10, "shuffled") == 4.0
    assert others([2, 8], 10, "shuffled") == pytest.approx(0.2 * 1 + 0.8 * 7), "the whole set: n_c − 1 each"
    assert others([5, 5], 3, "with-replacement") == pytest.approx(1.0)


def test_cross_entropy_and_unlabelled_methods_have_no_such_positives() -> None:
    assert "batch-too-small" not in patients.of_recipe("ce", "train.batch_size=4")
    assert "batch-too-small" not in patients.of_recipe("simclr", "train.batch_size=4")
