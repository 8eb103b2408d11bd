"""A cell: one run of an experiment, and its place in the table.

A cell is a training run (a recipe, in the folder that its hash names) or a task: a function of this package called with
a few numbers, for what trains no encoder (points on a sphere, gradients of a loss). Both leave a folder with run.json
(status, error) and result.json, so both are done once, go on after a stop, and are never done by two processes at once.
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

from kontrast.files import expanded, write_json
from kontrast.recipe import Recipe

Value = str | int | float | bool | None
At = Mapping[str, Value]


@dataclass(frozen=True)
class Task:
    """A function by its address, ``module:function``, and what it is called with: ``function(folder, **options)``.

    What it returns becomes result.json; larger things it writes into the folder itself.
    """

    call: str
    options: Mapping[str, Any] = field(default_factory=dict)
    out: str = "runs"

    @property
    def folder(self) -> str:
        """Its folder's name: the function's, and a hash of everything that decides the result."""
        decisive = json.dumps([self.call, dict(self.options)], sort_keys=True)
        short = self.call.rpartition(":")[2].replace("_", "-")
        return f"{short}-{hashlib.sha256(decisive.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Cell:
    """``at`` has a value on every axis and the seed; ``does`` is a resolved recipe or a task."""

    at: At
    does: Recipe | Task

    @property
    def path(self) -> Path:
        """Its run folder."""
        out = self.does.run.out if isinstance(self.does, Recipe) else self.does.out
        return expanded(out) / self.does.folder

    @property
    def name(self) -> str:
        """Its place in words.

        >>> Cell({"loss": "hard", "temperature": 0.1, "seed": 0}, Task("a:b")).name
        'loss=hard temperature=0.1 seed=0'
        """
        return " ".join(f"{axis}={value}" for axis, value in self.at.items())

    @property
    def state(self) -> dict[str, Any]:
        """run.json: status, error, started, finished; empty before the beginning."""
        from kontrast.train import RunFolder

        return RunFolder(self.path).read()

    @property
    def done(self) -> bool:
        """Nothing is left to do: it ended well, and its files and data are what they were."""
        return self.trouble is None and self.state.get("status") == "done"

    @property
    def trouble(self) -> str | None:
        """Why what the folder holds cannot be used, if so: it is damaged, another's, or the data file was changed."""
        from kontrast.train import RunFolder

        folder = RunFolder(self.path)
        try:
            if folder.status == "done" and isinstance(self.does, Recipe):
                folder.check(self.does)
            if folder.status == "done" and (changed := folder.changed()):
                return (
                    f"{', '.join(changed)} of {self.path} changed since; run the experiment again, which makes it anew"
                )
        except (OSError, ValueError) as error:
            return str(error)
        return None

    def absolute(self) -> Cell:
        """The same with folders that mean the same wherever it is performed; its hash does not change."""
        if isinstance(self.does, Task):
            return replace(self, does=replace(self.does, out=_absolute(self.does.out)))
        run = self.does.run
        root = None if run.data_root is None else _absolute(run.data_root)
        moved = run.model_copy(update={"out": _absolute(run.out), "data_root": root})
        return replace(self, does=self.does.model_copy(update={"run": moved}))

    def perform(self) -> bool:
        """Run the cell in this process; False if it was done already. Errors are written into run.json and raised."""
        from kontrast import pipeline
        from kontrast.train import Stopped, resolve
        from kontrast.train.folder import Busy

        try:
            if isinstance(self.does, Recipe):
                if resolve(self.does).hash != self.does.hash:  # its run would lie in another folder than the cell's
                    raise ValueError("a cell's recipe has every default written out; make it of resolve(recipe)")
                return pipeline.perform(self.does, page=False).had_work
            return _perform(self.does, self.path)
        except (Busy, Stopped):
            raise
        except Exception as error:  # also what went wrong before the run had a folder
            self.fail(f"{type(error).__name__}: {error}")
            raise

    def fail(self, error: str) -> bool:
        """Writes into run.json that it failed; False if another process works on it, or has done it."""
        from kontrast.train import RunFolder
        from kontrast.train.folder import Busy

        folder = RunFolder(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with folder.alone():
                if folder.status != "done":
                    folder.note("failed", error=error)
                return not self.done
        except Busy:
            return False
        except (OSError, ValueError):  # no folder can be made, or its run.json is damaged: the error itself says so
            return True


def _absolute(path: str) -> str:
    return str(expanded(path).absolute())


def _perform(task: Task, path: Path) -> bool:
    import torch

    from kontrast.train import RunFolder, Stopped
    from kontrast.train.folder import machine

    folder, began = RunFolder(path), time.monotonic()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {path} cannot be made: {error.strerror}; choose another --out") from error
    with folder.alone():
        if folder.status == "done" and not folder.changed():
            return False
        write_json(path / "task.json", {"call": task.call, "options": dict(task.options)})
        about = machine(torch.device("cpu"))
        folder.note("running", error=None, started=time.strftime("%Y-%m-%dT%H:%M:%S%z"), **about)
        try:
            result = _function(task.call)(path, **task.options)
        except (KeyboardInterrupt, Stopped):
            folder.note("interrupted")
            raise
        write_json(folder.result, result)
        made = sorted({file.name for file in path.glob("[!.]*")} - {"run.json", "log.txt"})  # an engine writes the log
        took = {"finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "seconds": round(time.monotonic() - began, 1)}
        folder.note("done", **took, files=folder.digests(made))
    return True


def _function(call: str) -> Callable[..., Mapping[str, Any]]:
    module, _, name = call.partition(":")
    try:
        found: Callable[..., Mapping[str, Any]] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"no function at {call!r} ({error}); expected 'module:function'") from error
    return found
