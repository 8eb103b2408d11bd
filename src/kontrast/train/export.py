"""What a run leaves behind for others: the encoder's weights, and how to rebuild it with or without kontrast.

encoder.safetensors has the plain names of the model it is: torchvision's for ``resnet…``, timm's for ``timm/…``, those
of a `torch.nn.Sequential` for ``mlp``, and of a class in plain torch for ``small-resnet``, which model.json carries as
text. It also says for which inputs, cropped, resized and normalised how, and which lines do that and load the weights
without kontrast (an encoder that only kontrast has is loaded with it). An image file becomes an input by

    (1)  s = round(f · min(H, W));   the middle s × s pixels, resized to S × S: bilinear, with antialiasing

f is the card's ``crop``: 1 where training and evaluation had images at one size (their own, or ``data.size``), 0.875
where images of several sizes were evaluated at their middle. A JPEG is decoded at 1/2, 1/4 or 1/8 as long as s stays at
least S. The lines give the very pixels that `kontrast.data.images` gives, but for transparent and 16-bit images.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

import kontrast
from kontrast import models
from kontrast.data.folder import OTHER
from kontrast.evaluate.features import FRACTION
from kontrast.files import RUN_AGAIN, read_regular
from kontrast.models.encoders import resnet, small_resnet
from kontrast.registry import one_line
from kontrast.runs import ModelCard, Run
from kontrast.train.job import Job

TORCHVISION = """import torch, torchvision
from safetensors.torch import load_file
model = torchvision.models.{name}()
{stem}model.fc = torch.nn.Identity()
model.load_state_dict(load_file("encoder.safetensors"))
model.eval()"""
SMALL_STEM = """model.conv1 = torch.nn.Conv2d({channels}, 64, 3, stride=1, padding=1, bias=False)  # small images
model.maxpool = torch.nn.Identity()
"""
OTHER_CHANNELS = "model.conv1 = torch.nn.Conv2d({channels}, 64, 7, stride=2, padding=3, bias=False)\n"
TIMM = """import timm
from safetensors.torch import load_file
model = timm.create_model({name!r}{words})
model.load_state_dict(load_file("encoder.safetensors"))
model.eval()"""
MLP = """import torch
from safetensors.torch import load_file
model = torch.nn.Sequential({layers})
model.load_state_dict(load_file("encoder.safetensors"))
model.eval()  # of vectors; of images as model(x.flatten(1))"""
SMALL_RESNET = """from safetensors.torch import load_file
from small_resnet import PlainSmallResNet  # "class" of this card, saved as small_resnet.py: it needs torch alone
model = PlainSmallResNet({arguments})
model.load_state_dict(load_file("encoder.safetensors"))
model.eval()"""
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
    image = F.resized_crop(image, top, left, side, side, [{size}, {size}], antialias=True)
    image = F.to_dtype(image, torch.float32, scale=True)
    return {last}[None]"""
DIGEST = "weights_sha256"
OF_TRAINING = ("pretrained", "norm")
"""Options of an encoder that say how it is trained, not what it is."""
INSIDE = {"timm": "net.", "mlp": "layers."}
"""Where the plain model stands inside ours."""


def export(job: Job, run: Run) -> None:
    """Write encoder.safetensors and model.json."""
    encoder = job.method.encoder
    content = save(plain_state(encoder, job.recipe.encoder.name), metadata={"format": "pt"})
    run.write_encoder(content, {**card(job, encoder), DIGEST: hashlib.sha256(content).hexdigest()})


def plain_state(encoder: nn.Module, name: str) -> dict[str, Tensor]:
    """The weights by the names of the plain model, on the CPU, each in memory of its own."""
    inside = INSIDE.get(name.partition("/")[0], "")
    return {
        key.removeprefix("_orig_mod.").removeprefix(inside): value.detach().cpu().clone().contiguous()
        for key, value in encoder.state_dict().items()
    }


def card(job: Job, encoder: nn.Module) -> dict[str, Any]:
    """model.json: all that is needed to rebuild the encoder, and words for people."""
    recipe, data = job.recipe, job.data
    shape = list(job.train.inputs.shape or (len(data.mean), job.size, job.size))
    name = recipe.encoder.name
    given: dict[str, Any] = {
        "kind": data.kind,
        "shape": shape if data.kind == "vector" else [len(data.mean), job.size, job.size],
        "range": "pixels / 255, then (x − mean) / std" if data.kind == "image" else "(x − mean) / std",
        "mean": list(data.mean),
        "std": list(data.std),
    }
    if data.kind == "image":  # as evaluated: loaded at one size, or of several sizes and read at their middle
        given["crop"] = FRACTION if job.train.inputs.shape is None else 1.0
        given["resize"] = in_words(given)
    unread = [file for file, why in data.skipped if why != OTHER]
    found: dict[str, Any] = {
        "encoder": {"name": name, **{k: v for k, v in recipe.encoder.options.items() if k not in OF_TRAINING}},
        "input": given,
        "feature_dim": int(getattr(encoder, "feature_dim", 0)),
        "recipe": recipe.name,
        "hash": recipe.hash,
        "method": recipe.method.model_dump(mode="json"),
        "data": {"name": data.name, "note": data.note, "classes": data.class_names, "unread": len(unread)},
        "kontrast": kontrast.__version__,
        "load": loading(encoder, name, recipe.encoder.options, given["shape"]),
    }
    if data.kind == "image":
        found["prepare"] = in_lines(given)
    if name == "small-resnet":
        found["class"] = small_resnet_source()
    return found


def small_resnet_source() -> str:
    """The file that makes ``small-resnet`` with torch alone."""
    return inspect.getsource(sys.modules[small_resnet.PlainSmallResNet.__module__])


def loading(encoder: nn.Module, name: str, options: Mapping[str, Any], shape: Sequence[int]) -> str:
    """The lines that load the weights, without kontrast where that can be; ``shape`` is that of one input."""
    channels = shape[0]
    if name.startswith("timm/"):
        given = timm_arguments(encoder, options, shape)
        words = "".join(f", {key}={value!r}" for key, value in given.items())
        return TIMM.format(name=name.removeprefix("timm/"), words=words)
    if name == "mlp":
        layers = encoder.get_submodule("layers").children()
        return MLP.format(layers=", ".join(_constructor(layer) for layer in layers))
    if name == "small-resnet":
        assert isinstance(encoder, small_resnet.PlainSmallResNet)
        return SMALL_RESNET.format(arguments=", ".join(f"{k}={v!r}" for k, v in encoder.arguments.items()))
    if name not in resnet.ENTRIES:  # an encoder that only this package has
        given = {"in_channels": channels, "image_size": shape[-1], **options}
        given = {key: value for key, value in given.items() if key not in OF_TRAINING}
        return KONTRAST.format(name=name, arguments=", ".join(f"{key}={value!r}" for key, value in given.items()))
    stem = SMALL_STEM if small_stem(encoder) else OTHER_CHANNELS if channels != 3 else ""
    return TORCHVISION.format(name=name, stem=stem.format(channels=channels))


def timm_arguments(encoder: nn.Module, options: Mapping[str, Any], shape: Sequence[int]) -> dict[str, Any]:
    """What timm.create_model is to be given, beside the name, for a ``timm/…`` encoder."""
    net: Any = encoder.get_submodule("net")
    fixed = bool((net.default_cfg or {}).get("fixed_input_size", False))  # transformers: made for one size of image
    size = {"img_size": tuple(shape[1:])} if fixed else {}
    ours = ("stem", "channels_last", "prefix", *OF_TRAINING)
    return {"num_classes": 0, "in_chans": shape[0], **size, **{k: v for k, v in options.items() if k not in ours}}


def small_stem(encoder: nn.Module) -> bool:
    """Whether a ResNet begins with the 3×3 convolution of small images."""
    return tuple(encoder.get_parameter("conv1.weight").shape[2:]) == (3, 3)


def _constructor(layer: nn.Module) -> str:
    """The call that makes a layer of ``mlp``, in words that every torch understands."""
    if isinstance(layer, nn.Linear):
        return f"torch.nn.Linear({layer.in_features}, {layer.out_features}, bias={layer.bias is not None})"
    if isinstance(layer, nn.BatchNorm1d):
        return f"torch.nn.BatchNorm1d({layer.num_features})"
    return f"torch.nn.{type(layer).__name__}()"


def rebuild(run: Run) -> models.Encoder:
    """The encoder of a run, in eval mode; nothing but model.json and the weights is read."""
    card = run.card
    name, options, shape = card.encoder.name, dict(card.encoder.model_extra or {}), card.input.shape
    if name.startswith("timm/"):
        name = name.partition(".")[0]  # older runs may have a tag, whose weights they did not have
    state, inside = read_weights(run.weights_file, card.weights_sha256), INSIDE.get(name.partition("/")[0], "")
    vectors = card.input.kind == "vector"
    size: dict[str, Any] = {"in_features": shape[0]} if vectors else {"in_channels": shape[0], "image_size": shape[1]}
    try:
        encoder = models.encoder(name, **size, seed=0, **options)
        encoder.load_state_dict({inside + key: value for key, value in state.items()})
    except (TypeError, RuntimeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{run.card_file} is damaged ({one_line(str(error)[:200])}); {RUN_AGAIN}") from error
    return encoder.eval()


def read_card(run: Run) -> dict[str, Any]:
    """model.json as plain values, validated."""
    return plain_card(run.card)


def plain_card(card: ModelCard) -> dict[str, Any]:
    """A card as the plain values that it was made of."""
    return card.model_dump(mode="json", by_alias=True, exclude_unset=True)


def read_weights(path: Path, digest: str | None) -> dict[str, Tensor]:
    """The tensors of a safetensors file, if it is what was written; ``digest`` (SHA-256) is None in older cards."""
    content = read_regular(path)
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path} is damaged (its content does not match the digest in model.json); {RUN_AGAIN}")
    try:
        return load(content)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged ({error}); {RUN_AGAIN}") from error


# ------------------------------------------------------------------------------------------------ the inputs


def crop_of(run: Run, given: Mapping[str, Any]) -> float | None:
    """f of (1), from a card's ``input``, else (older runs) from the recipe; None if it is unknown."""
    if given["kind"] != "image":
        return None
    if "crop" in given:
        return float(given["crop"])
    with contextlib.suppress(ValueError, OSError):
        return 1.0 if run.recipe.data.size is not None else None
    return None


