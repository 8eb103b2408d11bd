"""Warm-up and cosine against the published schedule's adding up."""

from __future__ import annotations

import math

import pytest

from kontrast import optim


@pytest.mark.parametrize("start", [0.0, 0.2])
@pytest.mark.parametrize("final", [0.0, 0.05])
def test_eqs_1_and_2_are_the_published_recurrence(start: float, final: float) -> None:
    """Which adds a constant in the warm-up and multiplies afterwards; its rounding stays below 1e-9 of a factor."""
    w, t = 10, 50
    rate, seen = start, [start]
    for i in range(1, t):
        if i < w:
            rate += (1 - start) / (w - 1)
        elif i == w:
            rate = 1.0
        else:
            now, before = (1 + math.cos(math.pi * (j - w) / (t - w)) for j in (i, i - 1))
            rate = now / before * (rate - final) + final
        seen.append(rate)
    ours = optim.schedule("warmup-cosine", total_steps=t, steps_per_epoch=5, warmup_epochs=2, start=start, final=final)
    assert [ours(i) for i in range(t)] == pytest.approx(seen, abs=1e-9)
    assert ours(t) == pytest.approx(final, abs=1e-12)


def test_sces_is_the_default() -> None:
    assert optim.SCHEDULES.options("warmup-cosine") == {"warmup_epochs": 5.0, "start": 0.0, "final": 0.0}


@pytest.mark.parametrize(("epochs", "expected"), [(0, [1.0]), (0.2, [0.0, 1.0]), (0.4, [0.0, 1.0, 1.0])])
def test_no_warm_up_and_very_short_ones(epochs: float, expected: list[float]) -> None:
    ours = optim.schedule("warmup-cosine", total_steps=50, steps_per_epoch=5, warmup_epochs=epochs)
    assert [ours(i) for i in range(len(expected))] == expected
    assert ours(len(expected)) < 1.0


def test_a_warm_up_longer_than_the_run_is_an_error() -> None:
    says = r"warm-up of 50 steps must be shorter than the run of 30.*schedule.warmup_epochs=2.9 or less"
    with pytest.raises(ValueError, match=says):
        optim.schedule("warmup-cosine", total_steps=30, steps_per_epoch=10)


def test_the_longest_warm_up_that_is_named_is_accepted() -> None:
    """Half an epoch of three steps is rounded to two: the message names one that fits."""
    with pytest.raises(ValueError, match=r"schedule.warmup_epochs=0.333 or less"):
        optim.schedule("warmup-cosine", total_steps=2, steps_per_epoch=3, warmup_epochs=0.5)
    optim.schedule("warmup-cosine", total_steps=2, steps_per_epoch=3, warmup_epochs=0.333)
