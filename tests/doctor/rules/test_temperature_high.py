"""Temperature too high: entropy near its most, a τ beyond reach, a target that is no sharper."""

from __future__ import annotations

import pytest
import torch

from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("hot")["temperature-high"].status == "problem"
    assert patients.findings("cold")["temperature-high"].status == "ok", "a collapse is not the temperature's doing"
    assert patients.findings("healthy-self")["temperature-high"].status == "ok"


@pytest.mark.parametrize(("tau", "status"), [(1.0, "problem"), (0.5, "warning"), (0.2, "ok")])
def test_recipes_by_the_reach(tau: float, status: str) -> None:
    # e^{2/τ} is 7.4, 55 and 22,026
    for name in ("simclr", "supcon"):
        assert patients.of_recipe(name, f"method.temperature={tau}")["temperature-high"].status == status


def test_a_target_must_be_sharper_unless_there_is_a_contrastive_part() -> None:
    blunt = "method.target_temperature=0.1"
    assert patients.of_recipe("ressl", blunt)["temperature-high"].status == "problem"
    assert patients.of_recipe("ressl")["temperature-high"].status == "ok"
    assert patients.of_recipe("sce", blunt)["temperature-high"].status == "ok"
    assert patients.of_recipe("sce", blunt, "method.contrastive_weight=0.0")["temperature-high"].status == "problem"


def test_the_hard_loss_is_well_at_any_temperature() -> None:
    found = patients.of_recipe("simclr", "method.loss=hard", "method.temperature=1.0")
    assert found["temperature-high"].status == "ok"


def test_features_at_a_temperature() -> None:
    x = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    assert patients.of_features(x, temperature=2.0)["temperature-high"].status == "problem"
    assert patients.of_features(x, temperature=0.1)["temperature-high"].status == "ok"
