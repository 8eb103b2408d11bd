"""The training loop: one, for every method, on one process or many.

    for every step k of the run:
        batch k, augmented                           a function of (seed, epoch, k)
        the gradient of its loss                     at once or in pieces (`gradients`), averaged over the ranks
        the optimiser's step at lr·schedule(k)
        what the method does after it                momentum, queue, bank
        now and then: a line of the log, monitors, validation, a checkpoint

Between two steps everything that counts is in `State`, so a run may end anywhere and go on there.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kontrast import distributed, optim
from kontrast.data import Batch, Loader
from kontrast.data.identity import identity
from kontrast.runs import MetricsLog, Run
from kontrast.train import checkpoint
from kontrast.train.fitting import Fit
from kontrast.train.gradients import backward
from kontrast.train.job import Job
from kontrast.train.loggers import open_loggers
from kontrast.train.precision import Precision
from kontrast.train.progress import Progress
from kontrast.train.state import State, log_of, unfit
from kontrast.train.stopping import Patience, Stopped, check_finite, listening
from kontrast.train.views_ahead import Views, prepared
from kontrast.train.watching import Validation, Watch

SECONDS = 15.0  # least time between the checkpoints at the ends of epochs, if no interval is asked for


class Training:
    """A job in its folder: `run` trains from where the checkpoint stands to the end."""

    def __init__(self, job: Job, folder: Run) -> None:
        self.job, self.folder = job, folder
        recipe = job.recipe
        self.main = distributed.rank() == 0
        optimiser = optim.optimizer(recipe.optim.name, job.method, **recipe.optim.options)
        self.rates = [group["lr"] for group in optimiser.param_groups]
        self.schedule = optim.schedule(
            recipe.schedule.name,
            total_steps=job.total_steps,
            steps_per_epoch=job.steps_per_epoch,
            **recipe.schedule.options,
        )
        precision = Precision(recipe.train.precision, job.device)
        self.state = State(job.method, optimiser, precision, Patience(recipe.train.patience))
        self.data = identity(job.train)[:16]
        self.offset, self.lines = 0, None
        self.started = False
        # Rank 0's checkpoint, or its first weights, are everyone's: others may have no such folder.
        saved = distributed.share(self._saved() if self.main else None)
        if saved is not None:
            self.offset, self.lines = self.state.restore(saved), log_of(saved)
            if recipe.train.patience is not None and self.state.patience.best_step and self.main:
                checkpoint.load_best(
                    folder.best_checkpoint, recipe.hash
                )  # at the end it will be needed: better to know now
        elif distributed.active():
            job.method.load_state_dict(distributed.share(job.method.state_dict()))
        self.watch = Watch(job, recipe.run.monitors) if self.main and recipe.run.monitor_every != 0 else None
        self.validation = None if job.validation is None else Validation(job)
        self.fit = None if recipe.train.fit_every is None else Fit(job)
        if recipe.run.compile:
            job.method.encoder.compile()

    def _saved(self) -> dict[str, Any] | None:
        why = functools.partial(unfit, recipe_hash=self.job.recipe.hash, data=self.data)
        return checkpoint.newest(self.folder.last_checkpoint, self.folder.previous_checkpoint, why)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.state.step >= self.job.total_steps or self.state.stopped_early

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Trains to the end; `Stopped` if a signal asked, after saving.

        ``on_start`` is called when everything is open and nothing is left that could refuse the run; from then on
        `started` is true.
        """
        loggers = self._loggers() if self.main and not self.finished else []
        metrics = None
        try:
            metrics = MetricsLog(self.folder.metrics_file, self.offset, self.lines) if self.main else None
            self.started = True
            on_start()
            if not self.finished:
                self._steps(metrics, loggers)
        finally:
            for logger in loggers:
                logger.close()
            if metrics is not None:
                metrics.close()

    def _steps(self, metrics: MetricsLog | None, loggers: list[Any]) -> None:
        recipe, state = self.job.recipe, self.state
        progress = Progress(
            self.job.total_steps,
            start_step=state.step,
            images_per_step=recipe.train.batch_size,
            description=recipe.name,
            quiet=not (recipe.run.progress and self.main),
            steps_per_epoch=self.job.steps_per_epoch,
        )
        self.saved_at = time.monotonic()
        clock = _Clock(recipe.train.batch_size)
        self.job.method.train()
        with listening() as asked, progress:
            reading = clock.waiting(batches(self.job.loader(), state.step, self.job.total_steps))
            for views in prepared(self.job, reading):
                loss = self._step(views)
                clock.tick()
                with progress.pause(state.step):
                    lines = self._records(loss, clock)
                    for line in lines:
                        self._log(line, metrics, loggers)
                    if any("validation" in line for line in lines):
                        self.after_validation(metrics)
                progress.update(state.step, loss, self.standing, self.rates[0] * self.factor)
                if distributed.any_rank(asked.signum is not None):
                    self.save(metrics)
                    raise Stopped(asked.signum or 15, state.step)
                if self._is_time_to_save():
                    with progress.pause(state.step):
                        self.save(metrics)
                if state.stopped_early:
                    progress.note(state.why_stopped())
                    break
        self.save(metrics)

    def after_validation(self, metrics: MetricsLog | None) -> None:
        """Called when a validation is written; a subclass that gives up here calls `save` and raises."""

    # ---------------------------------------------------------------------------------------- a step and its log

    def _step(self, views: Views) -> torch.Tensor:
        job, state = self.job, self.state
        self.factor = self.schedule(state.step)
        for group, rate in zip(state.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.factor
        state.optimiser.zero_grad(set_to_none=True)
        loss = backward(job.method, views(), pieces=job.pieces(), precision=state.precision, rank=distributed.rank())
        if job.device.type == "cpu" or self._logs(state.step + 1):
            self._check(float(loss))
        distributed.average_gradients(job.method.parameters())
        state.precision.step(state.optimiser)
        job.method.after_step()
        state.step += 1
        return loss

    def _check(self, value: float) -> None:
        if value - value != 0:  # infinite, or no number
            temperature = getattr(self.job.method.loss, "temperature", None)
            check_finite(
                value,
                step=self.state.step + 1,
                lr=self.rates[0] * self.factor,
                temperature=None if temperature is None else float(temperature),
                scalars=self.job.method.report(),
            )

    standing: Any = None

    def _records(self, loss: torch.Tensor, clock: _Clock) -> list[dict[str, Any]]:
        """The lines that this step adds to the log."""
        job, state = self.job, self.state
        sums, value = state.sums, float(loss) if job.device.type == "cpu" else loss.detach()
        sums["loss"] = sums.get("loss", 0.0) + value  # type: ignore[assignment]
        sums["steps"] = sums.get("steps", 0) + 1
        lines: list[dict[str, Any]] = []
        at = {"step": state.step, "epoch": state.step / job.steps_per_epoch}
        if self._logs(state.step):
            mean = float(sums["loss"]) / sums["steps"]
            self.standing = job.method.standing(mean)
            line: dict[str, Any] = {**at, "loss": mean, "lr": self.rates[0] * self.factor}
            if self.standing is not None:
                line |= {"chance": self.standing.chance, "bound": self.standing.bound}
            lines.append({**line, **job.method.report(), **clock.read()})
            sums.clear()
        if self.watch is not None and self._every(job.recipe.run.monitor_every):
            lines.append({**at, **self.watch()})
        if self.validation is not None and self._validates():
            score = distributed.of_first(self.validation() if self.main else 0.0)
            better = state.patience.better(score, state.step)
            if better and job.recipe.train.patience is not None and self.main:
                best = {"hash": job.recipe.hash, "step": state.step, "method": job.method.state_dict()}
                checkpoint.save(self.folder.best_checkpoint, best)
            state.stopped_early = state.patience.over
            lines.append({**at, "validation": score, "best": state.patience.best})
        if self.fit is not None and self._every(job.recipe.train.fit_every):
            found = self.fit() if self.main else {}
            share = distributed.of_first(found.get("fitted", 0.0))
            if share == 1.0:
                state.fitted_at, state.stopped_early = state.step, True
            lines.append({**at, **found, "fitted": share})
        return lines

    def _log(self, line: dict[str, Any], metrics: MetricsLog | None, loggers: list[Any]) -> None:
        if metrics is None:
            return
        metrics.append({**line, "time": round(time.time(), 3)})
        values = {key: value for key, value in line.items() if key not in ("step", "epoch") and value is not None}
        for logger in loggers:
            logger.log(line["step"], values)

    # ---------------------------------------------------------------------------------------- when

    def _logs(self, step: int) -> bool:
        return step % self.job.recipe.run.log_every == 0 or step == self.job.total_steps

    def _every(self, steps: int | None) -> bool:
        """Whether it is time, by an interval of steps, or once an epoch and at the end."""
        return self.state.step % (steps or self.job.steps_per_epoch) == 0 or self.state.step == self.job.total_steps

    def _validates(self) -> bool:
        return self._every(self.job.recipe.train.validate_every * self.job.steps_per_epoch)

    def _is_time_to_save(self) -> bool:
        every = self.job.recipe.run.checkpoint_every
        if every is not None:
            return self.state.step % every == 0
        return self._every(None) and time.monotonic() - self.saved_at > SECONDS

    def save(self, metrics: MetricsLog | None) -> None:
        """Writes the checkpoint, on the first rank."""
        if metrics is not None:
            state = self.state
            state.sums = {key: float(value) for key, value in state.sums.items()}
            self._check(state.sums.get("loss", 0.0))
            captured = state.capture(self.job.recipe.hash, self.data, metrics.sync(), metrics.packed())
            checkpoint.save(self.folder.last_checkpoint, captured, previous=self.folder.previous_checkpoint)
            self.folder.note("training", step=state.step, total_steps=self.job.total_steps)
        self.saved_at = time.monotonic()

    def _loggers(self) -> list[Any]:
        recipe = self.job.recipe
        return open_loggers(
            recipe.run.loggers,
            folder=self.folder.path,
            name=recipe.folder,
            recipe=recipe.model_dump(mode="json"),
            resume_step=self.state.step,
        )


class _Clock:
    """Images a second since it was last read, and the share of that time spent waiting for batches.

    On a GPU, whose work goes on meanwhile, the share is an upper limit of what faster reading would save.
    """

    def __init__(self, images: int) -> None:
        self.images, self.steps, self.waited, self.since = images, 0, 0.0, time.monotonic()

    def waiting(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches; the time until each is there counts as waited."""
        while True:
            asked = time.monotonic()
            batch = next(batches, None)
            self.waited += time.monotonic() - asked
            if batch is None:
                return
            yield batch

    def tick(self) -> None:
        self.steps += 1

    def read(self) -> dict[str, float]:
        now = time.monotonic()
        passed = max(now - self.since, 1e-9)
        told = {
            "images_per_second": round(self.steps * self.images / passed, 1),
            "waiting": round(self.waited / passed, 4),
        }
        self.steps, self.waited, self.since = 0, 0.0, now
        return told


def batches(loader: Loader, start: int, end: int) -> Iterator[Batch]:
    """The batches of steps ``start`` … ``end`` − 1 of a run, epoch after epoch."""
    step = start
    while step < end:
        for batch in loader.epoch(step // len(loader), start=step % len(loader)):
            yield batch
            step += 1
            if step >= end:
                return
