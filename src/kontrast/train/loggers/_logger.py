"""The base of the loggers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any


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
