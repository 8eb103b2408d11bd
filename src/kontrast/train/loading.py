"""`load`: any encoder, trained here or not, ready to embed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kontrast import models
from kontrast.files import expanded
from kontrast.registry import FAMILIES
from kontrast.runs import Run
from kontrast.train import encoder_files, preparing


def load(
    source: str | os.PathLike[str] | Run,
    *,
    pretrained: str | os.PathLike[str] | bool | Mapping[str, Any] | None = None,
    preprocessing: models.Preprocessing | None = None,
    **options: Any,
) -> models.Encoder:
    """Load an encoder: of a finished run, or by name with pretrained weights.

    Args:
        source: A run or its folder (an export to safetensors works too), or an encoder's name: ``"timm/resnet50"``,
            ``"timm/vit_small_patch14_dinov2.lvd142m"``, ``"resnet50"``.
        pretrained: The weights of an encoder by name: True for those that timm or torchvision publish, a name of
            theirs, a file or a run's folder (`kontrast.models.pretrained`).
        preprocessing: How images become inputs, for weights that do not say it, or in place of what they say.
        **options: Those of `kontrast.models.encoder`: ``image_size``, ``in_channels``, ``stem`` …

    Returns:
        The encoder, in eval mode, on the CPU: call it on inputs, or ``encoder.embed(images)``.

    Raises:
        ValueError: There is no such run or encoder, the weights do not fit, cannot be downloaded, or were not named.

    >>> load("timm/resnet50")
    Traceback (most recent call last):
        ...
    ValueError: source=timm/resnet50: is an encoder's name, and its weights must be named: pretrained=True ...
    """
    if is_run(source):
        if pretrained is not None or options:
            named = ["pretrained"] * (pretrained is not None) + list(options)
            raise ValueError(f"{named[0]}: must be left out for a run, which has its own weights: {source}")
        encoder = encoder_files.load(source)
        encoder.preprocessing = preprocessing or encoder.preprocessing
        return encoder
    name = str(source)
    weights = models.find_weights(name, pretrained)
    if weights is None:
        raise ValueError(
            f"source={name}: is an encoder's name, and its weights must be named: pretrained=True (of its library), "
            f"pretrained=FILE, or the folder of a run in place of the name. models.encoder({name!r}) makes one with "
            "random weights"
        )
    how = preprocessing or weights.preprocessing
    if how is not None and not models.takes_vectors(name):
        options = {"image_size": how.size, "in_channels": len(how.mean), **options}
    encoder = models.encoder(name, pretrained=pretrained, seed=0, **options).eval()
    if how is not None and preprocessing is None and isinstance(image_size := options.get("image_size"), int):
        how = models.Preprocessing(image_size, how.mean, how.std, how.interpolation, how.crop)
    encoder.preprocessing = how
    encoder.embedder = preparing.embed_vectors if models.takes_vectors(name) else preparing.embed
    return encoder


def is_run(source: object) -> bool:
    """Whether a source is a run or a folder, and not an encoder's name; a name wins over a folder that holds no run.

    >>> is_run("resnet18"), is_run("runs/tcl-fashion-mini-0c2d3d35"), is_run("timm/resnet50")
    (False, True, False)
    """
    if isinstance(source, Run) or not isinstance(source, str) or source not in FAMILIES["encoder"]:
        return True
    return Run(expanded(source)).card_file.is_file()
