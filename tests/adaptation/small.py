"""Adaptations of a second or two: a perceptron that has hardly learned, on digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kontrast
from kontrast.adaptation import planning
from kontrast.runs import Run
from tests.train.small import recipe

SETTINGS: dict[str, Any] = {
    "data.limit": 500,
    "data.test_limit": 200,
    "augment.views": [{"name": "crop-flip", "padding": 1, "flip": 0}] * 2,
    "encoder.norm": "train",  # the statistics of a single step are no start
    "optim.lr": 0.03,
    "run.progress": False,
    "run.monitor_every": 0,
    "run.threads": 1,
}


def frozen_start(folder: Path) -> Run:
    """A run of a single step: its encoder is as good as a random one."""
    return kontrast.run(recipe(out=folder, **{"train.steps": 1, "run.monitor_every": 0}))


def adapt(start: Run, out: Path, data: Any = "digits", *, minutes: float = 5.0, **changes: Any) -> Run:
    """`kontrast.adapt` with `SETTINGS`, which says nothing."""
    named = {key: changes.pop(key) for key in ("method", "accept", "weights") if key in changes}
    return kontrast.adapt(start, data, minutes=minutes, out=out, say=str, **named, **{**SETTINGS, **changes})


def fix_speed(monkeypatch: pytest.MonkeyPatch, seconds: float = 10.0) -> None:
    """An epoch takes so many seconds as planned, whatever else the machine does."""
    monkeypatch.setattr(planning, "seconds_to_train", lambda recipe, data=None: seconds)
