"""A run's encoder and data for `kontrast.evaluate`: the protocols of the recipe, and other protocols later."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kontrast import augment, methods, models
from kontrast.data import DataSet, bind
from kontrast.evaluate import Result, Subject, affordable, baselines, evaluate, hold_out
from kontrast.evaluate.features import fraction_of, has_several_sizes
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train import embedding
from kontrast.train.encoder_files import load
from kontrast.train.job import Job, load_data, make_encoder, view_size
from kontrast.train.machine import pick_device
from kontrast.train.progress import StderrConsole
from kontrast.train.start import PROTOCOL, compare_with_start

HELD_OUT = 0.2  # of rows without a test split


# ------------------------------------------------------------------------------------------------ of a run that trained


def evaluate_job(job: Job) -> tuple[list[Result], Subject | None]:
    """Evaluate the encoder by the protocols of the recipe, and raw pixels beside it if the recipe asks for them.

    Returns:
        The results, and the encoder with its features. Without labels or test rows there is neither.
    """
    if reason_not_to_evaluate(job):
        return [], None
    subject = _subject(job.recipe, job.method.encoder, job.data, job.size, job.device)
    results = _by_protocols(job, subject)
    for name, options in _baselines(job):
        announce(job.recipe, f"evaluating, raw {'pixel' if job.data.kind == 'image' else 'vector'}s: {name}")
        size = job.size if has_several_sizes(job.data) else None
        how: dict[str, Any] = {"batch_size": job.recipe.evaluate.batch_size, "workers": job.recipe.run.workers}
        results += baselines(job.data, [name], seed=job.recipe.seed, size=size, **how, **options)
    return results, subject


def evaluate_head(job: Job) -> list[Result]:
    """Evaluate the head's output by the same protocols, if the recipe asks for it."""
    if not job.recipe.evaluate.head or reason_not_to_evaluate(job):
        return []
    return _by_protocols(job, _subject(job.recipe, job.method.online, job.data, job.size, job.device), " (head)")


def evaluate_start(job: Job, end: Subject | None, results: list[Result]) -> dict[str, Any] | None:
    """Compare the trained encoder with its pretrained start by kNN (`kontrast.train.start`).

    Args:
        job: The job, trained.
        end: The trained encoder; None without an evaluation.
        results: The results of the evaluation.

    Returns:
        The entry of result.json; None without a pretrained start or an evaluation.
    """
    if job.start is None or end is None:
        return None
    announce(job.recipe, "evaluating, the start")
    start = _subject(job.recipe, job.start, job.data, job.size, job.device)
    comparison = compare_with_start(job.recipe, start, end, results)
    before, change = comparison["result"], comparison["difference"]
    announce(
        job.recipe,
        f"{PROTOCOL} at the start {before['value']:.1%}, at the end {before['value'] + change['value']:.1%}: "
        f"{100 * change['value']:+.1f} ± {100 * change['error']:.1f} points on the same {change['test_rows']:,} rows",
    )
    return comparison


def reason_not_to_evaluate(job: Job) -> str:
    """Why there can be no accuracy; empty if there can."""
    if job.data.train.labels is None:
        return "the training rows have no labels"
    if job.data.test is None or job.data.test.labels is None:
        return "there is no test split with labels"
    return ""


def announce(recipe: Recipe, text: str) -> None:
    """Print a progress line of a run on standard error, unless the recipe wants none."""
    console = StderrConsole(quiet=not recipe.run.progress)
    console.print(f"{recipe.name}: {text}", highlight=False, markup=False, soft_wrap=True)


def _by_protocols(job: Job, subject: Subject, suffix: str = "") -> list[Result]:
    recipe, results = job.recipe, []
    progress = _Progress(recipe)
    for protocol in recipe.evaluate.protocols:
        announce(recipe, f"evaluating, {protocol.name}{suffix}")
        options = {**job.method.protocol_options(protocol.name), **protocol.options}
        results.append(evaluate(subject, protocol.name, seed=recipe.seed, progress=progress, **options))
    return results


def _baselines(job: Job) -> list[tuple[str, dict[str, Any]]]:
    """The protocols of raw pixels, with their options; by default those of the recipe that take seconds."""
    settings = job.recipe.evaluate
    if settings.baselines is not None:
        return [("knn20", {}), ("probe", {})] if settings.baselines else []
    cheap = affordable(job.data, [protocol.name for protocol in settings.protocols])
    return [(protocol.name, protocol.options) for protocol in settings.protocols if protocol.name in cheap]


