"""The plain loop learns: 25 steps on 1,500 images gain 8 points of kNN, of which 3 are asked for."""

from __future__ import annotations

from tests.examples.running import accuracies


def test_it_learns() -> None:
    before, after = accuracies("plain_loop", "--steps", "25", "--limit", "1500")
    assert after > before + 3
