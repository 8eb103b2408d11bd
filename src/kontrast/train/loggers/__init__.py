"""Loggers: where the numbers of a run go beside its metrics.jsonl. One a file, its name the logger's.

Each needs a package of its own, which is imported when the logger is asked for: ``pip install kontrast[tensorboard]``,
``[wandb]``, ``[mlflow]``. A resumed run goes on in the same place.

>>> from kontrast.train import loggers
>>> loggers.names()
['mlflow', 'tensorboard', 'wandb']
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kontrast.registry import Family, nearest
from kontrast.train.loggers._logger import Logger
from kontrast.vocabulary import check_name

LOGGERS = Family("kontrast.train.loggers")

__all__ = ["LOGGERS", "Logger", "find", "names", "open_loggers"]


def names() -> list[str]:
    """Every logger's name, installed or not."""
    return LOGGERS.names()


def find(name: str) -> type[Logger]:
    """The class of this name; an unknown one is an error that names the nearest.

    >>> find("tensorbord")
    Traceback (most recent call last):
        ...
    ValueError: no logger 'tensorbord'; did you mean 'tensorboard'? Known: mlflow, tensorboard, wandb
    """
    check_name("logger", name, names())
    return LOGGERS[name]


def open_loggers(
    names: Iterable[str],
    *,
    folder: Path,
    name: str,
    recipe: Mapping[str, Any],
    resume_step: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Logger]:
    """The loggers of these names for the run in ``folder``, which continues after ``resume_step`` steps (0: it begins).

    ``options`` are those of each logger, by its name. If one cannot be opened none stays open.
    """
    kinds = {given: find(given) for given in names}
    chosen = {given: dict((options or {}).get(given, {})) for given in kinds}
    for given, kind in kinds.items():
        _check(given, kind, chosen[given])
    opened: list[Logger] = []
    try:
        for given, kind in kinds.items():
            opened.append(kind(Path(folder), name, dict(recipe), resume_step, **chosen[given]))
    except BaseException:
        for logger in opened:
            logger.close()
        raise
    return opened


def _check(name: str, kind: type[Logger], given: Mapping[str, Any]) -> None:
    known = [p.name for p in inspect.signature(kind).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in given:
        if option not in known:
            hint = nearest(option, known)
            raise ValueError(f"logger {name!r} has no option {option!r}{hint} It has {', '.join(known) or 'none'}")