class _Progress:
    """`announce` for a protocol's progress, at most every ten seconds."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.last = recipe, time.monotonic()

    def __call__(self, what: str, done: int, of: int) -> None:
        if time.monotonic() - self.last > 10.0:
            self.last = time.monotonic()
            announce(self.recipe, f"evaluating, {what} {done}/{of}")


# ----------------------------------------------------------------------------------------------- later, or beside a run


def subject_of(run: str | os.PathLike[str] | Run, *, device: str = "auto", data: Any = None) -> Subject:
    """A finished run's encoder and data, for `kontrast.evaluate.evaluate`; its features are kept in the folder.

    Args:
        run: The run, or its folder.
        device: As ``run.device`` of a recipe.
        data: The data again, if they were given from Python.

    Returns:
        The subject, with the encoder, the data and the labels.

    Raises:
        ValueError: The run is not finished, its data have changed, or ``data`` are not what it learned from.
    """
    run = Run(run)
    encoder, recipe = load(run), run.recipe
    how = None if recipe.encoder.options.get("pretrained") is None else encoder.preprocessing  # the file may be gone
    data_set = None
    if data is not None:
        other, data_set = bind(recipe, data)
        if other.data.digest != recipe.data.digest:
            raise ValueError(
                f"{run.path} learned from other data than these: from {recipe.data.given or recipe.data.name}"
                f"{f' (digest {recipe.data.digest})' if recipe.data.digest else ''}, and these are {other.data.given} "
                f"(digest {other.data.digest}); give the same data again"
            )
    else:
        recipe = with_path_of_start(recipe, run)
    run.check_data(recipe)
    data_set, train, _ = load_data(recipe, data_set, how)
    size = view_size(recipe, data_set, train)
    return _subject(recipe, encoder, data_set, size, pick_device(device), cache=run.features_file)


def subject_on(
    source: str | os.PathLike[str] | Run | models.Encoder,
    data: Any,
    *,
    device: str = "auto",
    batch_size: int | None = None,
    workers: int = 0,
    seed: int = 0,
    limit: int | None = None,
    test_limit: int | None = None,
) -> Subject:
    """Any encoder and any data, for `kontrast.evaluate.evaluate`: trained here or not, on data it never saw.

    Args:
        source: A finished run, its folder, or an encoder (`kontrast.load`).
        data: What `kontrast.data.load` takes, with labels. Without rows for testing a class-balanced fifth is held out.
        device: As ``run.device`` of a recipe.
        batch_size: Rows that go through the encoder at once; None measures it.
        workers: Processes that read images.
        seed: Of the limits and of the rows held out.
        limit: At most so many training rows, classes even.
        test_limit: At most so many test rows.

    Returns:
        The subject; its features are extracted when they are first needed.

    Raises:
        ValueError: The data do not fit the encoder, or have no labels.
    """
    prepared = embedding.prepare(source, data, seed=seed, limit=limit, test_limit=test_limit)
    data_set, split = prepared.data, "test"
    if data_set.test is None or data_set.test.labels is None:
        labels = data_set.train.require_labels("an evaluation")
        rest, held = hold_out(labels, HELD_OUT, seed)
        split = f"{100 * HELD_OUT:g} % held out, class-balanced, seed {seed}"
        data_set = replace(data_set, train=data_set.train.subset(rest), test=data_set.train.subset(held))
    subject = Subject.from_encoder(
        prepared.encoder,
        data_set,
        device=pick_device(device),
        batch_size=batch_size,
        workers=workers,
        size=prepared.size,
    )
    subject.split = split
    return subject


def with_path_of_start(recipe: Recipe, run: Run) -> Recipe:
    """The recipe; a relative path of data that does not exist here is taken from where the run was started."""
    folder, name = run.state.machine.get("folder"), recipe.data.name
    if recipe.data.digest is not None or not folder or Path(name).exists() or not Path(str(folder), name).exists():
        return recipe
    return recipe.override({"data.name": str(Path(str(folder), name))})


def untrained_subject(recipe: Recipe) -> Subject:
    """The initial weights that a run of this recipe starts from, and its data, as the run itself would be evaluated.

    Args:
        recipe: Its seed, data, encoder and last view count; method and training do not.

    Returns:
        What `kontrast.evaluate.evaluate` takes.

    Raises:
        ValueError: The data cannot be read, or the encoder does not take them.

    >>> small = {"data": {"name": "digits", "limit": 200, "test_limit": 100}, "encoder": "mlp"}
    >>> recipe = Recipe.of({**small, "method": "supcon", "train": {"epochs": 1}})
    >>> evaluate(untrained_subject(recipe), "knn20").name
    'knn20'
    """
    data, train, _ = load_data(recipe)
    size = view_size(recipe, data, train)
    encoder = make_encoder(recipe, data, size).eval()
    return _subject(recipe, encoder, data, size, pick_device(recipe.run.device))


def protocol_defaults(recipe: Recipe, protocol: str) -> dict[str, Any]:
    """The options that a recipe's method sets for a protocol (`kontrast.methods.Method.protocol_options`).

    Args:
        recipe: The recipe.
        protocol: The protocol's name.

    Returns:
        The options by name; none if the protocol's own defaults suit the method.

    Raises:
        ValueError: There is no such method.

    >>> protocol_defaults(Recipe.of({"method": "ce", "train": {"epochs": 1}}), "graf-means")
    {'normalize': False}
    """
    return methods.find(recipe.method.name).protocol_options(protocol)


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
        augmentation=augment.view(view, size=size, interpolation=data.interpolation),
    )
