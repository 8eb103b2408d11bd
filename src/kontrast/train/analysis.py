"""analysis.npz and analysis.json: what a report draws of a run, small enough to keep.

| array | what |
|---|---|
| features, labels | encoder output of up to `MOST` test rows (training rows, if there is no test split) |
| predictions | by the first protocol that predicts, of all test rows |
| query_rows, neighbours, neighbour_labels | `QUERIES` test rows, and the nearest `NEAREST` training rows of each |
| query_images, neighbour_images | their thumbnails, uint8 |
| sample_images, sample_views | images and their views as the model saw them, uint8 |

analysis.json has the geometry of the features and of the embeddings, a line a measure.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast import geometry
from kontrast.data import CentreCrop, Split, Stream, generator
from kontrast.evaluate import Result, Subject
from kontrast.files import whole_file, write_json
from kontrast.train.folder import RunFolder
from kontrast.train.job import Job
from kontrast.train.watching import features, fixed_views

MOST, QUERIES, NEAREST, SAMPLES, THUMBNAIL = 2000, 60, 5, 8, 32


@torch.no_grad()
def analyse(job: Job, folder: RunFolder, subject: Subject | None, results: Sequence[Result]) -> dict[str, Any]:
    """Writes both files; the geometry comes back, for result.json."""
    method = job.method.eval()
    split = job.data.test if job.data.test is not None else job.train
    part = split.limited(MOST, job.recipe.seed)
    h = features(job, part)
    arrays: dict[str, Tensor] = {"features": h}
    if part.labels is not None:
        arrays["labels"] = part.labels
    predicted = next((r.predictions for r in results if len(r.predictions) == len(split)), None)
    if predicted is not None:
        arrays["predictions"] = predicted
    arrays |= _neighbours(job, split, subject)
    if job.size is not None:
        arrays |= _samples(job)
    viewed = part.limited(512, job.recipe.seed)
    views = fixed_views(job, viewed)
    z = method.online(views.flatten(0, 1).to(job.device)).float().cpu()
    tau = getattr(method.loss, "temperature", None)
    options = {"temperature": 0.1 if tau is None else float(tau), "anchors": 1000, "seed": job.recipe.seed}
    of_z = None if viewed.labels is None else viewed.labels.repeat_interleave(views.shape[1])
    measured = {
        "features": _geometry(h, part.labels, options),
        "embeddings": _geometry(z, of_z, options),
        "protocol": {
            "split": "test" if job.data.test is not None else "train",
            "rows": len(part),
            "views": f"{len(views)} rows, {views.shape[1]} fixed views each, eval mode",
            **options,
        },
    }
    plain: dict[str, Any] = {name: value.numpy() for name, value in arrays.items()}
    with whole_file(folder.path / "analysis.npz") as file:
        np.savez_compressed(file, **plain)
    record = {"geometry": measured, "class_names": job.data.class_names, "kind": job.data.kind}
    write_json(folder.path / "analysis.json", record)
    method.train()
    return measured


def _geometry(x: Tensor, labels: Tensor | None, options: dict[str, Any]) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", geometry.TooFewSamples)
        return [dataclasses.asdict(line) for line in geometry.summary(x, labels, **options)]


def _neighbours(job: Job, split: Split, subject: Subject | None) -> dict[str, Tensor]:
    """The nearest training rows of some test rows, by cosine."""
    if subject is None or job.data.test is None:
        return {}
    order = torch.randperm(len(split), generator=generator(job.recipe.seed, Stream.HELD_OUT, 2))
    chosen = order[:QUERIES].sort().values
    similar = F.normalize(subject.test[chosen], dim=1) @ F.normalize(subject.train, dim=1).T
    nearest = similar.topk(min(NEAREST, similar.shape[1]), dim=1).indices
    found = {"query_rows": chosen, "neighbours": nearest}
    if subject.train_labels is not None:
        found["neighbour_labels"] = subject.train_labels[nearest]
    if job.size is not None:
        found["query_images"] = _thumbnails(split, chosen)
        seen = found["query_images"].shape[1:]
        found["neighbour_images"] = _thumbnails(job.data.train, nearest.flatten()).view(*nearest.shape, *seen)
    return found


def _samples(job: Job) -> dict[str, Tensor]:
    """A few training images, and their views with the normalisation taken off again."""
    some = job.train.subset(torch.arange(min(SAMPLES, len(job.train))))
    views = fixed_views(job, some)
    mean, std = (torch.tensor(value).view(-1, 1, 1) for value in (job.data.mean, job.data.std))
    pixels = (views * std + mean).clamp(0, 1).mul(255).round().to(torch.uint8)
    return {"sample_images": _thumbnails(some, torch.arange(len(some)), job.size), "sample_views": pixels}


def _thumbnails(split: Split, rows: Tensor, size: int | None = None) -> Tensor:
    """uint8 ``[n, C, side, side]``."""
    shape = split.inputs.shape
    side = size or min(THUMBNAIL, *(shape[1:] if shape is not None else (THUMBNAIL,)))
    return split.inputs.read(rows, CentreCrop(side), [0] * len(rows))
