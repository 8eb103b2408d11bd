"""The linear rule."""

from __future__ import annotations

import pytest

from kontrast import optim


def test_eq_1() -> None:
    assert optim.scale_rate(0.06, 256) == 0.06
    assert optim.scale_rate(0.5, 128, base=512) == 0.125


@pytest.mark.parametrize("given", [(-0.1, 256, 256), (0.1, 0, 256), (0.1, 25.5, 256), (0.1, 256, 0)])
def test_what_is_no_rate_or_batch_is_refused(given: tuple[float, int, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        optim.scale_rate(*given)
