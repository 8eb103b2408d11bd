"""Looking at a run while it trains: monitors on a fixed held-out batch, and validation.

The batch is drawn once: `HELD` rows of the validation part if there is one, else of the test split, else of the
training rows; `REFERENCE` training rows for the online kNN. Views are drawn once too. Nothing here is used to choose
anything, but for validation with patience, which looks at the held-out part of the training rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kontrast.data import Split, Stream, generator
from kontrast.evaluate import extract
from kontrast.evaluate.features import fraction_of
from kontrast.losses import InfoNCELoss, SupConLoss, TCLLoss
from kontrast.train.job import Job
from kontrast.train.monitors import Snapshot, default, find, measure

HELD, REFERENCE = 256, 512
MOST_VALIDATED = 2048  # rows of the validation part that are looked at, and training rows beside them
TEMPERATURE = 0.1  # of the validation loss of data without labels


class Watch:
    """The monitors by name, or those that can run, at once: ``watch()`` gives their values."""

    def __init__(self, job: Job, names: Sequence[str] | None) -> None:
        self.job = job
        held = job.validation or (job.data.test if job.data.test is not None else job.train)
        self.held = held.limited(HELD, job.recipe.seed)
        self.reference = job.train.limited(REFERENCE, job.recipe.seed)
        labelled = self.held.labels is not None and self.reference.labels is not None
        loss = job.method.loss
        can_run = default(
            labels=labelled,
            views=len(job.views),
            temperature=hasattr(loss, "temperature"),
            response=isinstance(loss, SupConLoss | TCLLoss),
        )
        self.names = can_run if names is None else list(names)
        for name in self.names:
            if name not in can_run:
                raise ValueError(
                    f"monitor {name!r} cannot run on this method and data; those that can: {', '.join(can_run)}"
                )
        self.views = fixed_views(job, self.held)

    @torch.no_grad()
    def __call__(self) -> dict[str, float]:
        """Each monitor's values now; the method is left in train mode."""
        job, method = self.job, self.job.method
        method.eval()
        n, v = self.views.shape[:2]
        z = method.online(self.views.flatten(0, 1).to(job.device)).view(n, v, -1).float().cpu()
        loss = method.loss
        temperature = getattr(loss, "temperature", None)
        snapshot = Snapshot(
            features=features(job, self.held),
            embeddings=z,
            labels=self.held.labels,
            reference=features(job, self.reference),
            reference_labels=self.reference.labels,
            temperature=None if temperature is None else float(temperature),
            k1=getattr(loss, "k1", None),
            k2=getattr(loss, "k2", None),
            supervised=method.needs_labels,
        )
        method.train()
        return measure(self.names, snapshot)


class Validation:
    """A number that is better when larger, on the part held out of the training rows.

    With labels the accuracy of kNN (k = 20, weights e^{s/0.07}) against training rows; without labels minus the InfoNCE
    loss (τ = 0.1) between two fixed views of the held-out rows.
    """

    def __init__(self, job: Job) -> None:
        assert job.validation is not None
        self.job = job
        self.held = job.validation.limited(MOST_VALIDATED, job.recipe.seed)
        self.reference = job.train.limited(MOST_VALIDATED, job.recipe.seed)
        self.views = fixed_views(job, self.held, least=2) if self.held.labels is None else None

    @torch.no_grad()
    def __call__(self) -> float:
        """The number now; the method is left in train mode."""
        job, method = self.job, self.job.method
        method.eval()
        if self.views is None:
            h = features(job, self.held)
            seen = Snapshot(
                features=h,
                embeddings=h[:, None],
                labels=self.held.labels,
                reference=features(job, self.reference),
                reference_labels=self.reference.labels,
            )
            (value,) = find("knn")(seen).values()
        else:
            pairs = self.views[:, :2].transpose(0, 1)
            first, second = (method.online(view.to(job.device)).float() for view in pairs)
            value = -float(InfoNCELoss(TEMPERATURE, gather_distributed=False)(first, second))
        method.train()
        return value


def features(job: Job, split: Split) -> Tensor:
    """Of plain rows, on the CPU."""
    fraction = fraction_of(job.data) if job.size is not None else None
    crop: dict[str, Any] = {} if fraction is None else {"size": job.size, "fraction": fraction}
    return extract(job.method.encoder, split, mean=job.data.mean, std=job.data.std, device=job.device, **crop)


def fixed_views(job: Job, split: Split, least: int = 1) -> Tensor:
    """Views ``[n, V, …]`` of all rows, drawn from the run's seed once; at least so many, the last preset repeated."""
    rows = torch.arange(len(split))
    draw = generator(job.recipe.seed, Stream.HELD_OUT, 1)
    views: list[Tensor] = []
    while sum(v.shape[1] for v in views) < max(least, 1):
        if job.crop is None:
            inputs = split.inputs.read(rows)
        else:
            seeds = torch.randint(2**62, (len(split),), generator=draw).tolist()
            inputs = split.inputs.read(rows, job.crop, seeds)
            inputs = inputs[:, None] if len(job.crop.crops) == 1 else inputs
        made = job.views(inputs, draw)
        assert isinstance(made, Tensor)
        views.append(made)
    return torch.cat(views, 1)