def in_words(given: Mapping[str, Any]) -> str | None:
    """(1) in words, from a card's ``input``; None if it is unknown, or there is nothing to resize.

    >>> in_words({"kind": "image", "shape": [3, 32, 32], "crop": 0.875})
    'the middle square, 0.875 of the shorter side, resized to 32×32 (bilinear, with antialiasing)'
    """
    if given["kind"] != "image" or "crop" not in given:
        return None
    fraction, (_, height, width) = float(given["crop"]), given["shape"]
    part = "as large as the image has it" if fraction == 1 else f"{fraction:g} of the shorter side"
    return f"the middle square, {part}, resized to {height}×{width} (bilinear, with antialiasing)"


def in_lines(given: Mapping[str, Any], *, normalise: bool = True) -> str | None:
    """(1) as a Python function of a file that needs PIL and torchvision alone; None where `in_words` is."""
    if in_words(given) is None:
        return None
    channels, size = int(given["shape"][0]), int(given["shape"][1])
    fraction = float(given["crop"])
    before, after = "min(image.size)", "min(height, width)"
    if fraction != 1:
        before, after = (f"round({fraction!r} * {least})" for least in (before, after))
    mean, std = ([float(value) for value in given[key]] for key in ("mean", "std"))
    last = f"F.normalize(image, {mean}, {std})" if normalise else "image"
    mode = "RGB" if channels == 3 else "L"
    return PREPARE.format(channels=channels, size=size, before=before, after=after, mode=mode, last=last)
