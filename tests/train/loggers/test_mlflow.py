"""MLflow in a local file: what it holds, and that a resumed run is the same one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kontrast.train.loggers import open_loggers

tracking = pytest.importorskip("mlflow.tracking")
pytest.importorskip("sqlalchemy")
pytest.importorskip("alembic")

pytestmark = pytest.mark.filterwarnings("default")  # its own, of its own dependencies


def opened(folder: Path, resume_step: int = 0) -> Any:
    recipe = {"optim": {"lr": 0.1}, "about": "x" * 2000}
    return open_loggers(["mlflow"], folder=folder, name="run", recipe=recipe, resume_step=resume_step)[0]


def test_values_parameters_and_one_run_through_resuming(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    folder = tmp_path / "runs" / "run"
    folder.mkdir(parents=True)
    first = opened(folder)
    first.log(10, {"loss": 2.5, "monitor/knn20": 0.5})
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'runs' / 'mlflow.db'}")
    found = client.get_run(first.id)
    assert found.data.params["optim.lr"] == "0.1"
    assert found.data.metrics == {"loss": 2.5, "monitor/knn20": 0.5}
    first.close()
    assert client.get_run(first.id).info.status == "FINISHED"
    second = opened(folder, resume_step=10)
    assert second.id == first.id
    assert client.get_run(first.id).info.status == "RUNNING"
    second.log(20, {"loss": 2.0})
    second.close()
    history = client.get_metric_history(first.id, "loss")
    assert [(m.step, m.value) for m in history] == [(10, 2.5), (20, 2.0)]
    assert len(client.search_runs([found.info.experiment_id])) == 1
