"""Loggers: where the numbers of a run go beside its metrics.jsonl. One a file, its name the logger's.

Each needs a package of its own, which is imported when the logger is asked for: ``pip install kontrast[tensorboard]``,
``[wandb]``, ``[mlflow]``. A resumed run goes on in the same place.

>>> from kontrast.train import loggers
>>> loggers.names()
['mlflow', 'tensorboard', 'wandb']
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kontrast.registry import FAMILIES

__all__ = ["LOGGERS", "Logger", "find", "names", "open_loggers"]


class Logger(ABC):
    """Base of the loggers. A new one needs a constructor, `log` and `close`.

    Args:
        folder: The run folder.
        name: The run's name.
        recipe: Its recipe, as plain values.
        resume_step: The step after which the run resumes; 0 if it starts.
        options: The logger's own options.
    """

    @abstractmethod
    def __init__(self, folder: Path, name: str, recipe: dict[str, Any], resume_step: int, **options: Any) -> None: ...

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log values.

        Args:
            step: The step, counted from 1.
            values: The values by name.
        """

    @abstractmethod
    def close(self) -> None:
        """Called at the end of the run, also if it fails."""


def flat(recipe: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """A nested recipe as dotted keys.

    >>> dict(flat({"optim": {"name": "sgd", "lr": 0.1}, "seed": 0}))
    {'optim.name': 'sgd', 'optim.lr': 0.1, 'seed': 0}
    """
    for key, value in recipe.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def read_or_create(path: Path, make: Callable[[], str]) -> str:
    """Read a service's name for this run from a file, or create one and write it there.

    So a resumed run is the same run for the service, and so is a copied folder.
    """
    if path.exists():
        return path.read_text(encoding="utf-8").strip()
    name = make()
    path.write_text(name + "\n", encoding="utf-8")
    return name


LOGGERS = FAMILIES["logger"]
names, find = LOGGERS.names, LOGGERS.find


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
