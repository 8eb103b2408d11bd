"""A cell: one run of an experiment, and its place in the table.

A cell is a training run (a recipe, in the folder that its hash names) or a task: a function of this package called with
a few numbers, for what trains no encoder (points on a sphere, gradients of a loss). Both leave a run folder
(`kontrast.runs.Run`), so both are done once, can be resumed, and are never done by two processes at once.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kontrast.files import expanded
from kontrast.recipe import Recipe
from kontrast.runs import Busy, Run, State, timestamp

Value = str | int | float | bool | None
At = Mapping[str, Value]


@dataclass(frozen=True)
class Task:
    """A function by its address, and its arguments: ``function(folder, **options)``.

    The mapping that it returns becomes result.json; it writes larger things into the folder itself.

    Args:
        call: ``module:function``.
        options: The arguments.
        out: The folder in which the task's folder lies.
        formerly: The function's former address, if it moved: its folder keeps its name, and finished runs are found.
    """

    call: str
    options: Mapping[str, Any] = field(default_factory=dict)
    out: str = "runs"
    formerly: str = ""

    @property
    def folder(self) -> str:
        """The name of its folder: the function's name, and a hash of everything that decides the result."""
        decisive = json.dumps([self.formerly or self.call, dict(self.options)], sort_keys=True)
        name = self.call.rpartition(":")[2].replace("_", "-")
        return f"{name}-{hashlib.sha256(decisive.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Cell:
    """A run of an experiment.

    Args:
        at: The value on every axis, and the seed.
        does: A resolved recipe or a task.
    """

    at: At
    does: Recipe | Task

    @property
    def path(self) -> Path:
        """Its run folder."""
        out = self.does.run.out if isinstance(self.does, Recipe) else self.does.out
        return expanded(out) / self.does.folder

    @property
    def run(self) -> Run:
        """Its run folder, to be read and written."""
        return Run(self.path)

    @property
    def name(self) -> str:
        """Its place in words.

        >>> Cell({"loss": "hard", "temperature": 0.1, "seed": 0}, Task("a:b")).name
        'loss=hard temperature=0.1 seed=0'
        """
        return " ".join(f"{axis}={value}" for axis, value in self.at.items())

    @property
    def state(self) -> State:
        """Status, error, times …; empty before the start."""
        return self.run.state

    @property
    def done(self) -> bool:
        """Whether it finished, and its files and its data file are unchanged."""
        return self.trouble is None and self.state.status == "done"

    @property
    def trouble(self) -> str | None:
        """Why the content of the folder cannot be used: it is damaged, of another recipe, or the data file changed."""
        try:
            if self.run.status != "done":
                return None
            if isinstance(self.does, Recipe):
                self.run.check(self.does)
            if files := self.run.changed_files():
                names = ", ".join(files)
                return f"{names} of {self.path} changed since; run the experiment again, which makes it anew"
        except (OSError, ValueError) as error:
            return str(error)
        return None

    def absolute(self) -> Cell:
        """The same cell with absolute folders, so that it can be performed anywhere; its hash does not change."""
        if isinstance(self.does, Task):
            return replace(self, does=replace(self.does, out=_absolute(self.does.out)))
        run = self.does.run
        root = None if run.data_root is None else _absolute(run.data_root)
        moved = run.model_copy(update={"out": _absolute(run.out), "data_root": root})
        return replace(self, does=self.does.model_copy(update={"run": moved}))

    def perform(self) -> bool:
        """Run the cell in this process.

        Returns:
            False if it was done already.

        Raises:
            kontrast.runs.Busy: Another process is at it.
            Exception: Whatever the run raises; it is written into run.json too.
        """
        from kontrast.train import Stopped

        try:
            return _train(self.does) if isinstance(self.does, Recipe) else _call(self.does, self.run)
        except (Busy, Stopped):
            raise
        except Exception as error:  # also an error before the run had a folder
            self.fail(f"{type(error).__name__}: {error}")
            raise

    def fail(self, error: str) -> bool:
        """Write into run.json that the cell failed.

        Returns:
            False if another process works on it, or has done it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with self.run.lock():
                if self.run.status != "done":
                    self.run.note("failed", error=error)
                return not self.done
        except Busy:
            return False
        except (OSError, ValueError):  # no folder can be made, or its run.json is damaged: the error itself says so
            return True


def _absolute(path: str) -> str:
    return str(expanded(path).absolute())


def _train(recipe: Recipe) -> bool:
    from kontrast import pipeline
    from kontrast.train import Session, resolve

    if resolve(recipe).hash != recipe.hash:  # its run would lie in another folder than the cell's
        raise ValueError(f"recipe={recipe.name}: must be resolved to be a cell. Use kontrast.train.resolve(recipe).")
    session = Session(recipe)
    pipeline.perform(session, page=False)
    return session.has_work


def _call(task: Task, run: Run) -> bool:
    import torch

    from kontrast.train import Stopped
    from kontrast.train.machine import machine

    start = time.monotonic()
    try:
        run.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {run.path} cannot be created: {error.strerror}; choose another --out") from error
    with run.lock():
        if run.status == "done" and not run.changed_files():
            return False
        run.write_task(task.call, task.options)
        run.note("running", error=None, started=timestamp(), **machine(torch.device("cpu")))
        try:
            result = _function(task.call)(run.path, **task.options)
        except (KeyboardInterrupt, Stopped):
            run.note("interrupted")
            raise
        run.write_result(result)
        seconds = round(time.monotonic() - start, 1)
        run.note("done", finished=timestamp(), seconds=seconds, files=run.digests(run.task_files()))
    return True


def _function(call: str) -> Callable[..., Mapping[str, Any]]:
    module, _, name = call.partition(":")
    try:
        function: Callable[..., Mapping[str, Any]] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"call={call}: must be module:function, and there is none ({error}). Correct it.") from error
    return function
