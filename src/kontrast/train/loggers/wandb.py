"""Weights & Biases: one run for one run folder, online or offline (``WANDB_MODE=offline``, or ``mode="offline"``).

The run's id is kept in ``wandb-id.txt``, so a resumed run goes on in the same one. Its x-axis is our own ``step``: the
service's counter only rises, and would drop what is logged again between the checkpoint and the kill. Those points lie
on the earlier ones, being equal. Offline, each start leaves a folder of its own with the same id under ``wandb/``;
``wandb sync --append`` joins them.
"""

from __future__ import annotations

import importlib
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kontrast.train.loggers import Logger, read_or_create

ID_FILE = "wandb-id.txt"


class WandB(Logger):
    """Values under their names, the recipe as config.

    Args:
        folder: The run folder.
        name: The run's name.
        recipe: Its recipe, as plain values.
        resume_step: Not used: the service's x-axis is our own step.
        project: The service's project.
        entity: The user or team; by default the one that is logged in.
        mode: ``online`` or ``offline``; by default ``WANDB_MODE``, else ``online``.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        recipe: dict[str, Any],
        resume_step: int,
        *,
        project: str = "kontrast",
        entity: str | None = None,
        mode: str | None = None,
    ) -> None:
        try:
            wandb = importlib.import_module("wandb")
        except ImportError as error:
            raise ImportError("the logger wandb needs a package: pip install kontrast[wandb]") from error
        mode = mode or os.environ.get("WANDB_MODE") or "online"
        self.id = read_or_create(folder / ID_FILE, lambda: uuid.uuid4().hex[:12])
        self._run = wandb.init(
            project=project,
            entity=entity,
            name=name,
            id=self.id,
            config=recipe,
            dir=str(folder),
            mode=mode,
            resume="allow" if mode == "online" else None,
            settings=wandb.Settings(console="off", silent=True),  # the progress bar stays ours
        )
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """All values and their step in one row."""
        self._run.log({"step": step, **values})

    def close(self) -> None:
        """Send what is left."""
        self._run.finish()
