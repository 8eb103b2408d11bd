"""The training loop: one, for every method, on one process or many.

    for every step k of the run:
        batch k, augmented                           a function of (seed, epoch, k)
        the gradient of its loss                     at once or in pieces (`gradients`), averaged over the ranks
        the optimiser's step at lr·schedule(k)       of what learns at this step (`controls`)
        what the method does after it                momentum, queue, bank
        sometimes: a line of the log, monitors, validation, a checkpoint

Between two steps everything that counts is in `State`, so a run may end anywhere and resume there.

The views of the next batch are made while the step of this one computes (`views_ahead`):

    thread of the loop:   step k          step k + 1      step k + 2
    second thread:        views of k + 1  views of k + 2  views of k + 3

Torch's threads are not busy all the time: between two parallel loops of a step one core works and the others wait. The
second thread, which has one core and starts no threads of its own, takes that time. It costs the memory of one more
batch of views. Views depend on seed, epoch and step alone (`Job.augment`), and their bits not on the number of
threads, so a run is the same with and without.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import torch

from kontrast import distributed, optim
from kontrast.data import Batch, DataSet, Loader
from kontrast.data.identity import identity
from kontrast.methods import ViewBatch
from kontrast.recipe import Recipe
from kontrast.runs import MetricsLog, Run
from kontrast.train import checkpoint, controls
from kontrast.train.averaging import Average
from kontrast.train.checkpoint import State, log_of, mismatch
from kontrast.train.fitting import Fit
from kontrast.train.gradients import Precision, backward
from kontrast.train.job import Job, has_small_inputs, make_job
from kontrast.train.loggers import Logger, open_loggers
from kontrast.train.machine import pick_device
from kontrast.train.progress import Progress
from kontrast.train.stopping import Patience, Stopped, check_finite, listening
from kontrast.train.watching import Validation, Watch

SECONDS = 15.0  # least time between the checkpoints at the ends of epochs, if no interval is asked for
TIMED_STEPS, TIMED_SECONDS = 5, 20.0  # of `seconds_to_train`: at most so many steps after the first, about so long
Views = Callable[[], ViewBatch]


class Training:
    """A job in its run folder: `run` trains from the last checkpoint to the end.

    Args:
        job: What `make_job` gives.
        folder: The run folder. With a checkpoint in it the run resumes there.

    Raises:
        ValueError: The checkpoint is damaged, or of another recipe or other data.
    """

    def __init__(self, job: Job, folder: Run) -> None:
        self.job, self.folder = job, folder
        recipe = job.recipe
        self.main = distributed.rank() == 0
        optimiser = optim.optimizer(recipe.optim.name, job.method, **recipe.optim.options)
        self.rates = [group["lr"] for group in optimiser.param_groups]
        self.rate = float(recipe.optim.options["lr"])  # the base rate, of which others are fractions or multiples
        self.head_first = controls.head_first_steps(recipe.train, job.steps_per_epoch)
        self.encoder_rests = False
        self.schedule = optim.schedule(
            recipe.schedule.name,
            total_steps=job.total_steps,
            steps_per_epoch=job.steps_per_epoch,
            **recipe.schedule.options,
        )
        precision = Precision(recipe.train.precision, job.device)
        average = None if recipe.train.average is None else Average(job.method.online, recipe.train.average)
        self.state = State(job.method, optimiser, precision, Patience(recipe.train.patience), average=average)
        self.data = identity(job.train)[:16]
        self.offset, self.lines = 0, None
        self.started = False
        # Rank 0's checkpoint, or its first weights, are everyone's: others may have no such folder.
        state = distributed.share(self._load_checkpoint() if self.main else None)
        if state is not None:
            self.offset, self.lines = self.state.restore(state), log_of(state)
            if recipe.train.patience is not None and self.state.patience.best_step and self.main:
                checkpoint.load_best(folder.best_checkpoint, recipe.hash)  # the end needs it: an error comes now
        elif distributed.active():
            job.method.load_state_dict(distributed.share(job.method.state_dict()))
        self.gradient_norm: torch.Tensor | None = None  # of the last step, where gradients are clipped
        self.standing: Any = None  # where the loss stood at the last line of the log
        self.watch = Watch(job, recipe.run.monitors) if self.main and recipe.run.monitor_every != 0 else None
        self.validation = None if job.validation is None else Validation(job)
        self.fit = None if recipe.train.fit_every is None else Fit(job)
        if recipe.run.compile:
            job.method.encoder.compile()

    def _load_checkpoint(self) -> dict[str, Any] | None:
        why = functools.partial(mismatch, recipe_hash=self.job.recipe.hash, data=self.data)
        return checkpoint.newest(self.folder.last_checkpoint, self.folder.previous_checkpoint, why)

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.state.step >= self.job.total_steps or self.state.stopped_early

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Train to the end.

        Args:
            on_start: Called when everything is open and nothing is left that could refuse the run; from then on
                `started` is true.

        Raises:
            Stopped: A signal asked to stop; everything is saved.
            NonFiniteLoss: The loss is infinite or not a number.
        """
        loggers = self._loggers() if self.main and not self.is_finished else []
        metrics = None
        try:
            metrics = MetricsLog(self.folder.metrics_file, self.offset, self.lines) if self.main else None
            self.started = True
            on_start()
            if not self.is_finished:
                self._steps(metrics, loggers)
        finally:
            for logger in loggers:
                logger.close()
            if metrics is not None:
                metrics.close()

    def _steps(self, metrics: MetricsLog | None, loggers: list[Logger]) -> None:
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
        with listening() as signals, progress:
            reading = clock.waiting(batches(self.job.loader(), state.step, self.job.total_steps))
            for views in prepare_views(self.job, reading):
                loss = self._step(views)
                clock.tick()
                with progress.pause(state.step):
                    lines = self._records(loss, clock)
                    for line in lines:
                        self._log(line, metrics, loggers)
                    if any("validation" in line for line in lines):
                        self.after_validation(metrics)
                progress.update(state.step, loss, self.standing, self.rate * self.factor)
                if distributed.any_rank(signals.signum is not None):
                    self.save(metrics)
                    raise Stopped(signals.signum or 15, state.step)
                if self._is_time_to_save():
                    with progress.pause(state.step):
                        self.save(metrics)
                if (reason := self.reason_to_stop()) is not None:
                    state.stopped_early, state.reason = True, reason
                if state.stopped_early:
                    progress.note(state.why_stopped())
                    break
        self.save(metrics)

    def after_validation(self, metrics: MetricsLog | None) -> None:
        """Called after each validation is written; a subclass that stops the run here calls `save` and raises."""

    def reason_to_stop(self) -> str | None:
        """Called after each step: why a subclass ends the training here, in words; None to go on."""
        return None

    # ---------------------------------------------------------------------------------------- a step and its log

    def _step(self, views: Views) -> torch.Tensor:
        job, state = self.job, self.state
        self.factor = self.schedule(state.step)
        for group, rate in zip(state.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.factor
        state.optimiser.zero_grad(set_to_none=True)
        if self.encoder_rests != (state.step < self.head_first):
            self.encoder_rests = not self.encoder_rests
            controls.rest(job.method, self.encoder_rests)
        loss = backward(
            job.method, views(), pieces=job.micro_batches(), precision=state.precision, rank=distributed.rank()
        )
        if job.device.type == "cpu" or self._logs(state.step + 1):
            self._check(float(loss))
        distributed.average_gradients(job.method.parameters())
        if job.recipe.train.clip is not None:
            self.gradient_norm = state.precision.clip(state.optimiser, job.recipe.train.clip)
        state.precision.step(state.optimiser)
        job.method.after_step()
        if state.average is not None:
            state.average.update()
        state.step += 1
        return loss

    def _check(self, value: float) -> None:
        if value - value != 0:  # infinite, or not a number
            check_finite(
                value,
                step=self.state.step + 1,
                lr=self.rate * self.factor,
                temperature=self.job.method.temperature,
                scalars=self.job.method.report(),
            )

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
            line: dict[str, Any] = {**at, "loss": mean, "lr": self.rate * self.factor}
            if self.standing is not None:
                line |= {"chance": self.standing.chance, "bound": self.standing.bound}
            if self.gradient_norm is not None:  # before it was clipped; of the last step, as what the method reports
                line["gradient_norm"] = float(self.gradient_norm)
            lines.append({**line, **job.method.report(), **clock.read()})
            sums.clear()
        if self.watch is not None and self._every(job.recipe.run.monitor_every):
            lines.append({**at, **self.watch()})
        if self.validation is not None and self._validates():
            lines.append({**at, **self._validate(self.validation)})
        if self.fit is not None and self._every(job.recipe.train.fit_every):
            values = self.fit() if self.main else {}
            share = distributed.of_first(values.get("fitted", 0.0))
            if share == 1.0:
                state.fitted_at, state.stopped_early = state.step, True
            lines.append({**at, **values, "fitted": share})
        return lines

    def _validate(self, validation: Validation) -> dict[str, float]:
        """Validate the weights that the run would end with now; keep them if early stopping may come back to them."""
        job, state = self.job, self.state
        with nullcontext() if state.average is None else state.average.in_place():
            score = distributed.of_first(validation() if self.main else 0.0)
            better = state.patience.better(score, state.step)
            if better and job.recipe.train.patience is not None and self.main:
                best = {"hash": job.recipe.hash, "step": state.step, "method": job.method.state_dict()}
                checkpoint.save(self.folder.best_checkpoint, best)
        if state.step <= self.head_first:  # the encoder has not begun to learn: no reason to stop
            state.patience.waited = 0
        state.stopped_early = state.patience.over
        return {"validation": score, "best": state.patience.best}

    def _log(self, line: dict[str, Any], metrics: MetricsLog | None, loggers: list[Logger]) -> None:
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
        """Whether it is time, by an interval of steps; None is once an epoch and at the end."""
        return self.state.step % (steps or self.job.steps_per_epoch) == 0 or self.state.step == self.job.total_steps

    def _validates(self) -> bool:
        return self._every(self.job.recipe.train.validate_every * self.job.steps_per_epoch)

    def _is_time_to_save(self) -> bool:
        every = self.job.recipe.run.checkpoint_every
        if every is not None:
            return self.state.step % every == 0
        return self._every(None) and time.monotonic() - self.saved_at > SECONDS

    def save(self, metrics: MetricsLog | None) -> None:
        """Write the checkpoint, on the first rank."""
        if metrics is not None:
            state = self.state
            state.sums = {key: float(value) for key, value in state.sums.items()}
            self._check(state.sums.get("loss", 0.0))
            captured = state.capture(self.job.recipe.hash, self.data, metrics.sync(), metrics.packed())
            checkpoint.save(self.folder.last_checkpoint, captured, previous=self.folder.previous_checkpoint)
            self.folder.note("training", step=state.step, total_steps=self.job.total_steps)
        self.saved_at = time.monotonic()

    def _loggers(self) -> list[Logger]:
        recipe = self.job.recipe
        return open_loggers(
            recipe.run.loggers,
            folder=self.folder.path,
            name=recipe.folder,
            recipe=recipe.model_dump(mode="json"),
            resume_step=self.state.step,
        )


class _Clock:
    """Images a second since the last reading, and the share of that time spent waiting for batches.

    On a GPU, whose work goes on meanwhile, the share is an upper limit of what faster reading would save.
    """

    def __init__(self, images: int) -> None:
        self.images, self.steps, self.waiting_seconds, self.since = images, 0, 0.0, time.monotonic()

    def waiting(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches; the time until each is there counts as waiting."""
        while True:
            start = time.monotonic()
            batch = next(batches, None)
            self.waiting_seconds += time.monotonic() - start
            if batch is None:
                return
            yield batch

    def tick(self) -> None:
        self.steps += 1

    def read(self) -> dict[str, float]:
        now = time.monotonic()
        seconds = max(now - self.since, 1e-9)
        speed = {
            "images_per_second": round(self.steps * self.images / seconds, 1),
            "waiting": round(self.waiting_seconds / seconds, 4),
        }
        self.steps, self.waiting_seconds, self.since = 0, 0.0, now
        return speed


def batches(loader: Loader, start: int, end: int) -> Iterator[Batch]:
    """The batches of steps ``start`` … ``end`` − 1 of a run, epoch after epoch."""
    step = start
    while step < end:
        for batch in loader.epoch(step // len(loader), start=step % len(loader)):
            yield batch
            step += 1
            if step >= end:
                return


def prepare_views(job: Job, batches: Iterable[Batch]) -> Iterator[Views]:
    """For every batch a function that returns its views; a second thread makes them ahead of the step if that helps."""
    return (views_ahead if second_thread_helps(job) else views_now)(batches, job.augment)


def second_thread_helps(job: Job) -> bool:
    """Whether a second thread helps: on a CPU with several threads, for inputs in memory that are small.

    Files are decoded by processes of their own, and a step on large images is so long that views hardly count.
    """
    in_memory = job.train.inputs.shape is not None and job.loader().workers == 0
    return job.device.type == "cpu" and torch.get_num_threads() > 1 and in_memory and has_small_inputs(job)


def views_now(batches: Iterable[Batch], augment: Callable[[Batch], ViewBatch]) -> Iterator[Views]:
    """For every batch a function that makes its views when it is called."""
    for batch in batches:
        yield functools.partial(augment, batch)


def views_ahead(batches: Iterable[Batch], augment: Callable[[Batch], ViewBatch]) -> Iterator[Views]:
    """For every batch a function that waits for its views, which a second thread makes; an error there is raised here.

    >>> functions = views_ahead([1, 2, 3], lambda batch: 10 * batch)
    >>> [views() for views in functions]
    [10, 20, 30]
    """
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(1, "views", initializer=torch.set_num_threads, initargs=(1,)) as second:
        waiting: Views | None = None
        for batch in batches:
            views = second.submit(augment, batch).result
            if waiting is None:
                # The second thread has begun, so the number of threads that it set for itself is set; the default for
                # threads to come, which torch sets with it, is put back.
                second.submit(torch.get_num_threads).result()
                torch.set_num_threads(threads)
            else:
                yield waiting
            waiting = views
        if waiting is not None:
            yield waiting


def seconds_to_train(recipe: Recipe, data: DataSet | None = None) -> float:
    """Estimate how long the training of a recipe takes here, without its evaluation, from a few steps.

    Args:
        recipe: The resolved recipe. The first step is left out of the estimate.
        data: The data set, if it is loaded already.

    >>> from kontrast.train import resolve
    >>> small = {"data": {"name": "digits"}, "encoder": "mlp", "method": "supcon", "augment": ["none", "none"]}
    >>> seconds_to_train(resolve(Recipe.of({**small, "train": {"steps": 10, "batch_size": 32}}))) > 0
    True
    """
    job = _job_to_time(recipe, data)
    return job.total_steps * seconds_of_step(job)


def time_steps(recipe: Recipe, data: DataSet | None = None) -> tuple[float, int]:
    """Measure a step of a recipe here.

    Args:
        recipe: The resolved recipe, of `TIMED_STEPS` + 1 steps or more.
        data: Its data, if they are loaded already.

    Returns:
        The seconds of a step, and how many steps an epoch has.

    >>> from kontrast.train import resolve
    >>> small = {"data": {"name": "digits"}, "encoder": "mlp", "method": "supcon", "augment": ["none", "none"]}
    >>> time_steps(resolve(Recipe.of({**small, "train": {"steps": 10, "batch_size": 32}})))[1]
    44
    """
    job = _job_to_time(recipe, data)
    return seconds_of_step(job), job.steps_per_epoch


def _job_to_time(recipe: Recipe, data: DataSet | None = None) -> Job:
    if recipe.run.threads is not None:
        torch.set_num_threads(recipe.run.threads)
    brief = {"run.monitor_every": 0, "train.head_first": None}  # a few steps are no epoch of the head
    return make_job(recipe.override(brief), pick_device(recipe.run.device), data)


def seconds_of_step(job: Job) -> float:
    """The seconds of a step of a job, from a few of them; the first is left out if there are others."""
    job.method.train()
    with tempfile.TemporaryDirectory() as folder:
        training = Training(job, Run(folder))
        count, start = 0, time.monotonic()
        first = start
        for views in prepare_views(job, batches(job.loader(), 0, min(job.total_steps, TIMED_STEPS + 1))):
            training._step(views)
            count += 1
            now = time.monotonic()
            if count == 1:
                first = now
            if now - start > TIMED_SECONDS:
                break
        steps, seconds = (count - 1, now - first) if count > 1 else (1, first - start)
    return seconds / steps
