r"""Where an encoder starts: checked before the data are read, described when it is loaded, compared with the end.

`check_start` reads the file of `encoder.pretrained` and compares it with the encoder that the recipe names. Before the
data are read nobody knows the channels of the images, so an encoder of 3 channels is made (on torch's meta device: it
has shapes and no memory), and a file is refused if it lacks tensors of the encoder, unless ``encoder.allow_missing`` is
set, or has less than half of them. Published weights are fetched here.

`compare_with_start` evaluates a pretrained encoder as it was before the first step, by the same protocol and on the
same rows as at the end. With right_i, right'_i in {0, 1} for test row i at the start and at the end, and M rows:

    (1)  d_i = right'_i − right_i,   difference d = mean of d_i,   error = √((mean of d_i² − d²)/M)

The error is that of paired rows: rows that are right both times, or wrong both times, add nothing to it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from kontrast import models
from kontrast.evaluate import Result, Subject, evaluate
from kontrast.recipe import Part, Recipe
from kontrast.registry import FAMILIES

PROTOCOL = "knn20"  # no training of its own, so it costs one pass of the data through the encoder
LEAST = 0.5  # of the encoder's tensors that a file must have


def check_start(recipe: Recipe) -> None:
    """Raise if the encoder cannot start as a resolved recipe says; no data are read.

    Raises:
        ValueError: the encoder's name has a tag of timm's and starts at random, or the file of ``encoder.pretrained`` is
            missing, damaged, or of another network, or published weights cannot be had.
        OSError: the file may not be read.

    >>> check_start(Recipe.of({"method": "supcon", "train": {"epochs": 1}, "encoder": {"name": "mlp", "pretrained": "x"}}))
    Traceback (most recent call last):
        ...
    ValueError: encoder.pretrained=x: no file x; expected a .safetensors file, a torch.save file or a run folder
    """  # noqa: E501
    part = recipe.encoder
    models.refuse_tag(part.name, part.options.get("pretrained"))
    weights = models.find_weights(part.name, part.options.get("pretrained"))
    if weights is None:
        return
    encoder, file = _shapes_of(recipe, weights), weights.label
    try:
        report, tensors = models.fit_weights(encoder, weights.content(encoder))
    except ValueError as error:
        raise ValueError(f"encoder.pretrained={file}: {error}") from None
    report = replace(report, source=weights.name)
    expected, available = len(_without_counters(encoder.state_dict())), len(_without_counters(tensors))
    if available < LEAST * expected:
        raise ValueError(
            f"encoder.pretrained={file}: has {available} of the {expected} tensors of encoder "
            f"{part.name}, so most of it would start from random weights ({report}). Use the encoder that the file is "
            "of, or give the file's tensors this encoder's names."
        )
    of_size = set(report.mismatched)  # the first layer, until the channels and the size of the images are known
    report = replace(report, missing=[name for name in report.missing if name not in of_size])
    if report.missing and not part.options.get("allow_missing"):
        raise ValueError(models.missing_error(part.name, file, report))


def _shapes_of(recipe: Recipe, weights: models.Weights) -> models.Encoder:
    """The recipe's encoder for images of 3 channels, or vectors of one number: right in all but its first layer."""
    of_training = FAMILIES["encoder"].common  # how it starts and is trained, not what it is
    options = {name: value for name, value in recipe.encoder.options.items() if name not in of_training}
    if models.takes_vectors(recipe.encoder.name):
        options |= {"in_features": 1}
    else:
        size = recipe.data.size or recipe.augment.size or getattr(weights.preprocessing, "size", None)
        options |= {"in_channels": recipe.data.channels or 3, "image_size": size}
    try:
        with torch.device("meta"):
            return models.encoder(recipe.encoder.name, **options)
    except (RuntimeError, NotImplementedError):  # some of timm's compute with their tensors while they are made
        return models.encoder(recipe.encoder.name, **options)


def _without_counters(names: Any) -> list[str]:
    """Without the counters of batch norm, which old files lack."""
    return [name for name in names if not name.endswith("num_batches_tracked")]


def describe_start(encoder: models.Encoder) -> str | None:
    """What was loaded, in a line; None for a random start.

    >>> from kontrast import models
    >>> describe_start(models.encoder("mlp", in_features=2)) is None
    True
    """
    loaded = encoder.loaded
    if loaded is None:
        return None
    statistics = "keeps its statistics" if encoder.norm == "frozen" else "updates its statistics"
    return (
        f"encoder.pretrained: {len(loaded.loaded)} tensors loaded, {len(loaded.missing)} missing, "
        f"{len(loaded.unexpected)} unexpected, from {loaded.source}; "
        f"batch norm {statistics} (encoder.norm={encoder.norm})"
    )


def compare_with_start(recipe: Recipe, start: Subject, end: Subject, results: list[Result]) -> dict[str, Any]:
    """The start's kNN, and the difference that the training made to it, for result.json.

    Args:
        recipe: The resolved recipe; its options of knn20 are used, if it has that protocol.
        start: The encoder before the first step.
        end: The trained encoder.
        results: Those of the end, one for each of the recipe's protocols; knn20 is evaluated again if it is not there.

    Returns:
        ``weights``, ``norm``, ``result`` (the start's, with its protocol) and ``difference`` (end − start).
    """
    names = [protocol.name for protocol in recipe.evaluate.protocols]
    place = names.index(PROTOCOL) if PROTOCOL in names else None
    options = Part(name=PROTOCOL).options if place is None else recipe.evaluate.protocols[place].options
    before, weights = evaluate(start, PROTOCOL, seed=recipe.seed, **options), recipe.encoder.options["pretrained"]
    after = evaluate(end, PROTOCOL, seed=recipe.seed, **options) if place is None else results[place]
    labels = end.test_labels
    return {
        "weights": f"encoder.pretrained={'true' if weights is True else weights}, before the first step",
        "norm": recipe.encoder.options.get("norm"),
        "result": {**before.record(), "seeds": [recipe.seed]},
        "difference": {
            **paired_difference(before.predictions == labels, after.predictions == labels),
            "name": PROTOCOL,
            "protocol": f"end − start, on the same {len(labels):,} test rows, paired; {before.protocol}",
        },
    }


def paired_difference(before: Tensor, after: Tensor) -> dict[str, Any]:
    """(1) of two runs of one test: which rows were right before and after, bool ``[M]``.

    >>> before, after = torch.tensor([True, True, True, False]), torch.tensor([True, False, False, True])
    >>> {name: round(value, 3) for name, value in paired_difference(before, after).items()}
    {'value': -0.25, 'error': 0.415, 'lost': 2, 'won': 1, 'test_rows': 4}
    """
    rows = len(before)
    lost, won = int((before & ~after).sum()), int((~before & after).sum())
    d = (won - lost) / rows
    error = math.sqrt(max((lost + won) / rows - d * d, 0.0) / rows)
    return {"value": d, "error": error, "lost": lost, "won": won, "test_rows": rows}
