"""One encoder a file; the file name is the encoder's name (``small-resnet`` is ``small_resnet.py``).

A file with a table ``ENTRIES`` has several: `resnet`, and `timm` with all of timm's names.

>>> from kontrast import models
>>> models.names()
['mlp', 'resnet101', ...]
>>> models.encoder("small-resnet", in_channels=1, image_size=28).feature_dim
64
>>> models.encoder("resnet81")
Traceback (most recent call last):
    ...
ValueError: no encoder 'resnet81'; did you mean 'resnet18'? Known: mlp, resnet101, resnet18, resnet34, resnet50, ...
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kontrast.models.encoders._base import Encoder, ImageSize, seeded
from kontrast.models.pretrained import Weights, find_weights
from kontrast.models.weights import Loaded, fit_weights, take_weights
from kontrast.registry import FAMILIES, quoted

FAMILY = FAMILIES["encoder"]
NORMS = ("frozen", "train")

__all__ = ["FAMILY", "Encoder", "encoder", "names", "norm_of", "refuse_tag", "takes_vectors"]


def names() -> list[str]:
    """Every encoder's name; ``timm/…`` stands for all of timm's.

    Returns:
        The names in alphabetical order.

    >>> names()[0]
    'mlp'
    """
    return FAMILY.names()


def encoder(
    name: str,
    *,
    in_channels: int = 3,
    image_size: ImageSize | None = None,
    stem: str = "auto",
    pretrained: str | os.PathLike[str] | bool | Mapping[str, Any] | None = None,
    prefix: str | None = None,
    norm: str | None = None,
    allow_missing: bool | None = None,
    seed: int | None = None,
    **options: Any,
) -> Encoder:
    """The encoder of this name: a module whose call gives ``h [N, feature_dim]``.

    Args:
        name: one of `names`.
        in_channels: of the images.
        image_size: of the images.
        stem: ``"auto"`` takes the small-image stem for sides up to 64.
        pretrained: the weights to start from: a file or a run's folder; True for those that timm publishes for the name
            and tag, or torchvision for its ResNets; the name of torchvision's (``"IMAGENET1K_V1"``). Published ones are
            downloaded if the library's cache lacks them. ``encoder.loaded`` says what was loaded,
            ``encoder.preprocessing`` what images the weights learned with.
        prefix: of the encoder's names in that file, if it is not a usual one (see `load_weights`).
        norm: batch norm in training after a pretrained start: ``"frozen"`` (the default) keeps its running statistics,
            ``"train"`` updates them (see `Encoder`).
        allow_missing: True allows tensors that the file lacks or has in another size to keep their random start.
        seed: fixes the random start, and leaves torch's own generator as it was; without it, that one is used.
        **options: the encoder's own (``FAMILY.options(name)``).

    Returns:
        The encoder.

    Raises:
        ValueError: an unknown name or option, a name of timm's with a tag and no ``pretrained``, a file that cannot be
            read or lacks some of the tensors, weights that cannot be downloaded, ``norm="frozen"`` without
            ``pretrained``.

    >>> import torch
    >>> encoder("resnet18", image_size=32, seed=0)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    >>> encoder("mlp", in_features=20, features=64)(torch.zeros(2, 20)).shape
    torch.Size([2, 64])
    """
    pretrained = None if pretrained is False else pretrained
    if prefix is not None and pretrained is None:
        raise ValueError(f"prefix={prefix!r}: must go with pretrained=FILE, the file whose names have it")
    norm = norm_of(norm, pretrained)
    refuse_tag(name, pretrained)
    weights = find_weights(name, pretrained)
    of_data = {"in_channels": in_channels, "image_size": image_size}  # an encoder takes of them what it needs
    options |= {key: value for key, value in of_data.items() if key in inspect.signature(FAMILY[name]).parameters}
    if stem != "auto":
        options["stem"] = stem
    with seeded(seed):
        module: Encoder = FAMILY.make(name, **options)
    if weights is not None:
        module.loaded = _start(module, name, weights, prefix, allow_missing=bool(allow_missing))
        module.preprocessing = weights.preprocessing
    module.norm = norm
    return module.train(module.training)


def _start(module: Encoder, name: str, weights: Weights, prefix: str | None, *, allow_missing: bool) -> Loaded:
    """Load the weights; a tensor that they lack is an error unless that is allowed."""
    report, tensors = fit_weights(module, weights.content(module), prefix=prefix)
    report = replace(report, source=weights.name)
    if report.missing and not allow_missing:
        raise ValueError(missing_error(name, weights.label, report))
    take_weights(module, report, tensors)
    return report


def missing_error(name: str, label: str, report: Loaded) -> str:
    """The error for tensors that would keep their random start.

    Args:
        name: the encoder's name.
        label: ``pretrained`` as a recipe writes it.
        report: of `fit_weights`.

    Returns:
        The text.
    """
    count = f"{len(report.missing)} of the {len(report.missing) + len(report.loaded)} tensors of encoder {name}"
    notes = "".join(f" {note}." for note in report.notes)
    return (
        f"encoder.pretrained={label}: {count} are not in it and would start from random weights ({report}).{notes} Use "
        "the encoder and the options that the weights are of; encoder.allow_missing=true starts so all the same"
    )


def takes_vectors(name: str) -> bool:
    """Whether an encoder takes vectors: it has an argument ``in_features``.

    Args:
        name: one of `names`.

    Returns:
        True for vectors, False for images.

    Raises:
        ValueError: an unknown name.

    >>> takes_vectors("mlp"), takes_vectors("resnet18")
    (True, False)
    """
    return "in_features" in inspect.signature(FAMILY[name]).parameters


def norm_of(norm: str | None, pretrained: object) -> str | None:
    """What batch norm does in training: None for a random start, ``"frozen"`` or ``"train"`` for a pretrained one.

    Args:
        norm: the option of the recipe: ``"frozen"``, ``"train"`` or None.
        pretrained: the file of weights; None for a random start.

    Returns:
        ``"frozen"``, ``"train"`` or None.

    Raises:
        ValueError: another word, or ``"frozen"`` without a pretrained start.

    >>> norm_of(None, None), norm_of(None, "weights.pt"), norm_of("train", "weights.pt"), norm_of("train", None)
    (None, 'frozen', 'train', None)
    """
    if norm is not None and norm not in NORMS:
        raise ValueError(f"encoder.norm={quoted(norm)}: must be frozen or train.")
    if pretrained is not None:
        return norm or "frozen"
    if norm == "frozen":
        raise ValueError(
            "encoder.norm=frozen: keeps the batch norm statistics of a pretrained start, and this encoder starts from "
            "random weights. Use encoder.pretrained=FILE, or leave encoder.norm out."
        )
    return None  # "train" is what a random start does anyway


def refuse_tag(name: str, pretrained: object = None) -> None:
    """Raise for ``timm/resnet50.a1_in1k`` without ``pretrained``: the tag names weights, which would not be loaded.

    Args:
        name: the name of an encoder.
        pretrained: the weights that it starts from; None for a random start.

    Raises:
        ValueError: it is a name of timm's with a tag, and starts at random.

    >>> refuse_tag("timm/resnet50"), refuse_tag("timm/resnet50.a1_in1k", True)
    (None, None)
    >>> refuse_tag("timm/resnet50.a1_in1k")
    Traceback (most recent call last):
        ...
    ValueError: encoder=timm/resnet50.a1_in1k: the tag 'a1_in1k' names pretrained weights, which only ...
    """
    model, _, tag = name.partition(".")
    if name.startswith("timm/") and tag and pretrained in (None, False):
        raise ValueError(
            f"encoder={name}: the tag {quoted(tag)} names pretrained weights, which only encoder.pretrained loads. Use "
            "encoder.pretrained=true for timm's (from its cache or the hub), encoder.pretrained=FILE for a file that "
            f"you have, or encoder={model} for random weights."
        )
