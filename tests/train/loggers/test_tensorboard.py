"""TensorBoard's files, read back with TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kontrast.train.loggers import open_loggers

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def opened(folder: Path, resume_step: int = 0) -> Any:
    recipe = {"optim": {"lr": 0.1}}
    return open_loggers(["tensorboard"], folder=folder, name="run", recipe=recipe, resume_step=resume_step)[0]


def shown(folder: Path, tag: str) -> list[tuple[int, float]]:
    events = accumulator.EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_what_is_logged_is_shown(tmp_path: Path) -> None:
    logger = opened(tmp_path)
    logger.log(10, {"loss": 2.5, "monitor/knn20": 0.5})
    logger.log(20, {"loss": 2.0})
    assert shown(tmp_path, "loss") == [(10, 2.5), (20, 2.0)], "before it is closed: a killed run loses nothing"
    logger.close()
    assert shown(tmp_path, "monitor/knn20") == [(10, 0.5)]
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert b'"lr": 0.1' in events.Tensors("recipe/text_summary")[0].tensor_proto.string_val[0]


@pytest.mark.parametrize(("resume", "kept"), [(20, [(10, 1.0), (20, 1.0)]), (0, [])])
def test_on_resuming_no_step_is_shown_twice(tmp_path: Path, resume: int, kept: list[tuple[int, float]]) -> None:
    first = opened(tmp_path)
    for step in (10, 20, 30, 40):
        first.log(step, {"loss": 1.0})
    first.close()
    second = opened(tmp_path, resume)
    for step in (30, 40, 50):
        second.log(step, {"loss": 7.0})
    second.close()
    assert shown(tmp_path, "loss") == [*kept, (30, 7.0), (40, 7.0), (50, 7.0)]
