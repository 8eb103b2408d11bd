"""Loggers: where the numbers of a run go beside its metrics.jsonl. One a file, its name the logger's.

Each needs a package of its own, which is imported when the logger is asked for: ``pip install kontrast[tensorboard]``,
``[wandb]``, ``[mlflow]``. A resumed run goes on in the same place.

>>> from kontrast.train import loggers
>>> loggers.names()
['mlflow', 'tensorboard', 'wandb']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kontrast.registry import FAMILIES
from kontrast.train.loggers._logger import Logger

LOGGERS = FAMILIES["logger"]

__all__ = ["LOGGERS", "Logger", "find", "names", "open_loggers"]


def names() -> list[str]:
    """Every logger's name, installed or not."""
    return LOGGERS.names()


def find(name: str) -> type[Logger]:
    """The class of this name.

    Raises:
        ValueError: an unknown name; the error names the nearest one.

    >>> find("tensorbord")
    Traceback (most recent call last):
        ...
    ValueError: no logger 'tensorbord'; did you mean 'tensorboard'? Known: mlflow, tensorboard, wandb
    """
    kind: type[Logger] = LOGGERS[name]
    return kind


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
    chosen = {logger: dict((options or {}).get(logger, {})) for logger in names}
    for logger, its_options in chosen.items():
        LOGGERS.check(logger, its_options)
    opened: list[Logger] = []
    try:
        for logger, its_options in chosen.items():
            opened.append(LOGGERS.make(logger, Path(folder), name, dict(recipe), resume_step, **its_options))
    except BaseException:
        for other in opened:
            other.close()
        raise
    return opened
