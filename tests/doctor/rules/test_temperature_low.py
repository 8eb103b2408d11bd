"""Temperature too low: by the negatives that share the penalty, else by τ itself."""

from __future__ import annotations

import pytest
import torch

from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("cold")["temperature-low"].status == "problem"
    assert patients.findings("hot")["temperature-low"].status == "ok"
    assert patients.findings("healthy-self")["temperature-low"].status == "ok"


@pytest.mark.parametrize(("tau", "status"), [(0.02, "problem"), (0.03, "warning"), (0.05, "ok"), (1.0, "ok")])
def test_recipes_by_the_weight_of_nearer_negatives(tau: float, status: str) -> None:
    # e^{0.1/τ} is 148, 28, 7.4 and 1.1
    for name in ("simclr", "supcon"):
        assert patients.of_recipe(name, f"method.temperature={tau}")["temperature-low"].status == status


def test_features_at_a_temperature() -> None:
    x = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    assert patients.of_features(x, temperature=0.1)["temperature-low"].status == "ok"
    assert patients.of_features(x, temperature=0.003)["temperature-low"].status == "problem"
    assert patients.of_features(x)["temperature-low"].status == "unknown"


def test_losses_without_a_temperature_cannot_have_it() -> None:
    assert "temperature-low" not in patients.of_recipe("ce")
    assert "temperature-low" not in patients.of_recipe("simclr", "method.loss=simple")
