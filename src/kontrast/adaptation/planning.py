r"""The recipe of an adaptation: defaults that are safe on small data, and as many epochs as the time allows.

The time is measured, not guessed: a few steps of training, and the measurement of the frozen encoder, which is one
validation. With t the seconds of an epoch with its validation, and t_end those of the verdict, evaluation and page,

    (1)  t_end = (2 (|T'| + |V|) + N + M) t_image + (2 + N/|T'|) t_fit + `PAGE`      two encoders judged, one evaluated
    (2)  epochs = ⌊`SHARE` (deadline − now)/t⌋, at most `MOST_EPOCHS`,      deadline = start + minutes − t_end

T' are the reference rows, V those that are read at the end, N + M all rows, t_fit the fit of the linear classifier to
T'. `SHARE` is below 1 because a machine that measures fast may become slow; where it does, the deadline ends the
training at an epoch, or within one. If fewer than `FEWEST_EPOCHS` fit, the training takes fewer rows. A batch that half
of the free memory does not hold is computed in parts (`kontrast.train.micro_batch`).

The result is a recipe as any other: ``kontrast train RECIPE.yaml`` repeats the training, rolled back to the same epoch.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from kontrast.adaptation.rows import share_held_out
from kontrast.adaptation.selection import measure
from kontrast.adaptation.session import Clock, Request
from kontrast.adaptation.verdict import MEASURES
from kontrast.checks import number, one_of
from kontrast.data import DataSet, bind
from kontrast.files import expanded
from kontrast.recipe import Recipe, parse
from kontrast.runs import Run
from kontrast.train import Job, make_job, micro_batch, pick_device, resolve
from kontrast.train.job import load_data
from kontrast.train.loop import seconds_to_train
from kontrast.train.watching import MOST_VALIDATED, features

LABELLED, UNLABELLED = ("supcon", "tcl"), ("sce", "simclr")
METHODS = (*LABELLED, *UNLABELLED)
MOST_EPOCHS, FEWEST_EPOCHS, PATIENCE = 30, 5, 5
BATCH = 64
FEWEST_ROWS, FEWEST_BATCHES = 8, 10
NONE_HELD_OUT = {"data.validation": 0.0, "train.patience": None}
HEAD_FIRST = 0.5  # epochs in which only the head learns; less than one, so that every epoch has something to measure
MOST_AVERAGE, LEFT_OF_START = 0.99, 0.05
SHARE, PAGE = 0.85, 20.0  # the part of the remaining time that is planned; seconds of analysis and page
TIMED_ROWS = 64  # of which features are extracted to measure t_image, where no labels ask for more

SAFE: dict[str, Any] = {
    "head": "tcl",
    "optim": {"name": "adamw", "lr": 1e-3, "weight_decay": 1e-4, "layer_decay": 0.7},
    "schedule": {"name": "warmup-cosine", "warmup_epochs": 0.5},
    "evaluate": {"protocols": ["knn20", {"name": "logistic", "iterations": 100}, "retrieval"], "baselines": False},
}
"""What every adaptation has, whatever the method."""
VIEWS: dict[str, list[Any]] = {
    "supcon": [{"name": "weak", "scale": 0.4}] * 2,
    "tcl": [{"name": "weak", "scale": 0.4}] * 2,
    "sce": [{"name": "weak", "scale": 0.4}, {"name": "strong", "scale": 0.2, "blur": 0}],
    "simclr": [{"name": "strong", "scale": 0.2, "blur": 0}] * 2,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "supcon": {"temperature": 0.1},
    "tcl": {"temperature": 0.1, "k1": 5000.0, "k2": 1.0},
    "sce": {"temperature": 0.1, "target_temperature": 0.05, "queue": 1024, "momentum": 0.99, "key_parts": 1},
    "simclr": {"temperature": 0.2},
}


@dataclass(frozen=True)
class Plan:
    """What `kontrast adapt` will do.

    Attributes:
        recipe: The resolved recipe.
        request: What was asked for, with the deadline.
        data: The data set, if it is loaded already.
        reasons: A line for each choice.
    """

    recipe: Recipe
    request: Request
    data: DataSet | None = None
    reasons: list[str] = field(default_factory=list)


def plan(
    encoder: str | os.PathLike[str],
    data: Any,
    *,
    weights: str | bool | None = None,
    minutes: float = 20.0,
    method: str | None = None,
    accept: bool = False,
    settings: Sequence[str] | Mapping[str, Any] = (),
    clock: Clock = time.monotonic,
    say: Callable[[str], None] = lambda line: None,
) -> Plan:
    """Plan an adaptation; nothing is written.

    Args:
        encoder: The folder of a finished run, or the name of an encoder.
        data: A set's name, a path, or an object that `kontrast.data.load` takes.
        weights: The pretrained weights of a named encoder, as ``encoder.pretrained`` takes them.
        minutes: The time for everything.
        method: supcon, tcl, sce or simclr; supcon with labels and sce without if left out.
        accept: Whether an adapted encoder that cannot be judged ships.
        settings: Overrides of the recipe, ``key=value`` or a mapping of dotted keys.
        clock: Seconds.
        say: Called with each choice and its reason as it is made.

    Returns:
        The plan. A run of the same request that exists already is its recipe: it is done, or it is resumed.

    Raises:
        ValueError: Encoder, data and settings do not fit each other, or the time is too short for one epoch.
    """
    began = clock()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("kontrast adapt runs in one process: start it without torchrun")
    number("minutes", minutes, above=0)
    if method is not None:
        one_of("method", method, METHODS)
    changes = dict(settings) if isinstance(settings, Mapping) else dict(map(parse, settings))
    name = data if isinstance(data, str) else os.fspath(data) if isinstance(data, os.PathLike) else None
    recipe = _first_recipe(encoder, weights, name, method or LABELLED[0], changes)
    data_set: DataSet | None = None
    if name is None:
        recipe, data_set = bind(recipe, data)
    request = Request(key=_key(recipe, method, minutes), minutes=minutes, accept=accept, clock=clock)
    run = find_run(recipe, request.key)
    if run is not None:
        left = run.state.adapt or {}
        deadline = began + 60 * minutes - float(left.get("end", PAGE))
        recipe = run.recipe.override({f"run.{key}": value for key, value in recipe.run.model_dump().items()})
        return Plan(recipe, replace(request, deadline=deadline, end=float(left.get("end", PAGE))), data_set)
    return _Planner(recipe, request, method, changes, data_set, began, say).plan()


def find_run(recipe: Recipe, key: str) -> Run | None:
    """The run folder of a request, begun or finished; None if there is none.

    Args:
        recipe: Any recipe with the name and ``run.out`` of the request.
        key: The request's hash.
    """
    folder = expanded(recipe.run.out)
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        run = Run(path)
        if path.name.startswith(f"{recipe.name}-") and run.state_file.is_file() and run.has_recipe:
            adapt = run.state.adapt
            if adapt is not None and adapt.get("request") == key:
                return run
    return None


def _key(recipe: Recipe, method: str | None, minutes: float) -> str:
    return hashlib.sha256(json.dumps([recipe.hash, method, float(minutes)]).encode()).hexdigest()[:8]


def _first_recipe(
    encoder: str | os.PathLike[str], weights: str | bool | None, data: str | None, method: str, changes: dict[str, Any]
) -> Recipe:
    """The recipe before anything is measured."""
    short = "data" if data is None else Path(data).name or "data"
    part, channels = _encoder_part(encoder, weights)
    given = {} if data is None else {"name": data}
    recipe = Recipe.of(
        {
            "name": f"adapt-{short[:60]}",
            "about": "An adaptation by kontrast adapt, which judges it against the frozen encoder.",
            "data": {"validation": 0.3, "channels": channels, **given},  # that share until the rows are counted
            "encoder": part,
            "train": {"epochs": MOST_EPOCHS, "batch_size": BATCH, "patience": PATIENCE, "clip": 1.0},
            **SAFE,
            **_of_method(method),
        }
    )
    return recipe.override(changes).check_parts()


def _of_method(method: str) -> dict[str, Any]:
    return {"method": {"name": method, **OPTIONS[method]}, "augment": VIEWS[method]}


def _encoder_part(encoder: str | os.PathLike[str], weights: str | bool | None) -> tuple[dict[str, Any], int | None]:
    """The encoder section: a run's encoder with its weights, or a name with ``weights``; and a run's channels."""
    text = os.fspath(encoder)
    path = expanded(text)
    if path.is_dir():
        if weights is not None:
            raise ValueError(f"weights={weights}: must be left out, as {text} is a run, which has its own weights")
        card = Run(path).card
        options = {key: value for key, value in (card.encoder.model_extra or {}).items() if value is not None}
        channels = card.input.shape[0] if card.input.kind == "image" else None
        return {"name": card.encoder.name.partition(".")[0], **options, "pretrained": text}, channels
    return {"name": text, "pretrained": True if weights is None else weights}, None


class _Planner:
    """The choices that need the data and the clock."""

    def __init__(
        self,
        recipe: Recipe,
        request: Request,
        method: str | None,
        changes: dict[str, Any],
        data: DataSet | None,
        began: float,
        say: Callable[[str], None],
    ) -> None:
        self.recipe, self.request, self.method, self.changes = recipe, request, method, changes
        self.data, self.began, self.tell = data, began, say
        self.reasons: list[str] = []

    def say(self, line: str) -> None:
        self.reasons.append(line)
        self.tell(line)

    def set(self, reason: str, **values: Any) -> None:
        """Set recipe keys (``__`` for the dot), unless the user has set them."""
        given = {key.replace("__", "."): value for key, value in values.items()}
        given = {key: value for key, value in given.items() if not self._is_given(key)}
        if given:
            self.recipe = self.recipe.override(given)
            self.say(f"{' '.join(f'{key}={_plain(value)}' for key, value in given.items())}: {reason}")

    def _is_given(self, key: str) -> bool:
        section = self.changes.get(key.partition(".")[0])
        return key in self.changes or (isinstance(section, Mapping) and key.partition(".")[2] in section)

    def plan(self) -> Plan:
        if self.data is None:  # read once; a limit keeps other rows of rows that were limited before
            whole = {"data.limit": None, "data.test_limit": None, "data.noise": 0.0}
            self.data, _, _ = load_data(resolve(self.recipe.override({**NONE_HELD_OUT, **whole})))
        data, train, _ = load_data(resolve(self.recipe.override(NONE_HELD_OUT)), self.data)
        self._choose_method(data, train.labels is not None)
        test = data.test
        judged = 0 if test is None or test.labels is None else len(test)
        rows = len(train)
        if rows < FEWEST_ROWS:
            raise ValueError(
                f"{data.name}: must have at least {FEWEST_ROWS} training rows to learn, choose and judge by; got {rows}"
            )
        self._check_classes(train.labels)
        self._choose_rows(rows, judged, labelled=train.labels is not None)
        if self.recipe.train.patience is None or not self.recipe.data.validation:
            raise ValueError(
                "data.validation and train.patience: must be above 0, as held-out rows choose the epoch. Leave them out"
            )
        device = pick_device(self.recipe.run.device)
        if self._is_given("train.micro_batch"):
            return self._choose_length(make_job(resolve(self.recipe), device, self.data))
        undecided = self.recipe.override({"train.micro_batch": micro_batch.AUTO})
        job = micro_batch.choose_size(make_job(resolve(undecided), device, self.data))
        size = job.recipe.train.micro_batch
        if size != self.recipe.train.micro_batch:
            self.set("half of the free memory holds so many images at once", train__micro_batch=size)
        return self._choose_length(job)

    def _choose_method(self, data: DataSet, labelled: bool) -> None:
        if self._is_given("method") or self._is_given("method.name"):
            return
        name = self.method or (LABELLED[0] if labelled else UNLABELLED[0])
        why = "as asked" if self.method else "the training rows have labels" if labelled else "there are no labels"
        kept = {key: value for key, value in self.changes.items() if key.partition(".")[0] in ("method", "augment")}
        views = VIEWS[name] if data.kind == "image" else ["vector-noise"] * 2
        options = {f"method.{key}": value for key, value in OPTIONS[name].items()}
        self.recipe = self.recipe.override(
            {"method": name, **options, "augment.views": views, "about": self.recipe.about}
        )
        self.recipe = self.recipe.override(kept) if kept else self.recipe
        self.say(f"method={name}: {why}")

    def _check_classes(self, labels: torch.Tensor | None) -> None:
        if labels is None:
            return
        counts = labels.bincount()
        classes, several = int((counts > 0).sum()), int((counts > 1).sum())
        if classes < 2 or several < 2:
            what = f"{classes} class" if classes < 2 else f"{several} classes with more than one row"
            raise ValueError(
                f"{self.recipe.data.name}: must have at least two classes of two rows or more to judge by; got {what}. "
                "Use data.labelled=false to adapt without labels (method sce), which no rows can judge"
            )

    def _choose_rows(self, rows: int, judged: int, *, labelled: bool) -> None:
        share = share_held_out(rows, judged) if labelled else max(0.05, min(0.2, 500 / rows))
        words = "choose the epoch and help to judge" if labelled else "say when to stop"
        self.set(
            f"{round(share * rows):,} of {rows:,} training rows are held out: they {words}", data__validation=share
        )
        left = rows - math.ceil(self.recipe.data.validation * rows) - 1
        if left < self.recipe.train.batch_size:
            self.set(f"{left} rows are left to learn from", train__batch_size=max(2, left // 2))
        patience = f"{PATIENCE} epochs without a better one end the training"
        self.set(patience, train__patience=PATIENCE)

    def _choose_length(self, job: Job) -> Plan:
        """(1) and (2)."""
        clock = self.request.clock
        frozen, per_image, fit = self._measure_frozen(job)
        everything = len(job.data.train) + (0 if job.data.test is None else len(job.data.test))
        reference = min(len(job.train), MOST_VALIDATED)
        held = 0 if job.validation is None else len(job.validation)
        read = everything - len(job.data.train) + max(0, held - MOST_VALIDATED)
        end = (2 * (reference + read) + everything) * per_image + (2 + len(job.data.train) / reference) * fit + PAGE
        deadline = self.began + 60 * self.request.minutes - end
        self.request = replace(self.request, deadline=deadline, end=end, frozen=frozen)
        if not any(map(self._is_given, ("train.epochs", "train.steps"))):
            validation = (min(held, MOST_VALIDATED) + reference) * per_image + fit
            one = seconds_to_train(resolve(self.recipe.override({"train.epochs": 1})), self.data) + validation
            fits = SHARE * (deadline - clock()) / one
            rows = math.floor(len(job.data.train) * fits / FEWEST_EPOCHS)
            if fits < FEWEST_EPOCHS and rows >= FEWEST_BATCHES * BATCH and not self._is_given("data.limit"):
                self.set(f"{FEWEST_EPOCHS} epochs of all rows would take too long", data__limit=rows)
                return self.plan()
            epochs = min(MOST_EPOCHS, math.floor(fits))
            if epochs < 1:
                needed = (clock() - self.began + end + one / SHARE) / 60
                raise ValueError(
                    f"minutes={self.request.minutes:g}: must be about {math.ceil(10 * needed) / 10:g} here for one "
                    f"epoch of {len(job.train):,} rows. Use --minutes {math.ceil(needed)}, or fewer rows (data.limit=…)"
                )
            self.set(f"{one:.3g} s each, as measured, in {self.request.minutes:g} minutes", train__epochs=epochs)
        self._choose_controls(job.steps_per_epoch)
        return Plan(resolve(self.recipe), self.request, self.data, self.reasons)

    def _choose_controls(self, steps_per_epoch: int) -> None:
        """What depends on the number of steps: how long the head learns alone, and the average of the weights."""
        train = self.recipe.train
        total = train.steps or (train.epochs or 0) * steps_per_epoch
        if self.recipe.head.name != "none" and total > 2 * max(1, round(HEAD_FIRST * steps_per_epoch)):
            self.set("a random head would first spoil the encoder", train__head_first=HEAD_FIRST)
        average = min(1 - 1 / max(2, steps_per_epoch), LEFT_OF_START ** (1 / total), MOST_AVERAGE)
        self.set(
            "the weights that are measured and shipped are an average",
            train__average=max(0.01, int(100 * average) / 100),
        )

    def _measure_frozen(self, job: Job) -> tuple[dict[str, torch.Tensor] | None, float, float]:
        """The frozen encoder on the held-out rows, seconds of an image, and of the fits."""
        clock = self.request.clock
        assert job.start is not None
        if job.validation is None or job.validation.labels is None or job.train.labels is None:
            few = job.train.limited(TIMED_ROWS, job.recipe.seed)
            start = clock()
            features(job, few, job.start)
            return None, (clock() - start) / len(few), 0.0
        held, reference = (part.limited(MOST_VALIDATED, job.recipe.seed) for part in (job.validation, job.train))
        start = clock()
        x, r = features(job, held, job.start), features(job, reference, job.start)
        per_image = (clock() - start) / (len(x) + len(r))
        assert held.labels is not None
        assert reference.labels is not None
        start = clock()
        frozen = measure(x, held.labels, r, reference.labels, seed=job.recipe.seed)
        fit = clock() - start
        words = ", ".join(
            f"{MEASURES[name]} {100 * float(right.double().mean()):.1f} %" for name, right in frozen.items()
        )
        self.say(f"the frozen encoder on {len(x):,} held-out rows: {words}")
        return frozen, per_image, fit


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
