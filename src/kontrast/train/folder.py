"""Old names of `kontrast.runs.Run`, until every stage has moved to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kontrast import distributed
from kontrast.files import read_json
from kontrast.recipe import Recipe
from kontrast.runs import Busy, Run, commit, data_digest
from kontrast.runs import file_digest as digest
from kontrast.runs.run import REMOVE_STATE
from kontrast.runs.run import WRITTEN as LEFT
from kontrast.train.machine import machine

__all__ = ["LEFT", "Busy", "RunFolder", "commit", "data_digest", "digest", "machine"]


class RunFolder(Run):
    """A `kontrast.runs.Run` by its old names."""

    @staticmethod
    def of(recipe: Recipe) -> RunFolder:
        return RunFolder(Run.of(recipe).path)

    metrics = Run.metrics_file  # type: ignore[assignment]
    last = Run.last_checkpoint
    previous = Run.previous_checkpoint
    best = Run.best_checkpoint
    encoder = Run.weights_file  # type: ignore[assignment]
    model = Run.card_file
    result = Run.result_file  # type: ignore[assignment]
    keep_recipe = Run.restore_recipe
    changed = Run.changed_files

    def read(self) -> dict[str, Any]:  # type: ignore[override]
        if not self.state_file.exists():
            return {}
        assert self.state is not None  # raises if a value does not fit
        return read_json(self.state_file, REMOVE_STATE)

    def note(self, status: str, **fields: Any) -> None:
        if distributed.rank() == 0:
            super().note(status, **fields)

    @contextmanager
    def alone(self) -> Iterator[None]:
        if distributed.rank() != 0:
            yield
            return
        with self.lock():
            yield
