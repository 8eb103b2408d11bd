r"""One trial: a setting and a seed, trained on a part of the training rows and scored on the rest of them.

``data.validation`` of the training rows is held out and takes the place of the test rows before anything is trained, so
training, monitors and score cannot see a test row. The score is

    with labels       the accuracy by a protocol of the recipe, from the remaining training rows to the held-out ones
    without           minus the InfoNCE loss (τ = 0.1) between two fixed views of the held-out rows

A trial is the main job (`kontrast.pipeline`) with a session of its own, `Trial`. Its run folder is named by the hash of
its recipe: a finished trial is read, an interrupted one is resumed, one that diverged stays failed.

A trial can be stopped half-way through its training, at the first validation from there on. With v its validation
accuracy on the M held-out rows and m the median accuracy of the trials before it, same seed, same point, it is stopped

    (1)  if  v < m − 3 √(2 p(1 − p)/M),      p = (mM + 2)/(M + 4)

and there are two such trials or more. The margin is three standard errors of the difference of two accuracies: settings
of one loss often differ by tenths of a percent, and the plain median rule would stop half of them by chance. Without
labels validation is minus a loss, which has no such error, and the plain rule applies. A stopped trial keeps its
checkpoint, so that another search can resume it; a finished one has none.
"""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from kontrast import pipeline
from kontrast.recipe import Recipe
from kontrast.runs import MetricsLog, Run, timestamp
from kontrast.train import Job, NonFiniteLoss, Session, Stopped, Training
from kontrast.train.evaluation import evaluate_job
from kontrast.train.job import held_out
from kontrast.train.watching import MOST_VALIDATED, Validation

HELD_OUT = "held out of the training rows"
ERRORS = 3.0  # standard errors below the median
FEWEST = 2  # trials to compare with

Check: TypeAlias = Callable[[float, int | None], str | None]
"""Given the validation half-way and the number of its rows (None if it is not an accuracy): why to stop, or None."""


@dataclass(frozen=True)
class Outcome:
    """The result of a trial: "done" with a score, or "failed" or "stopped early" with a note.

    Args:
        state: "done", "failed" or "stopped early".
        folder: The run folder.
        score: The score, larger is better.
        half_way: The validation half-way through the training.
        note: Why there is no score.
        by: How the score was computed.
        accuracy: Whether the score is an accuracy.
        retry: Whether the trial failed for a reason that may pass, such as a full disk.
    """

    state: str
    folder: Path
    score: float | None = None
    half_way: float | None = None
    note: str = ""
    by: str = ""
    accuracy: bool = True
    retry: bool = False


def never_stop(value: float, rows: int | None) -> str | None:
    """The `Check` that lets every trial finish."""
    return None


def run_trial(recipe: Recipe, check: Check = never_stop) -> Outcome:
    """Run what is left of a trial.

    Args:
        recipe: The resolved recipe of the trial, with ``data.validation``.
        check: Decides half-way whether the trial is stopped.

    Returns:
        The result. The same call again reads it from the run folder.

    Raises:
        ValueError: The recipe does not fit the data.
        kontrast.train.Stopped: A signal ended the process; the next call resumes.
    """
    run = Run.of(recipe)
    outcome = _read_outcome(run, check)
    if outcome is not None:
        return outcome
    if run.state.status == "done":  # its files have changed, and without a checkpoint it is trained again
        run.note("interrupted")
    session = Trial(recipe, check)
    try:
        pipeline.perform(session, page=False)
    except _StopEarly as reason:
        run.note("stopped early", note=str(reason))
    except NonFiniteLoss:
        run.note("failed", diverged=True)  # it will not be finite again; other errors may have been the machine's fault
    except Exception:
        if not session.has_failed or run.status != "failed":  # an error of the recipe, not of the trial; or a full disk
            raise
    outcome = _read_outcome(run, check, retry=False)
    assert outcome is not None
    return outcome


class Trial(Session):
    """The main job without test rows: scored on held-out rows, maybe stopped half-way, no encoder and no analysis.

    Args:
        recipe: The resolved recipe of the trial, with ``data.validation``.
        check: Decides half-way whether the trial is stopped.
    """

    def __init__(self, recipe: Recipe, check: Check = never_stop) -> None:
        super().__init__(recipe)
        self.check = check

    def make_job(self) -> Job:
        """The job with the held-out training rows in place of the test rows."""
        return without_test_rows(super().make_job())

    def make_training(self, job: Job) -> Training:
        """The training loop with the check half-way."""
        return _CheckedTraining(job, self.run, self.check)

    def export_encoder(self, job: Job) -> None:
        """Nothing: the chosen setting is trained again on all rows."""

    def evaluate(self) -> None:
        """Evaluate the encoder on the held-out rows."""
        assert self.job is not None
        self.results, _ = evaluate_job(self.job)

    def analyse(self) -> None:
        """Nothing: a trial has no page."""

    def finish(self) -> None:
        """Write the score, note the trial as done, and remove its checkpoint."""
        job, run, recipe = self.job, self.run, self.recipe
        assert job is not None
        records = [{**result.record(), "split": HELD_OUT} for result in self.results]
        result: dict[str, Any] = {"recipe": recipe.name, "hash": recipe.hash, "seed": recipe.seed, "results": records}
        if self.results:
            result |= {"score": self.results[0].value, "by": self.results[0].protocol}
        else:
            result |= {"score": Validation(job)(), "by": "minus InfoNCE, τ = 0.1, between two views"}
        run.write_result(result)
        run.note("done", finished=timestamp(), files=run.digests())
        shutil.rmtree(run.last_checkpoint.parent, ignore_errors=True)


