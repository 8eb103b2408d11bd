"""The constant schedule."""

from __future__ import annotations

from kontrast import optim


def test_eq_1() -> None:
    factor = optim.schedule("constant", total_steps=50, steps_per_epoch=10)
    assert {factor(i) for i in range(60)} == {1.0}
