"""Weights & Biases offline: what its file holds, and that a resumed run is the same one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kontrast.train.loggers import open_loggers

wandb = pytest.importorskip("wandb")

pytestmark = pytest.mark.filterwarnings("default")  # its own, of its own dependencies


def opened(folder: Path, resume_step: int = 0) -> Any:
    return open_loggers(
        ["wandb"],
        folder=folder,
        name="run",
        recipe={"optim": {"lr": 0.1}},
        resume_step=resume_step,
        options={"wandb": {"mode": "offline"}},
    )[0]


def test_a_resumed_run_has_the_same_id_and_its_own_steps(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.log(10, {"loss": 2.5, "monitor/knn20": 0.5})
    assert dict(first._run.config) == {"optim": {"lr": 0.1}}
    assert first._run.summary["loss"] == 2.5
    assert first._run.summary["step"] == 10
    first.close()
    second = opened(tmp_path, resume_step=10)
    second.log(20, {"loss": 2.0})
    assert second._run.summary["step"] == 20
    second.close()
    assert first.id == second.id == (tmp_path / "wandb-id.txt").read_text().strip()
    runs = sorted((tmp_path / "wandb").glob("offline-run-*"))
    assert runs
    assert all(run.name.endswith(first.id) for run in runs)
