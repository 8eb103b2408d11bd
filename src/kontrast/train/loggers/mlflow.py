"""MLflow: one run for one run folder, on the server that ``MLFLOW_TRACKING_URI`` names, else in a local file.

The local file is ``mlflow.db`` beside the run folder, one for all of its neighbours: ``mlflow ui --backend-store-uri
sqlite:///runs/mlflow.db``. The run's id is kept in ``mlflow-run.txt``, so a resumed run goes on in the same one; what
is logged again between checkpoint and kill has the same step and value as before.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kontrast.train.loggers import Logger, flat, read_or_create

ID_FILE = "mlflow-run.txt"
LONGEST = 500  # characters of a parameter that every server takes
AT_ONCE = 100  # parameters in one request


class MLflow(Logger):
    """Values as metrics, the recipe as parameters.

    Args:
        folder: The run folder.
        name: The run's name.
        recipe: Its recipe, as plain values.
        resume_step: Not used: MLflow takes a step twice.
        experiment: MLflow's experiment, which is created if it does not exist.
        tracking_uri: The server; by default ``MLFLOW_TRACKING_URI``, else a local file.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        recipe: dict[str, Any],
        resume_step: int,
        *,
        experiment: str = "kontrast",
        tracking_uri: str | None = None,
    ) -> None:
        try:
            tracking, self._entities = (importlib.import_module(f"mlflow.{part}") for part in ("tracking", "entities"))
        except ImportError as error:
            raise ImportError("the logger mlflow needs a package: pip install kontrast[mlflow]") from error
        uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or _local(folder)
        self._client = tracking.MlflowClient(tracking_uri=uri)
        resumes = (folder / ID_FILE).exists()
        self.id = read_or_create(folder / ID_FILE, lambda: self._new(experiment, name))
        if resumes:
            self._client.update_run(self.id, status="RUNNING")
            return
        params = [self._entities.Param(key, str(value)[:LONGEST]) for key, value in flat(recipe)]
        for start in range(0, len(params), AT_ONCE):
            self._client.log_batch(self.id, params=params[start : start + AT_ONCE])

    def _new(self, experiment: str, name: str) -> str:
        record = self._client.get_experiment_by_name(experiment)
        number = record.experiment_id if record else self._client.create_experiment(experiment)
        return str(self._client.create_run(number, run_name=name).info.run_id)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """All values in one request."""
        now = int(time.time() * 1000)
        metrics = [self._entities.Metric(key, float(value), now, step) for key, value in values.items()]
        self._client.log_batch(self.id, metrics=metrics)

    def close(self) -> None:
        """Mark the run as finished; if it is resumed, it is marked as running again."""
        self._client.set_terminated(self.id)


def _local(folder: Path) -> str:
    """A database that needs no server; MLflow no longer writes plain folders."""
    try:
        importlib.import_module("sqlalchemy")
    except ImportError as error:
        raise ImportError(
            "mlflow without a server needs sqlalchemy, alembic and sqlparse: pip install kontrast[mlflow], or set "
            "MLFLOW_TRACKING_URI to a server's address"
        ) from error
    return f"sqlite:///{(folder.parent / 'mlflow.db').resolve()}"
