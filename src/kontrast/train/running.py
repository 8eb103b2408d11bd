"""The main job: a recipe is trained, evaluated, analysed, and leaves its folder.

The same recipe again is already done, or goes on where it stopped; another seed or temperature is another folder.
Started by torchrun, every process runs this and they are as one; the files are rank 0's.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from kontrast import augment, distributed, models
from kontrast.data import DataSet, bound, check_in_reach
from kontrast.evaluate import Result, Subject, affordable, baselines, evaluate
from kontrast.evaluate.features import fraction_of
from kontrast.recipe import Recipe
from kontrast.runs import Run, data_digest, timestamp
from kontrast.train import checkpoint, micro_batch
from kontrast.train.analysis import analyse
from kontrast.train.export import export, rebuild
from kontrast.train.job import Job, keep_memory, load_data, make_job, view_size, warn_of_size
from kontrast.train.loop import Training
from kontrast.train.machine import machine
from kontrast.train.memory import release_freed_memory
from kontrast.train.progress import Lasting
from kontrast.train.resolving import resolve
from kontrast.train.start import PROTOCOL, check_start, compare_with_start, describe_start
from kontrast.train.stopping import Stopped


def load(run: str | os.PathLike[str] | Run) -> models.Encoder:
    """The encoder of a finished run, in eval mode, on the CPU."""
    return rebuild(run if isinstance(run, Run) else Run(run))


def run_recipe(recipe: Recipe, given: DataSet | None = None) -> Run:
    """Trains, evaluates and analyses a recipe; what was done before is not done again.

    ``given`` is the data set of a recipe whose data came from Python: both are made by `kontrast.data.bound`.
    """
    return perform(recipe, given)[0]


def perform(recipe: Recipe, given: DataSet | None = None) -> tuple[Run, bool]:
    """`run_recipe`, and whether there was anything to do: False if the run was done already.

    That is only known once the folder is ours alone: another process may finish it at any time before.
    """
    asked = resolve(recipe)
    recipe = micro_batch.as_begun(asked)
    folder = Run.of(recipe)
    folder.check(recipe)
    if folder.status == "done" and verify_finished_run(folder):
        return folder, False
    # Before the folder is made and the data are read:
    check_start(recipe)
    if given is None:
        check_in_reach(recipe)
    if recipe.run.threads is not None:
        torch.set_num_threads(recipe.run.threads)
    with processes(recipe.run.device) as device:
        job = None
        if asked.train.micro_batch == micro_batch.AUTO:
            recipe = distributed.share(recipe)  # rank 0 has the run folders, others may not
            if recipe.train.micro_batch == micro_batch.AUTO:
                job = micro_batch.settled(make_job(recipe, device, given))
                recipe = job.recipe
            folder = Run.of(recipe)
            folder.check(recipe)
        mark = micro_batch.mark(asked, recipe)
        made = folder.begin(recipe) if distributed.rank() == 0 else []
        if distributed.active():
            dist.barrier()  # nobody looks for a checkpoint before the folder is there
        with only_process_in(folder):
            # Another may have finished or mended it just before we were alone.
            status = distributed.share(folder.status)
            has_work = status != "done" or not verify_finished_run(folder, verbose=False)
            if has_work:
                try:
                    _run(recipe, folder, device, given, job, mark)
                except BaseException:
                    folder.discard(made)  # of a run that was refused before its first step
                    raise
            elif mark and folder.state.micro_batch != mark["micro_batch"] and distributed.rank() == 0:
                folder.note("done", **mark)
        distributed.wait_for_all()  # who leaves early may end the launcher's job while rank 0 still evaluates
    return folder, has_work


@contextmanager
def only_process_in(run: Run) -> Iterator[None]:
    """`Run.lock`, held by the first of the processes that train this run."""
    if distributed.rank() != 0:
        yield
        return
    with run.lock():
        yield


def verify_finished_run(run: Run, *, verbose: bool = True) -> bool:
    """Whether the files of a finished run are what it wrote (run.json has their digests).

    Those that are not are made again from its last checkpoint, with the same numbers; with ``verbose`` a line says so.

    Raises:
        ValueError: Files have changed, and there is no checkpoint, or several processes run.
    """
    changed = run.changed_files()
    if not changed:
        return True
    problem = f"{', '.join(changed)} of {run.path} {'is' if len(changed) == 1 else 'are'} not what the run wrote"
    if not run.last_checkpoint.exists():
        raise ValueError(
            f"{problem}, and there is no checkpoint to make it from; put back a copy, or remove the folder"
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(f"{problem}; run the recipe in one process, without torchrun, which makes it again")
    if verbose:
        print(f"{problem}; made again from the last checkpoint", file=sys.stderr)
    return False


def _run(
    recipe: Recipe,
    folder: Run,
    device: torch.device,
    given: DataSet | None,
    job: Job | None,
    mark: dict[str, Any],
) -> None:
    """Trains, evaluates and analyses; run.json is written once everything is made and the first step may be taken.

    So a run that is refused (its data, batch size, encoder … do not go together) leaves a folder as it was. ``job`` is
    given where it is made already; ``mark`` is what else run.json keeps.
    """
    began, clock = timestamp(), time.monotonic()
    before = folder.state
    first = {} if before.status else {"started": began}
    about = {"name": recipe.name, "hash": recipe.hash, "seed": recipe.seed, "error": None, **mark}
    about["data_file"] = data_digest(recipe)
    job = make_job(recipe, device, given) if job is None else job
    warn_of_size(job)
    micro_batch.warn_if_too_large(job)
    release_freed_memory()
    keep_memory(job)
    training = Training(job, folder)

    def at_work() -> float:
        return round((before.seconds or 0.0) + time.monotonic() - clock, 1)

    def note_start() -> None:
        if distributed.rank() == 0:
            folder.restore_recipe(recipe)
            folder.note("training", **about, **first, **machine(device))
        _tell_start(job, folder)

    try:
        training.run(note_start)
        if distributed.rank() == 0:
            folder.note("evaluating", step=training.state.step)
            finish(job, folder, training)
            checkpoint.keep_only(folder.last_checkpoint, folder.previous_checkpoint)
            folder.note("done", finished=timestamp(), seconds=at_work(), files=folder.digests())
    except (Stopped, KeyboardInterrupt):
        if training.started and distributed.rank() == 0:
            folder.note("interrupted", seconds=at_work())
        raise
    except Exception as error:
        with suppress(
            OSError
        ):  # on a full disk there is no room for the note either, and its error would hide this one
            if training.started and distributed.rank() == 0:
                folder.note("failed", error=f"{type(error).__name__}: {error}", seconds=at_work())
        raise


def _tell_start(job: Job, folder: Run) -> None:
    """Says what a pretrained start took from its file, on standard error and in run.json; rank 0 only."""
    if job.start is None or job.start.loaded is None or distributed.rank() != 0:
        return
    _Told(job.recipe.name, quiet=not job.recipe.run.progress).say(describe_start(job.start) or "")
    folder.note("training", pretrained={**job.start.loaded.record(), "norm": job.start.norm})


def finish(job: Job, folder: Run, training: Training) -> None:
    """Evaluation, analysis and export of what was trained; of the best in validation, if that was asked for."""
    if job.recipe.train.patience is not None and training.state.patience.best_step:
        best = checkpoint.load_best(folder.best_checkpoint, job.recipe.hash, training.state.patience.best_step)
        job.method.load_state_dict(best["method"])
        used = f"best validation, step {best['step']}"
    else:
        used = f"last, step {training.state.step}"
    release_freed_memory()
    export(job, folder)  # first: whatever happens in the evaluation, the encoder is there
    results, subject = evaluated(job)
    start = None if subject is None else _compared_with_start(job, subject, results)
    measured = analyse(job, folder, subject, results)
    record = {
        "recipe": job.recipe.name,
        "hash": job.recipe.hash,
        "seed": job.recipe.seed,
        "weights": used,
        "results": [{**result.record(), "seeds": [job.recipe.seed]} for result in results],
        "geometry": measured,
    }
    if job.recipe.evaluate.head:
        record["head"] = [{**result.record(), "seeds": [job.recipe.seed]} for result in _of_head(job)]
    if start is not None:
        record["start"] = start
    if job.recipe.train.fit_every is not None:
        record["fitted_at"] = training.state.fitted_at  # None: censored, the steps did not suffice
        record["steps"] = training.state.step
    if not results:
        record["note"] = "not evaluated: " + (_why_not(job) or "no protocols were asked for")
    folder.write_result(record)


def evaluated(job: Job) -> tuple[list[Result], Subject | None]:
    """The protocols of the recipe on the encoder, and on raw pixels if asked for; nothing without labels or a test."""
    if _why_not(job):
        return [], None
    subject = _subject(job.recipe, job.method.encoder, job.data, job.size, job.device)
    told = _Told(job.recipe.name, quiet=not job.recipe.run.progress)
    results = _protocols(job, subject, told)
    for name, options in _baselines(job):
        told.say(f"evaluating, raw {'pixel' if job.data.kind == 'image' else 'vector'}s: {name}")
        size = None if fraction_of(job.data) is None else job.size
        how: dict[str, Any] = {"batch_size": job.recipe.evaluate.batch_size, "workers": job.recipe.run.workers}
        results += baselines(job.data, [name], seed=job.recipe.seed, size=size, **how, **options)
    return results, subject


def _protocols(job: Job, subject: Subject, told: _Told, of: str = "") -> list[Result]:
    """The recipe's protocols on a subject; ``of`` says in the progress what it is."""
    results = []
    for protocol in job.recipe.evaluate.protocols:
        told.say(f"evaluating, {protocol.name}{of}")
        options = {**protocol_defaults(job.recipe, protocol.name), **protocol.options}
        results.append(evaluate(subject, protocol.name, seed=job.recipe.seed, progress=told, **options))
    return results


