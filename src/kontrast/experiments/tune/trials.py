"""One trial: a setting and a seed, trained on a part of the training rows and scored on the rest of them.

The part that ``data.validation`` holds out takes the place of the test rows before anything is trained, so neither
training, monitors nor score can see those. The score is

    with labels       the accuracy by a protocol of the recipe, from the remaining training rows to the held-out ones
    without           minus the InfoNCE loss (τ = 0.1) between two fixed views of the held-out rows

A trial is a run folder by its recipe's hash: what is done is read, what was interrupted goes on, what diverged stays
failed. One that is given up half-way (see `kontrast.experiments.tune.hopeless`) keeps its checkpoint, so that another
search may go on with it; a finished one needs none, and has none.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from kontrast.experiments.tune.hopeless import half_way, hopeless
from kontrast.experiments.tune.search import Setting
from kontrast.files import read_json, write_json
from kontrast.recipe import Recipe
from kontrast.train import NonFiniteLoss, RunFolder, Stopped, Training, make_job, resolve
from kontrast.train import checkpoint as checkpoints
from kontrast.train.folder import machine
from kontrast.train.job import Job, held_out, keep_memory
from kontrast.train.metrics import Metrics, read_metrics
from kontrast.train.running import evaluated, processes
from kontrast.train.watching import MOST_VALIDATED, Validation

HELD_OUT = "held out of the training rows"


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: "done" with a score, "failed" or "stopped early" with a note."""

    state: str
    folder: Path
    score: float | None = None
    half_way: float | None = None  # its validation there
    note: str = ""
    by: str = ""  # what the score is
    accuracy: bool = True


def trial_recipe(base: Recipe, setting: Setting, seed: int) -> Recipe:
    """The recipe of a trial, resolved."""
    options = {f"method.{name}": value for name, value in setting.items()}
    return resolve(base.override({**options, "seed": seed}))


def run_trial(recipe: Recipe, others: Sequence[float] = ()) -> Outcome:
    """Does what is left of a trial; ``others`` are the validations half-way of those before it."""
    folder = RunFolder.of(recipe)
    known = _known(folder, others)
    if known is not None:
        return known
    if recipe.run.threads is not None:
        torch.set_num_threads(recipe.run.threads)
    with processes(recipe.run.device) as device:
        job = without_test_rows(make_job(recipe, device))  # an error here is one of the recipe, not of the trial
        keep_memory(job)
        folder.begin(recipe)
        with folder.alone():
            first = {} if folder.read() else {"started": _now()}
            about = {"name": recipe.name, "hash": recipe.hash, "seed": recipe.seed, "held_out": _rows(job)}
            folder.note("training", **about, **first, **machine(device))
            _train(job, folder, others)
    found = _known(folder, others, retry=False)
    assert found is not None
    return found


def without_test_rows(job: Job) -> Job:
    """The job with held-out training rows in place of its test rows."""
    recipe, data, train, held = job.recipe, job.data, job.train, job.validation
    if recipe.data.split != "train" and data.train.labels is not None:  # scored with the labelled rows it does not use
        is_held = held_out(data.train, recipe.data.validation, recipe.seed)
        train, held = (data.train.subset(rows.nonzero()[:, 0]) for rows in (~is_held, is_held))
    return replace(job, data=replace(data, train=train, test=held, unlabelled=None))


def _train(job: Job, folder: RunFolder, others: Sequence[float]) -> None:
    try:
        training = _Trial(job, folder, others)
        training.run()
        folder.note("evaluating", step=training.state.step, total_steps=job.total_steps)
        write_json(folder.result, _scored(job, folder, training.state.patience.best_step))
        folder.note("done", finished=_now(), files=folder.digests())
        shutil.rmtree(folder.last.parent, ignore_errors=True)
    except _GivenUp as reason:
        folder.note("stopped early", note=str(reason))
    except (Stopped, KeyboardInterrupt):
        folder.note("interrupted")
        raise
    except Exception as error:
        # A loss that is no number will be none again; anything else may have been the machine's fault.
        diverged = isinstance(error, NonFiniteLoss)
        folder.note("failed", error=f"{type(error).__name__}: {error}", diverged=diverged)


def _scored(job: Job, folder: RunFolder, best_step: int) -> dict[str, Any]:
    if job.recipe.train.patience is not None and best_step:
        job.method.load_state_dict(checkpoints.load_best(folder.best, job.recipe.hash, best_step)["method"])
    results, _ = evaluated(job)
    records = [{**result.record(), "split": HELD_OUT} for result in results]
    about = {"recipe": job.recipe.name, "hash": job.recipe.hash, "seed": job.recipe.seed, "results": records}
    if results:
        return {**about, "score": results[0].value, "by": results[0].protocol}
    return {**about, "score": Validation(job)(), "by": "minus InfoNCE, τ = 0.1, between two views"}


class _GivenUp(Exception):
    """A trial is hopeless."""


class _Trial(Training):
    """Training that is given up half-way if it is hopeless, after saving."""

    def __init__(self, job: Job, folder: RunFolder, others: Sequence[float]) -> None:
        super().__init__(job, folder)
        self.others = others

    def after_validation(self, metrics: Metrics | None) -> None:
        found = half_way(read_metrics(self.folder.metrics), self.job.total_steps)
        if found is not None and found[0] == self.state.step:
            reason = hopeless(found[1], self.others, _rows(self.job))
            if reason:
                self.save(metrics)
                raise _GivenUp(reason)


def _rows(job: Job) -> int | None:
    """How many rows a validation is the accuracy on; None if it is no accuracy."""
    held = job.validation
    assert held is not None
    return None if held.labels is None else min(len(held), MOST_VALIDATED)


def _known(folder: RunFolder, others: Sequence[float], *, retry: bool = True) -> Outcome | None:
    """What a trial's folder says came of it; None if there is more to do.

    With ``retry`` there is more to do where it failed, unless it diverged.
    """
    state = folder.read()
    status = state.get("status")
    if status == "done" and folder.changed():
        return None
    seen = half_way(read_metrics(folder.metrics), state["total_steps"]) if "total_steps" in state else None
    value = None if seen is None else seen[1]
    if status == "done":
        result = read_json(folder.result, f"remove {folder.path}, and the trial is made again")
        if result["score"] is None:
            return Outcome("failed", folder.path, None, value, "the score is no number")
        return Outcome("done", folder.path, result["score"], value, by=result["by"], accuracy=bool(result["results"]))
    if status == "failed" and (state.get("diverged") or not retry):
        return Outcome("failed", folder.path, None, value, state["error"])
    reason = None if value is None else hopeless(value, others, state["held_out"])
    if reason is None:
        return None
    if status != "stopped early":  # a stop came between the validation and the note of it
        folder.note("stopped early", note=reason)
    return Outcome("stopped early", folder.path, None, value, reason)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