def reason_to_stop(value: float, others: Sequence[float], rows: int | None) -> str | None:
    """Why a trial is stopped half-way, by rule (1).

    Args:
        value: The validation of the trial half-way.
        others: Those of the trials before it.
        rows: M; None where validation is not an accuracy.

    Returns:
        Why the trial is stopped; None if it goes on.

    >>> reason_to_stop(0.5, [0.8, 0.7], rows=400)
    'validation 0.5000 half-way, more than 3 standard errors below the median of 2 trials before it, 0.7500'
    >>> reason_to_stop(0.7, [0.8, 0.7], rows=400) is None
    True
    """
    if len(others) < FEWEST:
        return None
    m = statistics.median(others)
    margin, distance = 0.0, "below"
    if rows is not None:
        p = (m * rows + 2) / (rows + 4)  # two more right and two more wrong: no error of 0 at m = 0 or 1
        margin, distance = ERRORS * math.sqrt(2 * p * (1 - p) / rows), f"more than {ERRORS:g} standard errors below"
    if value >= m - margin:
        return None
    return f"validation {value:.4f} half-way, {distance} the median of {len(others)} trials before it, {m:.4f}"


def find_half_way(lines: Sequence[Mapping[str, Any]], total_steps: int) -> tuple[int, float] | None:
    """Step and value of the first validation from half the steps on; None if there is none before the last step.

    >>> find_half_way([{"step": 5, "loss": 2.0}, {"step": 5, "validation": 0.3}, {"step": 10, "validation": 0.4}], 10)
    (5, 0.3)
    """
    for line in lines:
        value = line.get("validation")
        if value is not None and total_steps <= 2 * line["step"] < 2 * total_steps:
            return int(line["step"]), float(value)
    return None


def without_test_rows(job: Job) -> Job:
    """Put the held-out training rows in place of the test rows."""
    recipe, data, train, validation = job.recipe, job.data, job.train, job.validation
    if recipe.data.split != "train" and data.train.labels is not None:  # scored with the labelled rows it does not use
        is_held = held_out(data.train, recipe.data.validation, recipe.seed)
        train, validation = (data.train.subset(rows.nonzero()[:, 0]) for rows in (~is_held, is_held))
    return replace(job, data=replace(data, train=train, test=validation, unlabelled=None))


class _StopEarly(Stopped):
    """The check gave a reason to stop, and everything is saved."""

    def __init__(self, reason: str) -> None:
        Exception.__init__(self, reason)


class _CheckedTraining(Training):
    """Training that saves and stops half-way if ``check`` gives a reason."""

    def __init__(self, job: Job, run: Run, check: Check) -> None:
        super().__init__(job, run)
        self.check = check

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        def start() -> None:
            on_start()
            self.folder.note("training", held_out=_count_rows(self.job))

        super().run(start)

    def after_validation(self, metrics: MetricsLog | None) -> None:
        half_way = find_half_way(self.folder.metrics(), self.job.total_steps)
        if half_way is not None and half_way[0] == self.state.step:
            reason = self.check(half_way[1], _count_rows(self.job))
            if reason:
                self.save(metrics)
                raise _StopEarly(reason)


def _count_rows(job: Job) -> int | None:
    """The number of rows that a validation is the accuracy on; None if it is not an accuracy."""
    validation = job.validation
    assert validation is not None
    return None if validation.labels is None else min(len(validation), MOST_VALIDATED)


def _read_outcome(run: Run, check: Check, *, retry: bool = True) -> Outcome | None:
    """Read the result of a trial from its folder; None if there is more to do.

    With ``retry`` there is more to do where it failed, unless it diverged.
    """
    state = run.state
    if state.status == "done" and run.changed_files():
        return None
    half_way = None if state.total_steps is None else find_half_way(run.metrics(), state.total_steps)
    value = None if half_way is None else half_way[1]
    if state.status == "done":
        result = run.read_result()
        if result.score is None:
            return Outcome("failed", run.path, None, value, "the score is not a number")
        return Outcome("done", run.path, result.score, value, by=result.by or "", accuracy=bool(result.results))
    if state.status == "failed" and (state.diverged or not retry):
        return Outcome("failed", run.path, None, value, state.error or "", retry=not state.diverged)
    reason = None if value is None else check(value, state.held_out)
    if reason is None:
        return None
    if state.status != "stopped early":  # the process ended between the validation and the note of it
        run.note("stopped early", note=reason)
    return Outcome("stopped early", run.path, None, value, reason)
