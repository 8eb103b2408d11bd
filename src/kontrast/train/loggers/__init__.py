"""Loggers: where the numbers of a run go beside its metrics.jsonl. One a file, its name the logger's.

Each needs a package of its own, which is imported when the logger is asked for: ``pip install kontrast[tensorboard]``,
``[wandb]``, ``[mlflow]``. A resumed run goes on in the same place.

>>> from kontrast.train import loggers
>>> loggers.names()
['mlflow', 'tensorboard', 'wandb']
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kontrast.registry import FAMILIES
from kontrast.train.loggers._logger import Logger

LOGGERS = FAMILIES["logger"]
names, find = LOGGERS.names, LOGGERS.find

__all__ = ["LOGGERS", "Logger", "find", "names", "open_loggers"]


def open_loggers(
    names: Iterable[str],
    *,
    folder: Path,
    name: str,
    recipe: Mapping[str, Any],
    resume_step: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Logger]:
    """The loggers of these names for a run.

    Args:
        names: some of `names`.
        folder: of the run.
        name: of the run.
        recipe: of the run, as plain values.
        resume_step: the step after which the run continues; 0 if it starts.
        options: of each logger, by its name.

    Returns:
        The loggers. If one of them cannot be opened, the others are closed again and its error is raised.
    """
    options_by_name = {logger: (options or {}).get(logger, {}) for logger in names}
    for logger, its_options in options_by_name.items():
        LOGGERS.check(logger, its_options)
    loggers: list[Logger] = []
    with contextlib.ExitStack() as stack:
        for logger, its_options in options_by_name.items():
            loggers.append(LOGGERS.make(logger, Path(folder), name, dict(recipe), resume_step, **its_options))
            stack.callback(loggers[-1].close)
        stack.pop_all()  # all are open: the caller closes them
    return loggers
