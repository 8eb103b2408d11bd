"""The main job: a recipe is trained, evaluated, analysed, and leaves its folder.

The same recipe again is already done, or goes on where it stopped; another seed or temperature is another folder.
Started by torchrun, every process runs this and they are as one; the files are rank 0's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from kontrast import augment, distributed, models
from kontrast.data import DataSet
from kontrast.evaluate import Result, Subject, baselines, evaluate
from kontrast.evaluate.features import fraction_of
from kontrast.files import RUN_AGAIN, expanded, read_json, write_json
from kontrast.recipe import Recipe
from kontrast.train import checkpoint
from kontrast.train.analysis import analyse
from kontrast.train.export import export, rebuild
from kontrast.train.folder import RunFolder, digest, machine
from kontrast.train.job import Job, load_data, make_job, view_size
from kontrast.train.loop import Training
from kontrast.train.memory import keep_freed_memory
from kontrast.train.mending import damaged
from kontrast.train.metrics import read_metrics
from kontrast.train.progress import Lasting
from kontrast.train.resolving import resolve
from kontrast.train.stopping import Stopped


@dataclass(frozen=True)
class Run:
    """A run by its folder: what it was, what came of it."""

    path: Path

    @property
    def recipe(self) -> Recipe:
        """What it was made from."""
        return Recipe.read(self.path / "recipe.yaml")

    @property
    def status(self) -> str | None:
        """training, evaluating, done, interrupted or failed."""
        return RunFolder(self.path).status

    @property
    def result(self) -> dict[str, Any]:
        """result.json."""
        file = RunFolder(self.path).result
        if not file.exists():
            raise ValueError(f"{self.path} has no result yet (status: {self.status}); run its recipe to the end")
        return read_json(file, RUN_AGAIN)

    def value(self, protocol: str) -> float:
        """The accuracy by a protocol's name."""
        for record in self.result["results"]:
            if record["name"] == protocol:
                return float(record["value"])
        known = ", ".join(record["name"] for record in self.result["results"])
        raise ValueError(f"this run was not evaluated by {protocol!r}; it has {known or 'none'}")

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        return read_metrics(RunFolder(self.path).metrics)

    def encoder(self) -> models.Encoder:
        """The trained encoder, in eval mode."""
        return rebuild(self.path)


def load(run: str | os.PathLike[str] | Run) -> models.Encoder:
    """The encoder of a finished run, in eval mode, on the CPU."""
    return rebuild(run.path if isinstance(run, Run) else expanded(run))


def run_recipe(recipe: Recipe) -> Run:
    """Trains, evaluates and analyses a recipe; what was done before is not done again."""
    recipe = resolve(recipe)
    folder = RunFolder.of(recipe)
    folder.check(recipe)
    if folder.status == "done" and not damaged(folder):
        return Run(folder.path)
    if recipe.run.threads is not None:
        torch.set_num_threads(recipe.run.threads)
    with processes(recipe.run.device) as device:
        if device.type == "cpu" and recipe.run.keep_memory:
            keep_freed_memory()
        made = folder.begin(recipe) if distributed.rank() == 0 else []
        if distributed.active():
            dist.barrier()  # nobody looks for a checkpoint before the folder is there
        with folder.alone():
            # Another may have finished or mended it just before we were alone.
            status = distributed.share(folder.status)
            if status != "done" or damaged(folder, tell=False):
                try:
                    _run(recipe, folder, device)
                except BaseException:
                    folder.discard(made)  # of a run that was refused before its first step
                    raise
        distributed.wait_for_all()  # who leaves early may end the launcher's job while rank 0 still evaluates
    return Run(folder.path)


def _run(recipe: Recipe, folder: RunFolder, device: torch.device) -> None:
    """Trains, evaluates and analyses; run.json is written once everything is made and the first step may be taken.

    So a run that is refused (its data, batch size, encoder … do not go together) leaves a folder as it was.
    """
    began, clock = time.strftime("%Y-%m-%dT%H:%M:%S%z"), time.monotonic()
    first = {} if folder.read() else {"started": began}
    about = {"name": recipe.name, "hash": recipe.hash, "seed": recipe.seed, "error": None}
    about["data_file"] = digest(recipe.data.name)
    before = float(folder.read().get("seconds", 0.0))
    job = make_job(recipe, device)
    training = Training(job, folder)

    def at_work() -> float:
        return round(before + time.monotonic() - clock, 1)

    def note_start() -> None:
        if distributed.rank() == 0:
            folder.keep_recipe(recipe)
        folder.note("training", **about, **first, **machine(device))

    try:
        training.run(note_start)
        if distributed.rank() == 0:
            folder.note("evaluating", step=training.state.step)
            finish(job, folder, training)
            checkpoint.keep_only(folder.last, folder.previous)
            finished = time.strftime("%Y-%m-%dT%H:%M:%S%z")
            folder.note("done", finished=finished, seconds=at_work(), files=folder.digests())
    except (Stopped, KeyboardInterrupt):
        if training.started:
            folder.note("interrupted", seconds=at_work())
        raise
    except Exception as error:
        with suppress(
            OSError
        ):  # on a full disk there is no room for the note either, and its error would hide this one
            if training.started:
                folder.note("failed", error=f"{type(error).__name__}: {error}", seconds=at_work())
        raise


