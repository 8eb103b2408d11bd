"""analysis.npz and analysis.json: what a report draws of a run, a few megabytes.

| array | what |
|---|---|
| features, labels | encoder output of up to `MOST` test rows (training rows, if there is no test split) |
| rows | which rows of the split those are |
| names, query_names, neighbour_names | the files of those rows, from the data's folder on, where rows are files |
| thumbnail_rows, thumbnails | up to `PICTURED` of the rows of `features`, classes even, and their thumbnails, uint8 |
| predictions, test_labels | by the first protocol that predicts, and what is right, of all test rows |
| query_rows, query_labels | `QUERIES` test rows (training rows, if there is no test split) |
| neighbours, neighbour_labels | the nearest `NEAREST` training rows of each, itself left out |
| query_images, neighbour_images | their thumbnails, uint8 |
| sample_images, sample_views | images and their views as the model saw them, uint8 |
| positive, nearest | cosines of a view's embedding to the row's other view, and to the `CLOSEST` nearest other rows |
| bank_positive, bank_nearest | of a memory bank: views of up to `MOST` training rows, in train mode, to entries |
| between_means, between_weights, within | cosines of class means, of a classifier's weights, of samples to their mean |

Those of a memory bank are to the row's own entry, and to the `CLOSEST` nearest others, as Wang & Liu draw them; the
last line is of up to `FITTED` training rows, as Graf et al. draw it. analysis.json has the geometry of the features
and of the embeddings, a line a measure.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast import geometry, models
from kontrast.data import CentreCrop, Split, Stream, generator
from kontrast.evaluate import Result, Subject
from kontrast.runs import Run
from kontrast.train.job import Job
from kontrast.train.watching import FixedViews, features, fixed_views

MOST, QUERIES, NEAREST, SAMPLES, THUMBNAIL = 2000, 60, 5, 8, 32
CLOSEST, FITTED, PICTURED = 10, 5000, 1000
READ = 32  # images that are read at once for thumbnails
SEARCHED = 20_000  # training rows that neighbours are looked for among, where no evaluation has their features anyway


@torch.no_grad()
def analyse(job: Job, run: Run, subject: Subject | None, results: Sequence[Result]) -> dict[str, Any]:
    """Write analysis.npz and analysis.json.

    Args:
        job: The job, trained.
        run: The run folder.
        subject: The encoder with its features, if there was an evaluation.
        results: The results of the evaluation.

    Returns:
        The geometry, for result.json.
    """
    method = job.method.eval()
    split = job.data.test if job.data.test is not None else job.train
    part = split.limited(MOST, job.recipe.seed)
    rows = split.limited_rows(MOST, job.recipe.seed)
    # The evaluation has the features of all test rows: no row goes through the encoder twice.
    h = features(job, part) if subject is None else subject.test[rows]
    arrays: dict[str, Tensor] = {"features": h, "rows": rows}
    if part.labels is not None:
        arrays["labels"] = part.labels
    predictions = next((r.predictions for r in results if len(r.predictions) == len(split)), None)
    if predictions is not None:
        arrays["predictions"] = predictions
        if split.labels is not None:
            arrays["test_labels"] = split.labels
    near = _neighbours(job, split, subject)
    arrays |= near
    if job.size is not None:
        arrays |= _samples(job)
        arrays["thumbnail_rows"] = part.limited_rows(PICTURED, job.recipe.seed)
        arrays["thumbnails"] = _thumbnails(part, arrays["thumbnail_rows"])
    z, separation = _embeddings(job, part)
    simplex, cosines = _simplex(job)
    arrays |= separation | _of_bank(job) | cosines
    options = {
        "temperature": 0.1 if method.temperature is None else method.temperature,
        "anchors": 1000,
        "seed": job.recipe.seed,
    }
    record = {
        "features": _geometry(h, part.labels, options),
        "embeddings": _geometry(z, part.labels, options),
        "simplex": simplex,
        "protocol": {
            "split": "test" if job.data.test is not None else "train",
            "rows": len(part),
            "embeddings": "a fixed view of each row through encoder and head, eval mode",
            "simplex": f"up to {FITTED} plain training rows, eval mode",
            "neighbours": _describe_search(job, subject) if near else None,
            **options,
        },
    }
    plain: dict[str, Any] = {name: value.numpy() for name, value in arrays.items()}
    plain |= _file_names(job, split, subject, arrays)
    run.write_analysis({"geometry": record, "class_names": job.data.class_names, "kind": job.data.kind}, plain)
    method.train()
    return record


def _geometry(x: Tensor, labels: Tensor | None, options: dict[str, Any]) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", geometry.TooFewSamples)
        return [dataclasses.asdict(line) for line in geometry.summary(x, labels, **options)]


def _embeddings(job: Job, part: Split) -> tuple[Tensor, dict[str, Tensor]]:
    """The embedding of a view of each row ``[n, D]``, and its cosines to the row's other view and to other rows."""
    last_two = slice(-2, None)  # momentum methods: the last is the online network's
    key, z = FixedViews(job, part, least=2).embed(last_two).unbind(1)
    if len(part) < 2:
        return z, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", geometry.TooFewSamples)
        separation = geometry.local_separation(z, key, nearest=CLOSEST)
    return z, {"positive": separation.positive.float(), "nearest": separation.nearest.float()}


