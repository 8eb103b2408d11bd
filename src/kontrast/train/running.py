"""A run, from a resolved recipe to a finished folder: the steps that `kontrast.pipeline` takes in order.

    session = Session(recipe)          the folder of the recipe; is there anything to do?
    with session.open():               processes, device, the folder and its lock
        session.train()                metrics.jsonl, checkpoints, the encoder
        session.evaluate()             every protocol of the recipe
        session.analyse()              analysis.npz, analysis.json
        session.finish()               result.json, and the digests of all files

The same recipe again is already done, or resumes where it stopped; another seed or temperature is another folder.
Started by torchrun, every process runs this and all train together; the first one evaluates, and writes the files.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import torch
import torch.distributed as dist

import kontrast
from kontrast import distributed
from kontrast.data import DataSet, check_in_reach
from kontrast.evaluate import Result, Subject
from kontrast.recipe import Recipe
from kontrast.registry import FAMILIES
from kontrast.runs import Run, data_digest, timestamp
from kontrast.train import checkpoint, evaluation, micro_batch, start
from kontrast.train.analysis import analyse
from kontrast.train.averaging import warn_if_too_slow
from kontrast.train.encoder_files import export
from kontrast.train.job import Job, describe_enlarging, keep_memory, make_job, warn_of_size
from kontrast.train.loop import Training
from kontrast.train.machine import machine, processes
from kontrast.train.memory import release_freed_memory
from kontrast.train.stopping import Stopped


class Session:
    """One pass over a run: what is left to do of a recipe.

    Args:
        recipe: The resolved recipe (`kontrast.train.resolve`).
        data: The data set of a recipe whose data came from Python; both come from `kontrast.data.bind`.

    Attributes:
        run: The run folder.
        recipe: The recipe that the folder holds: with ``train.micro_batch=auto`` the value that the run began with.
        has_work: Whether there is anything left to do. It is certain once the session is open: until then another
            process may finish the run.
        has_failed: Whether the run failed in this session, after its first step.

    Raises:
        ValueError: The folder holds another recipe's run, or the data have changed.
    """

    def __init__(self, recipe: Recipe, data: DataSet | None = None) -> None:
        self.requested, self.recipe = recipe, micro_batch.with_size_of_run(recipe)
        self.data = data
        self.run = Run.of(self.recipe)
        self.run.check(self.recipe)
        warn_of_changed_parts(self.run, self.recipe)
        self.has_work = not self.is_done(self.run.status)
        self.has_failed = False
        self.job: Job | None = None
        self.training: Training | None = None
        self.results: list[Result] = []
        self.subject: Subject | None = None
        self._record: dict[str, Any] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep the folder to ourselves; if the work inside fails, say so in run.json.

        A run that is refused before its first step leaves no trace.
        """
        if not self.has_work:
            yield
            return
        self._check_before_the_folder()
        with processes(self.recipe.run.device) as self.device:
            self._settle_micro_batch()
            run, is_first = self.run, distributed.rank() == 0
            created = run.begin(self.recipe) if is_first else []
            if distributed.active():
                dist.barrier()  # nobody looks for a checkpoint before the folder is there
            with run.lock() if is_first else nullcontext():
                # Another process may have finished or repaired the run just before.
                status = distributed.share(run.status)
                self.has_work = not self.is_done(status, verbose=False)
                if not self.has_work:
                    self._note_request()
                try:
                    yield
                except BaseException as error:
                    if self.training is not None and self.training.started and is_first:
                        self._note_failure(error)
                    run.discard(created)
                    raise
            distributed.wait_for_all()  # a process that leaves early may end the launcher's job while rank 0 evaluates

    # --------------------------------------------------------------------------------------------------- the four steps

    def train(self) -> None:
        """Train to the end, from the last checkpoint if there is one, and export the encoder.

        run.json is written when everything is made and the first step may be taken.
        """
        self._start_time, self._start = timestamp(), time.monotonic()
        self._earlier, digest = self.run.state, data_digest(self.recipe)
        job = self.job = self.job or self.make_job()
        warn_of_size(job)
        if self.recipe.train.average is not None and distributed.rank() == 0:
            warn_if_too_slow(self.recipe.train.average, job.total_steps)
        micro_batch.warn_if_too_large(job)
        release_freed_memory()
        keep_memory(job)
        self.training = self.make_training(job)
        self.training.run(lambda: self._note_start(digest))
        if distributed.rank() == 0:
            self.run.note("evaluating", step=self.training.state.step)
            self.weights = self._take_best_weights()
            release_freed_memory()
            self.export_encoder(job)  # first: whatever happens in the evaluation, the encoder is there

    def evaluate(self) -> None:
        """Evaluate the encoder by the protocols of the recipe; its head and its pretrained start too, if asked for."""
        if distributed.rank() != 0:
            return
        job = self._trained_job
        self.results, self.subject = evaluation.evaluate_job(job)
        comparison = evaluation.evaluate_start(job, self.subject, self.results)
        if comparison is not None:
            self._record["start"] = comparison
        if job.recipe.evaluate.head:
            self._record["head"] = self._records(evaluation.evaluate_head(job))

    def analyse(self) -> None:
        """Write what a report draws: features, neighbours, images, geometry."""
        if distributed.rank() == 0:
            self._record["geometry"] = analyse(self._trained_job, self.run, self.subject, self.results)

    def finish(self) -> None:
        """Write result.json, and note the run as done with the digests of its files."""
        if distributed.rank() != 0:
            return
        run = self.run
        run.write_result({**self._summary(), **self._record})
        checkpoint.keep_only(run.last_checkpoint, run.previous_checkpoint)
        run.note("done", finished=timestamp(), seconds=self._seconds(), files=run.digests())

    # ------------------------------------------------------------- what trials of tuning and adaptations change
    def is_done(self, status: str | None, *, verbose: bool = True) -> bool:
        """Whether the folder holds all that this session would write, given the status of its run."""
        if status == "done" and verify_finished_run(self.run, verbose=verbose):
            return True
        if self.run.state.adapt is not None:
            raise ValueError(
                f"{self.run.path} is an unfinished run of `kontrast adapt`, which alone can judge it. Use the command "
                f"that began it: {' '.join(map(str, self.run.state.command)) or 'kontrast adapt'}. Or --out for a run "
                "without a verdict"
            )
        return False

    def make_job(self) -> Job:
        """Data, views, networks and batches of the recipe."""
        return make_job(self.recipe, self.device, self.data)

    def make_training(self, job: Job) -> Training:
        """The training loop of the job."""
        return Training(job, self.run)

    def export_encoder(self, job: Job) -> None:
        """Write encoder.safetensors and model.json."""
        export(job, self.run)

    # -------------------------------------------------------------------------------------------- before the first step

    def _check_before_the_folder(self) -> None:
        """Refuse what can be refused before the folder is created and the data are read."""
        start.check_start(self.recipe)
        if self.data is None:
            check_in_reach(self.recipe)
        if self.recipe.run.threads is not None:
            torch.set_num_threads(self.recipe.run.threads)

    def _settle_micro_batch(self) -> None:
        if self.requested.train.micro_batch != micro_batch.AUTO:
            return
        self.recipe = distributed.share(self.recipe)  # rank 0 has the run folders, others may not
        if self.recipe.train.micro_batch == micro_batch.AUTO:
            self.job = micro_batch.choose_size(self.make_job())
            self.recipe = self.job.recipe
        self.run = Run.of(self.recipe)
        self.run.check(self.recipe)

    def _note_request(self) -> None:
        """Note in a finished run that ``train.micro_batch=auto`` leads to it."""
        mark = micro_batch.request_record(self.requested, self.recipe)
        if mark and distributed.rank() == 0 and self.run.state.micro_batch != mark["micro_batch"]:
            self.run.note("done", **mark)

    def _note_start(self, digest: str | None) -> None:
        job, recipe, run = self._trained_job, self.recipe, self.run
        if distributed.rank() != 0:
            return
        run.restore_recipe(recipe)
        about = {"name": recipe.name, "hash": recipe.hash, "seed": recipe.seed, "error": None, "data_file": digest}
        begun = {"started": self._start_time, "sources": source_digests(recipe)}
        first = {} if self._earlier.status else begun
        mark = micro_batch.request_record(self.requested, recipe)
        run.note("training", **about, **first, **mark, **machine(job.device))
        if job.start is not None and job.start.loaded is not None:
            evaluation.announce(recipe, start.describe_start(job.start) or "")
            preprocessing = job.preprocessing
            if preprocessing is not None:
                evaluation.announce(recipe, f"images are read as {preprocessing}{describe_enlarging(job)}")
            used = None if preprocessing is None else preprocessing.record()
            run.note("training", pretrained={**job.start.loaded.record(), "norm": job.start.norm, "input": used})

    # ---------------------------------------------------------------------------------------------- after the last step

    @property
    def _trained_job(self) -> Job:
        assert self.job is not None
        return self.job

    def _take_best_weights(self) -> str:
        """Load the weights that were best in validation, or the average; which weights those are."""
        job, training = self._trained_job, self.training
        assert training is not None
        train, average = job.recipe.train, training.state.average
        of = "" if average is None else f"average of momentum {train.average:g}, "
        if train.patience is None or not training.state.patience.best_step:
            if average is not None:
                average.take()
            return f"{of or 'last, '}step {training.state.step}"
        best = checkpoint.load_best(self.run.best_checkpoint, job.recipe.hash, training.state.patience.best_step)
        job.method.load_state_dict(best["method"])  # those of the average, where there is one
        return f"{of}best validation, step {best['step']}"

    def _summary(self) -> dict[str, Any]:
        job, recipe, training = self._trained_job, self.recipe, self.training
        assert training is not None
        summary: dict[str, Any] = {
            "recipe": recipe.name,
            "hash": recipe.hash,
            "seed": recipe.seed,
            "weights": self.weights,
            "results": self._records(self.results),
            "geometry": None,
        }
        if recipe.train.fit_every is not None:
            summary["fitted_at"] = training.state.fitted_at  # None: censored, the steps did not suffice
            summary["steps"] = training.state.step
        if not self.results:
            reason = evaluation.reason_not_to_evaluate(job) or "no protocols were asked for"
            summary["note"] = f"not evaluated: {reason}"
        return summary

    def _records(self, results: list[Result]) -> list[dict[str, Any]]:
        return [{**result.record(), "seeds": [self.recipe.seed]} for result in results]

    def _seconds(self) -> float:
        return round((self._earlier.seconds or 0.0) + time.monotonic() - self._start, 1)

    def _note_failure(self, error: BaseException) -> None:
        if isinstance(error, Stopped | KeyboardInterrupt):
            self.run.note("interrupted", seconds=self._seconds())
        elif isinstance(error, Exception):
            self.has_failed = True
            with suppress(OSError):  # on a full disk the note fails too, and its error would hide this one
                self.run.note("failed", error=f"{type(error).__name__}: {error}", seconds=self._seconds())


