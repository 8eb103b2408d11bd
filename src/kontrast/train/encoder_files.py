"""encoder.safetensors and model.json of a run: the encoder's weights, and how to rebuild it with or without kontrast.

The tensors have the names of the plain model that the encoder is or contains: torchvision's for ``resnet18``, timm's
for ``timm/…``, those of a `torch.nn.Sequential` for ``mlp``, those of a class in plain torch for ``small-resnet``
(model.json has its source). Each encoder says this of itself (`kontrast.models.Encoder`). model.json also describes the
inputs, and has the lines that load the weights without kontrast (with it, if only kontrast has the encoder) and
those that turn an image file into an input:

    (1)  s = round(f · min(H, W));   the middle s × s pixels, resized to S × S with antialiasing

f is the card's ``crop``: 1 where training and evaluation had images at one size (their own, or ``data.size``), 0.875
where images of several sizes were evaluated at their middle, and what the checkpoint says after a pretrained start.
The resize is the card's ``interpolation``, bilinear or bicubic (cards of older runs lack it: bilinear). A JPEG is
decoded at 1/2, 1/4 or 1/8 as long as s stays at least S. The lines give exactly the pixels of `kontrast.data.images`,
but for transparent and 16-bit images.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

import kontrast
from kontrast import models
from kontrast.data.folder import OTHER
from kontrast.files import RUN_AGAIN, read_regular
from kontrast.registry import FAMILIES, one_line
from kontrast.runs import Run
from kontrast.train import preparing
from kontrast.train.job import Job, options_of_inputs

KONTRAST = """from kontrast import models
from safetensors.torch import load_file
model = models.encoder({name!r}, {arguments})
model.load_state_dict(load_file("encoder.safetensors"))
model.eval()"""
PREPARE = """import math, torch
from PIL import Image, ImageOps
from torchvision.transforms.v2 import functional as F

def prepared(path):  # an image file → float32 [1, {channels}, {size}, {size}]
    image = Image.open(path)
    side = {before}
    if image.format == "JPEG" and side > {size}:  # decoded at 1/2, 1/4 or 1/8 where that is large enough
        image.draft(None, tuple(math.ceil(n * ({size} / side)) for n in image.size))
    image = F.pil_to_tensor(ImageOps.exif_transpose(image).convert("{mode}"))
    height, width = image.shape[-2:]
    side = {after}
    top, left = (height - side) // 2, (width - side) // 2
    image = F.resized_crop(image, top, left, side, side, [{size}, {size}], {how}antialias=True)
    image = F.to_dtype(image, torch.float32, scale=True)
    return {last}[None]"""
DIGEST = "weights_sha256"


def export(job: Job, run: Run) -> None:
    """Write encoder.safetensors and model.json."""
    encoder = job.method.encoder
    assert isinstance(encoder, models.Encoder)
    content = safetensors.torch.save(plain_state(encoder), metadata={"format": "pt"})
    run.write_encoder(content, {**card(job, encoder), DIGEST: hashlib.sha256(content).hexdigest()})


def plain_state(encoder: models.Encoder) -> dict[str, Tensor]:
    """The weights by the names of the plain model, on the CPU, each in memory of its own."""
    return {
        name.removeprefix(encoder.plain_prefix): value.detach().cpu().clone().contiguous()
        for name, value in encoder.state_dict().items()
    }


def card(job: Job, encoder: models.Encoder) -> dict[str, Any]:
    """The content of model.json: all that is needed to rebuild the encoder, and a description for people."""
    recipe, data = job.recipe, job.data
    inputs: dict[str, Any] = {
        "kind": data.kind,
        "shape": list(job.input_shape),
        "range": "pixels / 255, then (x − mean) / std" if data.kind == "image" else "(x − mean) / std",
        "mean": list(data.mean),
        "std": list(data.std),
    }
    if (how := job.preprocessing) is not None:
        inputs["crop"], inputs["interpolation"] = how.crop, how.interpolation
        inputs["resize"] = describe_resize(inputs)
    unread = [file for file, why in data.skipped if why != OTHER]
    of_training = FAMILIES["encoder"].common  # how an encoder starts and is trained, not what it is
    options = {option: value for option, value in recipe.encoder.options.items() if option not in of_training}
    record: dict[str, Any] = {
        "encoder": {"name": recipe.encoder.name, **options},
        "input": inputs,
        "feature_dim": encoder.feature_dim,
        "recipe": recipe.name,
        "hash": recipe.hash,
        "method": recipe.method.model_dump(mode="json"),
        "data": {"name": data.name, "note": data.note, "classes": data.class_names, "unread": len(unread)},
        "kontrast": kontrast.__version__,
        "load": loading_code(encoder, recipe.encoder.name, options, inputs["shape"]),
    }
    if data.kind == "image":
        record["prepare"] = preparing_code(inputs)
    source = encoder.source_file()
    if source is not None:
        record["class"] = source[1]
    return record


def loading_code(encoder: models.Encoder, name: str, options: Mapping[str, Any], shape: Sequence[int]) -> str:
    """The lines that load the weights, without kontrast where that is possible; ``shape`` is that of one input."""
    code = encoder.loading_code()
    if code is not None:
        return code
    arguments = ", ".join(f"{option}={value!r}" for option, value in {**options_of_inputs(shape), **options}.items())
    return KONTRAST.format(name=name, arguments=arguments)


def load(run: str | os.PathLike[str] | Run) -> models.Encoder:
    """Load the encoder of a finished run from model.json and the weights alone; `kontrast.load` calls it.

    Args:
        run: The run, or its folder; an export to safetensors works too.

    Returns:
        The encoder, in eval mode, on the CPU; it knows its preprocessing.

    Raises:
        ValueError: The folder has no encoder, or its files are damaged.
    """
    run = Run(run)
    card = run.card
    name = card.encoder.name.partition(".")[
        0
    ]  # timm/NAME.TAG of older runs, which did not start from the tag's weights
    state = read_weights(run.weights_file, card.weights_sha256)
    try:
        encoder = models.encoder(
            name, **options_of_inputs(card.input.shape), seed=0, **(card.encoder.model_extra or {})
        )
        encoder.load_state_dict({encoder.plain_prefix + key: value for key, value in state.items()})
    except (TypeError, RuntimeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{run.card_file} is damaged ({one_line(str(error)[:200])}); {RUN_AGAIN}") from error
    inputs = read_card(run)["input"]
    if inputs["kind"] == "image":
        encoder.preprocessing, encoder.embedder = preprocessing_of(run, inputs), preparing.embed
    else:
        encoder.standardisation, encoder.embedder = (inputs["mean"], inputs["std"]), preparing.embed_vectors
    return encoder.eval()


def preprocessing_of(run: Run, inputs: Mapping[str, Any]) -> models.Preprocessing | None:
    """What a run's images went through, by its card; None for vectors."""
    crop = crop_of(run, inputs)
    return models.Preprocessing.of_card(inputs if crop is None else {**inputs, "crop": crop})