@torch.no_grad()
def _of_bank(job: Job) -> dict[str, Tensor]:
    """Cosines of training views to their own entry of a memory bank and to other entries, as Wang & Liu draw them.

    Their code records what the loss sees while it trains: one augmented view, the network in train mode, so that batch
    norm has the batch's own statistics. A copy of the network is used, since that mode moves its running statistics.
    Nothing for methods without a bank.
    """
    bank = job.method.memory_bank
    if bank is None or len(bank) < 3 or len(bank) != len(job.train):
        return {}
    rows = job.train.limited_rows(MOST, job.recipe.seed)
    views = FixedViews(job, job.train.subset(rows))
    network = copy.deepcopy(job.method.online).train()
    for part in network.modules():
        if isinstance(part, models.SyncBatchNorm):
            part.alone = True  # the first rank analyses; the others wait for it
    parts = []
    for chunk in torch.tensor_split(torch.arange(len(rows)), -(-len(rows) // job.recipe.train.batch_size)):
        z = network(views.of(slice(int(chunk[0]), int(chunk[-1]) + 1))[:, 0].to(job.device))
        parts.append(z.float().cpu())
    entries = bank.rows.float().cpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", geometry.TooFewSamples)
        separation = geometry.local_separation(
            torch.cat(parts), entries[rows], entries, own_index=rows, nearest=CLOSEST
        )
    return {"bank_positive": separation.positive.float(), "bank_nearest": separation.nearest.float()}


def _simplex(job: Job) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The deviation of the training rows' class means from a simplex, at the encoder's output and at the head's."""
    part = job.train.limited(FITTED, job.recipe.seed)
    if part.labels is None or len(torch.unique(part.labels)) < 2:
        return {}, {}
    h = features(job, part)
    z = job.method.online.head(h.to(job.device)).float().cpu()
    weights = job.method.class_weights
    if weights is not None:
        weights = weights.detach().float().cpu()[torch.unique(part.labels)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", geometry.TooFewSamples)
        at_encoder, at_head = geometry.simplex(h, part.labels), geometry.simplex(z, part.labels, weights)
    arrays = {"between_means": at_head.cosines_means, "within": at_head.cosines_within}
    if at_head.cosines_weights is not None:
        arrays["between_weights"] = at_head.cosines_weights
    return {"features": _scalars(at_encoder), "embeddings": _scalars(at_head)}, {
        name: value.float() for name, value in arrays.items()
    }


def _scalars(simplex: geometry.Simplex) -> dict[str, Any]:
    scalars = {name: value for name, value in vars(simplex).items() if isinstance(value, int | float)}
    return {**scalars, "deviation": simplex.deviation}


def _neighbours(job: Job, split: Split, subject: Subject | None) -> dict[str, Tensor]:
    """The nearest training rows of some rows of the split, by cosine; a row is not its own neighbour."""
    order = torch.randperm(len(split), generator=generator(job.recipe.seed, Stream.HELD_OUT, 2))
    queries = order[:QUERIES].sort().values
    if subject is not None:
        rows, among = torch.arange(len(job.data.train)), job.data.train
        query_features, candidates = subject.test[queries], subject.train
    else:
        rows = job.train.limited_rows(SEARCHED, job.recipe.seed)
        among = job.train.limited(SEARCHED, job.recipe.seed)
        query_features, candidates = features(job, split.subset(queries)), features(job, among)
    similar = F.normalize(query_features, dim=1) @ F.normalize(candidates, dim=1).T
    if job.data.test is None:
        similar[queries[:, None] == rows] = -torch.inf
    nearest = similar.topk(min(NEAREST, similar.shape[1] - (job.data.test is None)), dim=1).indices
    if not nearest.numel():
        return {}
    arrays = {"query_rows": queries, "neighbours": rows[nearest]}
    if split.labels is not None and among.labels is not None:
        arrays |= {"query_labels": split.labels[queries], "neighbour_labels": among.labels[nearest]}
    if job.size is not None:
        arrays["query_images"] = _thumbnails(split, queries)
        near = _thumbnails(among, nearest.flatten())  # of the size that its own split has
        arrays["neighbour_images"] = near.view(*nearest.shape, *near.shape[1:])
    return arrays


def _file_names(job: Job, split: Split, subject: Subject | None, arrays: dict[str, Tensor]) -> dict[str, Any]:
    """The files of the analysed rows, of the queries and of their neighbours, where the rows are files."""
    among = job.train if subject is None else job.data.train
    file_names: dict[str, Any] = {}
    for name, rows, of in (
        ("names", "rows", split),
        ("query_names", "query_rows", split),
        ("neighbour_names", "neighbours", among),
    ):
        if of.names is not None and rows in arrays:
            names = of.names
            # A name that is not UTF-8 comes from Python with surrogates, which no page takes.
            words = [names[i].encode(errors="backslashreplace").decode() for i in arrays[rows].flatten().tolist()]
            file_names[name] = np.array(words).reshape(tuple(arrays[rows].shape))
    return file_names


def _describe_search(job: Job, subject: Subject | None) -> dict[str, Any]:
    """From which split the queries are, and among how many training rows their neighbours were searched."""
    among = min(len(job.train), SEARCHED) if subject is None else len(job.data.train)
    return {"queries": "train" if job.data.test is None else "test", "searched": among}


def _samples(job: Job) -> dict[str, Tensor]:
    """A few training images, and their views without the normalisation."""
    some = job.train.subset(torch.arange(min(SAMPLES, len(job.train))))
    views = fixed_views(job, some)
    mean, std = (torch.tensor(value).view(-1, 1, 1) for value in (job.data.mean, job.data.std))
    pixels = (views * std + mean).clamp(0, 1).mul(255).round().to(torch.uint8)
    return {"sample_images": _thumbnails(some, torch.arange(len(some)), job.size), "sample_views": pixels}


def _thumbnails(split: Split, rows: Tensor, size: int | None = None) -> Tensor:
    """uint8 ``[n, C, side, side]``."""
    shape = split.inputs.shape
    side = size or min(THUMBNAIL, *(shape[1:] if shape is not None else (THUMBNAIL,)))
    crop = CentreCrop(side)  # a few rows at a time: those in memory are copied before they are cropped
    return torch.cat([split.inputs.read(some, crop, [0] * len(some)) for some in torch.split(rows, READ)])
