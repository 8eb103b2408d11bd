"""The time of a sweep, from a few steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.experiments.cell import Cell, Task
from kontrast.experiments.estimate import estimate
from kontrast.experiments.plan import plan
from kontrast.recipe import Recipe
from tests.experiments.test_plan import experiment


def test_each_kind_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Recipe] = []

    def measured(recipe: Recipe) -> float:
        seen.append(recipe)
        return 10.0 * (recipe.train.epochs or 0)

    monkeypatch.setattr("kontrast.train.loop.seconds_to_train", measured)
    short, long = plan(experiment()), plan(experiment(), "cpu", ["train.epochs=6"])
    found = estimate([*short, *long, Cell({}, Task("a:b"))])
    assert len(seen) == 1  # temperatures, seeds and epochs are of one kind
    assert found.cells == 13
    assert found.seconds == pytest.approx(6 * 30 + 6 * 60)
    larger = plan(experiment(), "cpu", ["train.batch_size=64"])
    assert estimate([*short, *larger]).seconds == pytest.approx(12 * 30)
    assert len(seen) == 3


def test_data_that_are_not_there_are_said(tmp_path: Path) -> None:
    found = estimate(plan(experiment(), "cpu", [f"data={tmp_path / 'none.npz'}"]))
    assert found.seconds is None
    assert "none.npz" in found.why
