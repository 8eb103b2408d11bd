"""How long a step of a recipe takes here: a few steps, measured, for an estimate before a long run."""

from __future__ import annotations

import tempfile
import time

from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train.job import make_job
from kontrast.train.loop import Training, batches
from kontrast.train.running import pick_device
from kontrast.train.views_ahead import prepared

STEPS, SECONDS = 5, 20.0  # at most so many steps after the first, and about so long


def seconds_to_train(recipe: Recipe) -> float:
    """An estimate for a resolved recipe's training, without its evaluation: the first step is left out of it.

    >>> from kontrast.train import resolve
    >>> small = {"data": {"name": "digits"}, "encoder": "mlp", "method": "supcon", "augment": ["none", "none"]}
    >>> seconds_to_train(resolve(Recipe.of({**small, "train": {"steps": 10, "batch_size": 32}}))) > 0
    True
    """
    job = make_job(recipe.override({"run.monitor_every": 0}), pick_device(recipe.run.device))
    job.method.train()
    with tempfile.TemporaryDirectory() as folder:
        training = Training(job, Run(folder))
        count, began = 0, time.monotonic()
        first = began
        for views in prepared(job, batches(job.loader(), 0, min(job.total_steps, STEPS + 1))):
            training._step(views)
            count += 1
            now = time.monotonic()
            if count == 1:
                first = now
            if now - began > SECONDS:
                break
        steps, took = (count - 1, now - first) if count > 1 else (1, first - began)
    return job.total_steps * took / steps
