"""The estimate of a run's time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast.train import pace, resolve
from kontrast.train.loop import Training
from tests.train.small import recipe


def test_grows_with_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves a second a step: 18 steps are 18 seconds, whatever the machine."""
    now = [0.0]
    step = Training._step

    def slow(self: Training, batch: object) -> torch.Tensor:
        now[0] += 7.0 if self.state.step == 0 else 1.0  # the first step is not like the others
        return step(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Training, "_step", slow)
    monkeypatch.setattr(pace.time, "monotonic", lambda: now[0])
    assert pace.seconds_to_train(resolve(recipe("supcon", tmp_path))) == pytest.approx(18.0)
    one = resolve(recipe("supcon", tmp_path, **{"train.epochs": None, "train.steps": 1}))
    assert pace.seconds_to_train(one) == pytest.approx(7.0)
    assert list(tmp_path.iterdir()) == []
