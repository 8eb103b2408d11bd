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
from pathlib import Path
from typing import Any

from kontrast.models.encoders._base import Encoder, ImageSize, seeded
from kontrast.models.weights import load_weights
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
    pretrained: str | Path | None = None,
    prefix: str | None = None,
    norm: str | None = None,
    seed: int | None = None,
    **options: Any,
) -> Encoder:
    """The encoder of this name: a module whose call gives ``h [N, feature_dim]``.

    Args:
        name: one of `names`.
        in_channels: of the images.
        image_size: of the images.
        stem: ``"auto"`` takes the small-image stem for sides up to 64.
        pretrained: a file of weights to start from; ``encoder.loaded`` says what was loaded.
        prefix: of the encoder's names in that file, if it is not a usual one (see `load_weights`).
        norm: batch norm in training after a pretrained start: ``"frozen"`` (the default) keeps its running statistics,
            ``"train"`` updates them (see `Encoder`).
        seed: fixes the random start, and leaves torch's own generator as it was; without it, that one is used.
        **options: the encoder's own (``FAMILY.options(name)``).

    Returns:
        The encoder.

    Raises:
        ValueError: an unknown name or option, a name of timm's with a tag, a file that cannot be read or of which
            nothing fits, ``norm="frozen"`` without ``pretrained``.

    >>> import torch
    >>> encoder("resnet18", image_size=32, seed=0)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    >>> encoder("mlp", in_features=20, features=64)(torch.zeros(2, 20)).shape
    torch.Size([2, 64])
    """
    if prefix is not None and pretrained is None:
        raise ValueError(f"prefix={prefix!r}: must go with pretrained=FILE, the file whose names have it")
    norm = norm_of(norm, pretrained)
    refuse_tag(name)
    of_data = {"in_channels": in_channels, "image_size": image_size}  # an encoder takes of them what it needs
    options |= {key: value for key, value in of_data.items() if key in inspect.signature(FAMILY[name]).parameters}
    if stem != "auto":
        options["stem"] = stem
    with seeded(seed):
        module: Encoder = FAMILY.make(name, **options)
    if pretrained is not None:
        module.loaded = load_weights(module, pretrained, prefix=prefix)
    module.norm = norm
    return module.train(module.training)


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


def refuse_tag(name: str) -> None:
    """Raise for ``timm/resnet50.a1_in1k``: the tag names pretrained weights, which are not loaded.

    Args:
        name: the name of an encoder.

    Raises:
        ValueError: it is a name of timm's with a tag.

    >>> refuse_tag("timm/resnet50")
    >>> refuse_tag("timm/resnet50.a1_in1k")
    Traceback (most recent call last):
        ...
    ValueError: encoder=timm/resnet50.a1_in1k: the tag 'a1_in1k' names pretrained weights, and kontrast cannot ...
    """
    model, _, tag = name.partition(".")
    if name.startswith("timm/") and tag:
        raise ValueError(
            f"encoder={name}: the tag {quoted(tag)} names pretrained weights, and kontrast cannot download them. Use "
            f"encoder={model} for random weights, or encoder={model} encoder.pretrained=FILE for weights from a file."
        )
