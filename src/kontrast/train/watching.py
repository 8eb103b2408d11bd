"""Measure a run while it trains: monitors on a fixed held-out batch, and validation.

The batch is drawn once: `HELD` rows of the validation part if there is one, else of the test split, else of the
training rows; `REFERENCE` training rows for the online kNN. Views are drawn once too, and computed a chunk at a time.
None of these numbers chooses anything, but for validation with patience, which uses the held-out part of the training
rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kontrast import augment
from kontrast.data import Split, Stream, generator
from kontrast.evaluate import extract
from kontrast.evaluate.activations import in_chunks, rows_at_once
from kontrast.evaluate.features import fraction_of
from kontrast.losses import InfoNCELoss
from kontrast.train.job import Job
from kontrast.train.monitors import Snapshot, default, find, measure

HELD, REFERENCE = 256, 512
KEPT = 2**26  # bytes of cropped images that are kept for fixed views
MOST_VALIDATED = 2048  # rows of the validation part that are used, and as many training rows
TEMPERATURE = 0.1  # of the validation loss of data without labels


class Watch:
    """The monitors of these names, or all that can run; ``watch()`` returns their values."""

    def __init__(self, job: Job, names: Sequence[str] | None) -> None:
        self.job = job
        split = job.validation or (job.data.test if job.data.test is not None else job.train)
        self.split = split.limited(HELD, job.recipe.seed)
        self.reference = job.train.limited(REFERENCE, job.recipe.seed)
        labelled = self.split.labels is not None and self.reference.labels is not None
        can_run = default(
            labels=labelled,
            views=len(job.views),
            temperature=job.method.temperature is not None,
            response=job.method.response is not None,
        )
        self.names = can_run if names is None else list(names)
        for name in self.names:
            if name not in can_run:
                raise ValueError(
                    f"run.monitors={name}: must be a monitor that can run on this method and data. "
                    f"Use {', '.join(can_run)}"
                )
        self.views = FixedViews(job, self.split)

    @torch.no_grad()
    def __call__(self) -> dict[str, float]:
        """Each monitor's values now; the method is left in train mode."""
        job, method = self.job, self.job.method
        method.eval()
        z = self.views.embed()
        k1, k2 = method.response or (None, None)
        snapshot = Snapshot(
            features=features(job, self.split),
            embeddings=z,
            labels=self.split.labels,
            reference=features(job, self.reference),
            reference_labels=self.reference.labels,
            temperature=method.temperature,
            k1=k1,
            k2=k2,
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
        self.split = job.validation.limited(MOST_VALIDATED, job.recipe.seed)
        self.reference = job.train.limited(MOST_VALIDATED, job.recipe.seed)
        self.views = FixedViews(job, self.split, least=2) if self.split.labels is None else None

    @torch.no_grad()
    def __call__(self) -> float:
        """The validation value now; the method is left in train mode."""
        job, method = self.job, self.job.method
        method.eval()
        if self.views is None:
            h = features(job, self.split)
            snapshot = Snapshot(
                features=h,
                embeddings=h[:, None],
                labels=self.split.labels,
                reference=features(job, self.reference),
                reference_labels=self.reference.labels,
            )
            (value,) = find("knn")(snapshot).values()
        else:
            first, second = self.views.embed(slice(0, 2)).to(job.device).unbind(1)
            value = -float(InfoNCELoss(TEMPERATURE, gather_distributed=False)(first, second))
        method.train()
        return value


def features(job: Job, split: Split) -> Tensor:
    """The features of the plain rows of a split, on the CPU."""
    fraction = fraction_of(job.data) if job.size is not None else None
    how: dict[str, Any] = {} if fraction is None else {"size": job.size, "fraction": fraction}
    how |= {"interpolation": job.data.interpolation}
    how |= {"device": job.device, "batch_size": job.recipe.evaluate.batch_size}
    return extract(job.method.encoder, split, mean=job.data.mean, std=job.data.std, **how)


class FixedViews:
    """Views of all rows of a split, drawn once from the run's seed; the recipe's views are repeated up to ``least``.

    The random draws are stored; the views are computed when they are needed, a chunk of rows at a time: 2,000 rows with
    two views of 224 × 224 pixels would be 2.4 GB. Images that a random crop reads from files are stored after the crop
    (uint8) if they are at most `KEPT` bytes, and read again otherwise.
    """

    def __init__(self, job: Job, split: Split, least: int = 1) -> None:
        self.job, self.split = job, split
        draw = generator(job.recipe.seed, Stream.HELD_OUT, 1)
        self.draws: list[tuple[list[int] | None, augment.Params]] = []
        count = 0
        while count < max(least, 1):
            seeds = None if job.crop is None else torch.randint(2**62, (len(split),), generator=draw).tolist()
            one = self._read(slice(0, 1), seeds)
            size = augment.Operation.size_of(one[:, 0] if one.ndim == 5 else one)
            self.draws.append((seeds, job.views.draw(len(split), size, draw)))
            count += len(job.views)
        bytes_each = one.nbytes * len(self.draws)
        self.inputs: list[Tensor] | None = None
        if job.crop is not None and bytes_each * len(split) <= KEPT:
            self.inputs = [self._read(slice(0, len(split)), seeds) for seeds, _ in self.draws]

    def _read(self, rows: slice, seeds: list[int] | None) -> Tensor:
        """The inputs of some rows, as the views take them."""
        crop, which = self.job.crop, torch.arange(len(self.split))[rows]
        if crop is None:
            return self.split.inputs.read(which)
        assert seeds is not None
        inputs = self.split.inputs.read(which, crop, seeds[rows])
        return inputs[:, None] if len(crop.crops) == 1 else inputs

    def of(self, rows: slice) -> Tensor:
        """The views ``[n, V, …]`` of some rows, on the CPU."""
        parts = []
        for i, (seeds, params) in enumerate(self.draws):
            inputs = self._read(rows, seeds) if self.inputs is None else self.inputs[i][rows]
            views = self.job.views.apply(inputs, params[rows])
            assert isinstance(views, Tensor)
            parts.append(views)
        return torch.cat(parts, 1)

    @torch.no_grad()
    def embed(self, which: slice = slice(None)) -> Tensor:
        """Embed these views by the online network, which is in eval mode: float32 ``[N, V', D]`` on the CPU."""
        job, network, parts = self.job, self.job.method.online, []
        one = self.of(slice(0, 1))[0, which]
        at_once = job.recipe.evaluate.batch_size or rows_at_once(network, one[:1].to(job.device))
        rows = max(1, at_once // len(one))
        for start in range(0, len(self.split), rows):
            views = self.of(slice(start, start + rows))[:, which]
            z = in_chunks(network, views.flatten(0, 1), device=job.device, batch_size=at_once)
            parts.append(z.view(*views.shape[:2], -1).float().cpu())
        return torch.cat(parts)


def fixed_views(job: Job, split: Split, least: int = 1) -> Tensor:
    """`FixedViews` of all rows at once ``[n, V, …]``, for a few rows."""
    return FixedViews(job, split, least).of(slice(0, len(split)))