def _of_head(job: Job) -> list[Result]:
    """The same protocols on the head's output, where the recipe asks for them."""
    if not job.recipe.evaluate.head or _why_not(job):
        return []
    told = _Told(job.recipe.name, quiet=not job.recipe.run.progress)
    return _protocols(job, _subject(job.recipe, job.method.online, job.data, job.size, job.device), told, " (head)")


def _baselines(job: Job) -> list[tuple[str, dict[str, Any]]]:
    """The protocols, and their options, that raw pixels are evaluated by; by default those that cost seconds."""
    asked = job.recipe.evaluate
    if asked.baselines is not None:
        return [("knn20", {}), ("probe", {})] if asked.baselines else []
    cheap = affordable(job.data, [protocol.name for protocol in asked.protocols])
    return [(protocol.name, protocol.options) for protocol in asked.protocols if protocol.name in cheap]


def _compared_with_start(job: Job, subject: Subject, results: list[Result]) -> dict[str, Any] | None:
    """The kNN of a pretrained start, and how the end differs from it; None for a random start."""
    if job.start is None:
        return None
    told = _Told(job.recipe.name, quiet=not job.recipe.run.progress)
    told.say("evaluating, the start")
    began = _subject(job.recipe, job.start, job.data, job.size, job.device)
    found = compare_with_start(job.recipe, began, subject, results)
    before, change = found["result"], found["difference"]
    told.say(
        f"{PROTOCOL} at the start {before['value']:.1%}, at the end {before['value'] + change['value']:.1%}: "
        f"{100 * change['value']:+.1f} ± {100 * change['error']:.1f} points on the same {change['test_rows']:,} rows"
    )
    return found


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
        self.console.print(f"{self.name}: {text}", highlight=False, markup=False, soft_wrap=True)

    def __call__(self, what: str, done: int, of: int) -> None:
        if time.monotonic() - self.last > self.pause:
            self.last = time.monotonic()
            self.say(f"evaluating, {what} {done}/{of}")