def read_card(run: Run) -> dict[str, Any]:
    """model.json as plain values, validated."""
    return run.card.model_dump(mode="json", by_alias=True, exclude_unset=True)


def read_weights(path: Path, digest: str | None) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file.

    Args:
        path: The file.
        digest: The SHA-256 of its content; None in older cards.

    Raises:
        ValueError: The content does not match the digest, or is not a safetensors file.
    """
    content = read_regular(path)
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path} is damaged (its content does not match the digest in model.json); {RUN_AGAIN}")
    try:
        return safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is damaged ({error}); {RUN_AGAIN}") from error


# ------------------------------------------------------------------------------------------------ the inputs


def crop_of(run: Run, inputs: Mapping[str, Any]) -> float | None:
    """f of (1), from a card's ``input``, else (older runs) from the recipe; None if it is unknown."""
    if inputs["kind"] != "image":
        return None
    if "crop" in inputs:
        return float(inputs["crop"])
    with contextlib.suppress(ValueError, OSError):
        return 1.0 if run.recipe.data.size is not None else None
    return None


def describe_resize(inputs: Mapping[str, Any]) -> str | None:
    """(1) in words, from a card's ``input``; None for vectors, or if the crop is unknown.

    >>> describe_resize({"kind": "image", "shape": [3, 32, 32], "crop": 0.875})
    'the middle square, 0.875 of the shorter side, resized to 32×32 (bilinear, with antialiasing)'
    """
    if inputs["kind"] != "image" or "crop" not in inputs:
        return None
    fraction, (_, height, width) = float(inputs["crop"]), inputs["shape"]
    part = "as large as the image has it" if fraction == 1 else f"{fraction:g} of the shorter side"
    how = inputs.get("interpolation") or "bilinear"
    return f"the middle square, {part}, resized to {height}×{width} ({how}, with antialiasing)"


def preparing_code(inputs: Mapping[str, Any], *, normalise: bool = True) -> str | None:
    """(1) as a Python function that needs PIL and torchvision alone; None where `describe_resize` is."""
    if describe_resize(inputs) is None:
        return None
    channels, size = int(inputs["shape"][0]), int(inputs["shape"][1])
    fraction = float(inputs["crop"])
    before, after = "min(image.size)", "min(height, width)"
    if fraction != 1:
        before, after = (f"round({fraction!r} * {least})" for least in (before, after))
    mean, std = ([float(value) for value in inputs[key]] for key in ("mean", "std"))
    last = f"F.normalize(image, {mean}, {std})" if normalise else "image"
    mode = "RGB" if channels == 3 else "L"
    how = "interpolation=F.InterpolationMode.BICUBIC, " if inputs.get("interpolation") == "bicubic" else ""
    return PREPARE.format(channels=channels, size=size, before=before, after=after, how=how, mode=mode, last=last)
