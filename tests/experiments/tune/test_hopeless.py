"""The rule that gives a trial up: a margin below the median, at one point of the training."""

from __future__ import annotations

import math

import pytest

from kontrast.experiments.tune.hopeless import half_way, hopeless


def test_nothing_is_hopeless_before_there_are_two_to_compare_with() -> None:
    assert hopeless(0.0, [], 1000) is None
    assert hopeless(0.0, [0.9], 1000) is None
    assert hopeless(0.0, [0.9, 0.9], 1000)


@pytest.mark.parametrize("rows", [100, 1000, 2048])
def test_the_margin_is_three_errors_of_a_difference(rows: int) -> None:
    p = (0.8 * rows + 2) / (rows + 4)
    margin = 3 * math.sqrt(2 * p * (1 - p) / rows)
    assert hopeless(0.8 - margin + 1e-9, [0.7, 0.8, 0.9], rows) is None
    assert hopeless(0.8 - margin - 1e-9, [0.7, 0.8, 0.9], rows)


def test_a_perfect_median_still_has_a_margin() -> None:
    assert hopeless(0.99, [1.0, 1.0], 200) is None


def test_without_an_accuracy_it_is_the_plain_median() -> None:
    assert hopeless(-4.01, [-4.0, -5.0, -3.0], None)
    assert hopeless(-4.0, [-4.0, -5.0, -3.0], None) is None


def test_half_way_is_the_first_validation_from_half_on_and_never_the_last() -> None:
    lines = [{"step": step, "validation": step / 100} for step in (6, 12, 18)]
    assert half_way(lines, 18) == (12, 0.12)
    assert half_way(lines, 12) == (6, 0.06)
    assert half_way(lines[:1], 18) is None
    assert half_way([{"step": 18, "validation": 0.9}], 18) is None
    assert half_way([{"step": 12, "loss": 1.0}], 18) is None
    assert half_way([{"step": 12, "validation": None}], 18) is None, "what was no number"