def source_digests(recipe: Recipe) -> dict[str, str]:
    """Digests of the source files of a recipe's method and of the loss that it names.

    >>> sorted(source_digests(Recipe.of({"method": {"name": "simclr", "loss": "supcon"}, "train": {"epochs": 1}})))
    ['loss supcon', 'method simclr']
    """
    names = {"method": recipe.method.name, "loss": recipe.method.options.get("loss")}
    parts = {kind: name for kind, name in names.items() if isinstance(name, str) and name in FAMILIES[kind]}
    return {
        f"{kind} {name}": hashlib.sha256(FAMILIES[kind].file(name).read_bytes()).hexdigest()[:16]
        for kind, name in parts.items()
    }


def warn_of_changed_parts(run: Run, recipe: Recipe) -> None:
    """Warn if the file of the method or the loss is another than when the run began.

    The recipe's hash, and so the folder, does not depend on code. Of another version of kontrast there is no warning:
    run.json has the version.
    """
    if not run.status or run.state.versions.get("kontrast") != kontrast.__version__:
        return
    now = source_digests(recipe)
    changed = [part for part, digest in run.state.sources.items() if now.get(part, digest) != digest]
    if changed:
        have = "has" if len(changed) == 1 else "have"
        warnings.warn(
            f"{' and '.join(changed)} {have} changed since this run began; give another --out, or remove {run.path}, "
            "to train again",
            stacklevel=2,
        )


def verify_finished_run(run: Run, *, verbose: bool = True) -> bool:
    """Whether the files of a finished run are what it wrote (run.json has their digests).

    Files that are not are made again from its last checkpoint, with the same numbers.

    Args:
        run: A run that is done.
        verbose: Print a line about the files that are made again.

    Raises:
        ValueError: Files have changed, and there is no checkpoint, or several processes run.
    """
    names = run.changed_files()
    if not names:
        return True
    problem = f"{', '.join(names)} of {run.path} {'is' if len(names) == 1 else 'are'} not what the run wrote"
    if not run.last_checkpoint.exists():
        raise ValueError(
            f"{problem}, and there is no checkpoint to make it from; put back a copy, or remove the folder"
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(f"{problem}; run the recipe in one process, without torchrun, which makes it again")
    if verbose:
        print(f"{problem}; made again from the last checkpoint", file=sys.stderr)
    return False
