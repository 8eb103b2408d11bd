"""graf's schedule against its formula."""

from __future__ import annotations

import pytest

from kontrast import optim


@pytest.mark.parametrize("q", [1.0, 5.0])
def test_eq_1(q: float) -> None:
    ours = optim.schedule("power", total_steps=1000, steps_per_epoch=7, exponent=q)
    for i in (0, 1, 500, 999, 1000):
        assert ours(i) == pytest.approx(((1000 - i) / 1000) ** q, rel=1e-15)
    assert optim.SCHEDULES.options("power") == {"exponent": 5.0}


def test_an_exponent_of_zero_is_no_schedule() -> None:
    with pytest.raises(ValueError, match=r"exponent=.*: must be a finite number above 0"):
        optim.schedule("power", total_steps=10, steps_per_epoch=1, exponent=0)