def subject_of(run: str | os.PathLike[str] | Run, *, device: str = "auto", data: Any = None) -> Subject:
    """A finished run's encoder and data, to be evaluated by further protocols; its features are kept in the folder.

    ``data`` goes with a run whose data were given from Python, and are given again here.
    """
    run = run if isinstance(run, Run) else Run(run)
    encoder, recipe = rebuild(run), run.recipe
    began_in = run.state.machine.get("folder")
    given = None
    if data is not None:
        same, given = bound(recipe, data)
        if same.data.digest != recipe.data.digest:
            raise ValueError(
                f"{run.path} learned from other data than these: from {recipe.data.given or recipe.data.name}"
                f"{f' (digest {recipe.data.digest})' if recipe.data.digest else ''}, and these are {same.data.given} "
                f"(digest {same.data.digest}); give the same data again"
            )
    elif (
        recipe.data.digest is None
        and began_in
        and not Path(recipe.data.name).exists()
        and (Path(str(began_in)) / recipe.data.name).exists()
    ):
        recipe = recipe.override(
            {"data.name": str(Path(str(began_in)) / recipe.data.name)}
        )  # a path from where it was run
    run.check_data(recipe)
    loaded, train, _ = load_data(recipe, given)
    return _subject(
        recipe, encoder, loaded, view_size(recipe, loaded, train), pick_device(device), cache=run.features_file
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
    view = recipe.augment.described[-1]  # momentum methods: what the online network saw
    return Subject.from_encoder(
        encoder,
        data,
        device=device,
        batch_size=recipe.evaluate.batch_size,
        workers=recipe.run.workers,
        size=None if fraction_of(data) is None else size,
        cache=cache,
        augmentation=augment.view(view, size=size),
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
