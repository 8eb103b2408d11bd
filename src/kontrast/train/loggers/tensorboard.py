"""TensorBoard: event files in ``tensorboard/`` of the run folder; ``tensorboard --logdir runs`` shows them all.

A resumed run writes a further file that begins by taking back what was logged after its checkpoint, so that no step is
drawn twice. Each call is brought to the file at once: a killed run loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kontrast.train.loggers import Logger

FOLDER = "tensorboard"


class TensorBoard(Logger):
    """Scalars under their names; the recipe as text.

    Args:
        folder: The run folder.
        name: The run's name.
        recipe: Its recipe, as plain values.
        resume_step: The step after which the run resumes; 0 if it starts.
    """

    def __init__(self, folder: Path, name: str, recipe: dict[str, Any], resume_step: int) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError("the logger tensorboard needs a package: pip install kontrast[tensorboard]") from error
        path = folder / FOLDER
        earlier = path.exists() and any(path.iterdir())
        # TensorBoard forgets every earlier event of this step and later ones.
        purge = (resume_step + 1 if resume_step else 0) if earlier else None
        self._writer = SummaryWriter(log_dir=str(path), purge_step=purge)  # type: ignore[no-untyped-call]
        if not resume_step:
            text = json.dumps(recipe, indent=2, ensure_ascii=False, default=str)
            self._writer.add_text("recipe", f"{name}\n\n```json\n{text}\n```", 0)  # type: ignore[no-untyped-call]

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write each value as a scalar."""
        for name, value in values.items():
            self._writer.add_scalar(name, float(value), step)  # type: ignore[no-untyped-call]
        self._writer.flush()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Close the file."""
        self._writer.close()  # type: ignore[no-untyped-call]
