"""The LightningModule learns: 25 steps on 1,500 images gain 6 points of kNN, of which 3 are asked for."""

from __future__ import annotations

import pytest

from tests.examples.running import accuracies

pytest.importorskip("pytorch_lightning")


@pytest.mark.slow
def test_it_learns() -> None:
    before, after = accuracies("lightning_module", "--steps", "25", "--limit", "1500")
    assert after > before + 3


@pytest.mark.slow
def test_it_learns_on_two_processes() -> None:
    before, after = accuracies("lightning_module", "--steps", "25", "--limit", "1500", "--devices", "2")
    assert after > before + 3