def finish(job: Job, folder: RunFolder, training: Training) -> None:
    """Evaluation, analysis and export of what was trained; of the best in validation, if that was asked for."""
    if job.recipe.train.patience is not None and training.state.patience.best_step:
        best = checkpoint.load_best(folder.best, job.recipe.hash, training.state.patience.best_step)
        job.method.load_state_dict(best["method"])
        used = f"best validation, step {best['step']}"
    else:
        used = f"last, step {training.state.step}"
    export(job, folder)  # first: whatever happens in the evaluation, the encoder is there
    results, subject = evaluated(job)
    measured = analyse(job, folder, subject, results)
    record = {
        "recipe": job.recipe.name,
        "hash": job.recipe.hash,
        "seed": job.recipe.seed,
        "weights": used,
        "results": [{**result.record(), "seeds": [job.recipe.seed]} for result in results],
        "geometry": measured,
    }
    if job.recipe.train.fit_every is not None:
        record["fitted_at"] = training.state.fitted_at  # None: censored, the steps did not suffice
        record["steps"] = training.state.step
    if not results:
        record["note"] = "not evaluated: " + (_why_not(job) or "no protocols were asked for")
    write_json(folder.result, record)


def evaluated(job: Job) -> tuple[list[Result], Subject | None]:
    """The protocols of the recipe on the encoder, and on raw pixels if asked for; nothing without labels or a test."""
    if _why_not(job):
        return [], None
    subject = _subject(job.recipe, job.method.encoder, job.data, job.size, job.device)
    told = _Told(job.recipe.name, quiet=not job.recipe.run.progress)
    results = []
    for protocol in job.recipe.evaluate.protocols:
        told.say(f"evaluating, {protocol.name}")
        options = {**protocol_defaults(job.recipe, protocol.name), **protocol.options}
        results.append(evaluate(subject, protocol.name, seed=job.recipe.seed, progress=told, **options))
    if job.recipe.evaluate.baselines:
        size = None if fraction_of(job.data) is None else job.size
        results += baselines(job.data, seed=job.recipe.seed, size=size, workers=job.recipe.run.workers)
    return results, subject


def protocol_defaults(recipe: Recipe, protocol: str) -> dict[str, Any]:
    """What a protocol must know of the method: Graf et al.'s classifiers see unit features only where the loss did."""
    unnormalised = recipe.method.name in ("ce", "ce-l2", "ce-fix")
    return {"normalize": False} if unnormalised and protocol.startswith("graf-") else {}


class _Told:
    """Tells of an evaluation, a line now and then."""

    def __init__(self, name: str, *, quiet: bool, pause: float = 10.0) -> None:
        self.name, self.pause, self.last = name, pause, time.monotonic()
        self.console = Lasting(quiet=quiet)

    def say(self, text: str) -> None:
        self.console.print(f"{self.name}: {text}", highlight=False, markup=False)

    def __call__(self, what: str, done: int, of: int) -> None:
        if time.monotonic() - self.last > self.pause:
            self.last = time.monotonic()
            self.say(f"evaluating, {what} {done}/{of}")


def subject_of(run: str | os.PathLike[str] | Run, *, device: str = "auto") -> Subject:
    """A finished run's encoder and data, to be evaluated by further protocols; its features are kept in the folder."""
    path = run.path if isinstance(run, Run) else expanded(run)
    encoder, recipe = rebuild(path), Run(path).recipe
    began_in = RunFolder(path).read().get("machine", {}).get("folder")
    if began_in and not Path(recipe.data.name).exists() and (Path(began_in) / recipe.data.name).exists():
        recipe = recipe.override({"data.name": str(Path(began_in) / recipe.data.name)})  # a path from where it was run
    RunFolder(path).check_data(recipe)
    data, train, _ = load_data(recipe)
    return _subject(
        recipe, encoder, data, view_size(recipe, data, train), pick_device(device), cache=path / "features.npz"
    )


def _subject(
    recipe: Recipe,
    encoder: nn.Module,
    data: DataSet,
    size: int | None,
    device: torch.device,
    *,
    cache: Path | None = None,
) -> Subject:
    view = recipe.augment.views[-1]  # momentum methods: what the online network saw
    return Subject.from_encoder(
        encoder,
        data,
        device=device,
        workers=recipe.run.workers,
        size=None if fraction_of(data) is None else size,
        cache=cache,
        augmentation=augment.preset(view.name, size=size, **view.options),
    )


def _why_not(job: Job) -> str:
    if job.data.train.labels is None:
        return "the training rows have no labels"
    if job.data.test is None or job.data.test.labels is None:
        return "there is no test split with labels"
    return ""


# ------------------------------------------------------------------------------------------------ processes and devices


@contextmanager
def processes(device: str) -> Iterator[torch.device]:
    """The device to compute on; under torchrun also the group of processes, made and taken down."""
    started = distributed.launched()[1] > 1 and not distributed.active()
    chosen = pick_device(device)
    if started:
        dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo")
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    try:
        yield chosen
    finally:
        if started:
            dist.destroy_process_group()


def pick_device(name: str) -> torch.device:
    """``auto`` is a GPU if there is one (each process its own), else the CPU.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"run.device is {name!r}: {reason}. Expected auto, cpu, cuda, cuda:1 or mps") from error
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device
