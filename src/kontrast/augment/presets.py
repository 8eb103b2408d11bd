"""Augmentations by description: presets with a strength, and lists of operations.

Presets are the augmentations of the papers, each with its exact parameters.

>>> from kontrast import augment
>>> augment.preset("weak", size=32)
Compose([RandomResizedCrop(size=32, scale=(0.2, 1.0), ratio=(0.75, 1.3333333333333333)), HorizontalFlip(p=0.5)])
>>> augment.preset("weka", size=32)
Traceback (most recent call last):
    ...
ValueError: no preset 'weka'; did you mean 'weak'? Known: autoaugment, crop-flip, none, sce-imagenet, simaugment, ...
>>> print(augment.describe("crop-flip"))
Random crop with a border of 4 pixels, and flip.

Where the published code applies the flip last (solo-learn), it comes directly after the crop here: flipping commutes
with the operations between, so the views are the same, and crop and flip become one pair of matrices.

**Strength.** Every preset for images takes five more options. None, the default, keeps the published value.

| option | takes | meaning |
|---|---|---|
| ``scale`` | ``[low, high]``, or ``low`` for ``[low, 1]`` | share of the area that the resized crop keeps |
| ``jitter`` | ``[brightness, contrast, saturation, hue]``, or ``s`` for ``[s, s, s, s/4]``; 0: none | colour jitter |
| ``grayscale`` | a probability; 0: never | colour removed |
| ``blur`` | a probability; 0: never | Gaussian blur, σ in 0.1…2 |
| ``flip`` | a probability; 0: never | mirrored |

If a preset lacks the operation, the option adds it at its usual place (crop, flip, AutoAugment, jitter, grayscale,
blur, solarise), jitter with p .8. In a preset that crops with a border (`crop-flip`, `autoaugment`), ``scale`` replaces
that crop by a resized crop.

>>> augment.preset("weak", size=32, scale=0.5, flip=0)
Compose([RandomResizedCrop(size=32, scale=(0.5, 1.0), ratio=(0.75, 1.3333333333333333))])
>>> augment.preset("strong", size=32, jitter=0, grayscale=0, blur=0)  # classes that differ by colour
Compose([RandomResizedCrop(size=32, scale=(0.2, 1.0), ratio=(0.75, 1.3333333333333333)), HorizontalFlip(p=0.5)])
>>> augment.preset("weak", size=32, jitter=0.4).operations[-1]
ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, p=0.8)

**Lists of operations.** A view may also be a list of operations (``kontrast.augment.operations``) with their options,
in the order they are applied:

    [{name: resized-crop, scale: [0.5, 1]}, flip]          in a recipe: one entry of augment.views
    [{"name": "resized-crop", "scale": 0.5}, "flip"]       the same from Python; a number s is the scale [s, 1]

The size of crops is that of the data (``data.size``, ``augment.size``), and normalisation is added: at the end for
images, at the start for vectors. Images of several sizes need ``resized-crop`` as the first operation, which is then
applied while a file is decoded.

>>> view([{"name": "resized-crop", "scale": [0.5, 1]}, "flip"], size=32)
Compose([RandomResizedCrop(size=32, scale=(0.5, 1.0), ratio=(0.75, 1.3333333333333333)), HorizontalFlip(p=0.5)])
>>> view(["resized-crop", {"name": "filp"}], size=32)
Traceback (most recent call last):
    ...
ValueError: no operation 'filp'; did you mean 'flip'? Known: autoaugment, blur, color-jitter, crop, feature-dropout, ...
>>> view([{"name": "resized-crop", "scales": 0.5}], size=32)
Traceback (most recent call last):
    ...
ValueError: operation 'resized-crop' has no option 'scales'; did you mean 'scale'? It has scale, ratio
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from kontrast.augment.operation import Compose, Normalize, Numbers, Operation, image_size
from kontrast.augment.operations.autoaugment import AutoAugment
from kontrast.augment.operations.blur import GaussianBlur
from kontrast.augment.operations.color_jitter import ColorJitter
from kontrast.augment.operations.crop import RandomCrop
from kontrast.augment.operations.feature_dropout import FeatureDropout
from kontrast.augment.operations.flip import HorizontalFlip
from kontrast.augment.operations.gaussian_noise import GaussianNoise
from kontrast.augment.operations.grayscale import RandomGrayscale
from kontrast.augment.operations.resized_crop import RandomResizedCrop
from kontrast.augment.operations.solarize import Solarize
from kontrast.checks import number
from kontrast.registry import FAMILIES, STRENGTHS, check_operation, quoted

JITTER, BLUR, FLIP = 0.8, 0.5, 0.5
"""Probabilities where a preset has no such operation of its own."""
ORDER: tuple[type[Operation] | tuple[type[Operation], ...], ...] = (
    (RandomCrop, RandomResizedCrop), HorizontalFlip, AutoAugment, ColorJitter, RandomGrayscale, GaussianBlur, Solarize,
)  # fmt: skip
"""Where an operation stands among the others."""


def _apply_strengths(
    operations: list[Operation], size: int | tuple[int, int] | None, strengths: dict[str, Any]
) -> list[Operation]:
    """The operations with those replaced, added or left out that the strengths name; None changes nothing."""

    def p_of(kind: type[Operation], default: float) -> float:
        return next((getattr(o, "p", default) for o in operations if isinstance(o, kind)), default)

    scale, jitter, grayscale, blur, flip = (strengths.get(key) for key in STRENGTHS)
    changes: list[Operation] = []
    if scale is not None:
        assert size is not None
        changes.append(RandomResizedCrop(size, scale=scale))
    if jitter is not None:
        changes.append(ColorJitter(*jitter_amounts(jitter), p=p_of(ColorJitter, JITTER)))
    if grayscale is not None:
        changes.append(RandomGrayscale(number("grayscale", grayscale, least=0.0, most=1.0)))
    if blur is not None:
        changes.append(GaussianBlur((0.1, 2.0), p=probability("blur", blur, p_of(GaussianBlur, BLUR))))
    if flip is not None:
        changes.append(HorizontalFlip(probability("flip", flip, p_of(HorizontalFlip, FLIP))))
    return functools.reduce(_place, changes, operations)


def _place(operations: list[Operation], new: Operation) -> list[Operation]:
    """Put ``new`` where the operation of its kind is, or at its place in `ORDER`; leave it out if it has no effect."""
    rank = next(i for i, kind in enumerate(ORDER) if isinstance(new, kind))
    before = [o for o in operations if any(isinstance(o, kind) for kind in ORDER[:rank])]
    after = [o for o in operations if any(isinstance(o, kind) for kind in ORDER[rank + 1 :])]
    return [*before, *([] if new.strength == "none" else [new]), *after]


def jitter_amounts(value: Any) -> tuple[float, float, float, float]:
    """``[brightness, contrast, saturation, hue]``, or ``s`` for ``[s, s, s, s/4]``, as SimCLR's strength has it.

    >>> jitter_amounts(0.8), jitter_amounts([0.4, 0.4, 0.2, 0.1])
    ((0.8, 0.8, 0.8, 0.2), (0.4, 0.4, 0.2, 0.1))
    """
    if isinstance(value, list | tuple) and len(value) == 4:
        brightness, contrast, saturation = (number("jitter", amount, least=0.0) for amount in value[:3])
        return brightness, contrast, saturation, number("jitter's hue", value[3], least=0.0, most=0.5)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2:
        return float(value), float(value), float(value), value / 4
    raise ValueError(
        f"jitter must be a number from 0 to 2 (s is [s, s, s, s/4]), or [brightness, contrast, saturation, hue], got "
        f"{quoted(value)}"
    )


def probability(name: str, value: Any, usual: float) -> float:
    """A probability; true is the usual one, false 0."""
    if isinstance(value, bool):
        return usual if value else 0.0
    return number(name, value, least=0.0, most=1.0)


Pixels = int | tuple[int, int]


def _simaugment(size: Pixels, *, blur: bool | float = False) -> list[Operation]:
    """SimAugment as TCL has it: resized crop (0.2, 1), flip, colour jitter (.4, .4, .4, .1) p .8, grey p .2.

    ``blur=True`` adds Gaussian blur, σ in 0.1…2 with p .5; a number is another p. (TCL's published code, supervised;
    its text turns the blur on for self-supervised runs.)
    """
    return [
        RandomResizedCrop(size, scale=(0.2, 1.0)),
        HorizontalFlip(0.5),
        ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
        RandomGrayscale(0.2),
        *([GaussianBlur((0.1, 2.0), p=probability("blur", blur, 0.5))] if blur else []),
    ]


def _simclr(size: Pixels) -> list[Operation]:
    """solo-learn's SimCLR on CIFAR: crop (0.08, 1), jitter (.8, .8, .8, .2) p .8, grey .2, blur .5, flip.

    What TCL's self-supervised experiments ran on (supplement, section 2.3).
    """
    return [
        RandomResizedCrop(size, scale=(0.08, 1.0)),
        HorizontalFlip(0.5),
        ColorJitter(0.8, 0.8, 0.8, 0.2, p=0.8),
        RandomGrayscale(0.2),
        GaussianBlur((0.1, 2.0), p=0.5),
    ]


def _autoaugment(size: Pixels, *, padding: int = 4) -> list[Operation]:
    """Random crop with a border of 4, flip, and the 25 sub-policies of AutoAugment for CIFAR-10.

    TCL's supervised experiments (supplement, section 2.1), on ImageNet-100 too, after resizing to 224 × 224.

    Deviates: TCL squeezes the whole image into 224 × 224; `data.load(size=224)` takes the middle square.
    """
    return [RandomCrop(size, padding), HorizontalFlip(0.5), AutoAugment()]


def _weak(size: Pixels) -> list[Operation]:
    """SCE's weak view, the target: resized crop (0.2, 1) and flip. (SCE, supplement, section E, and its code.)"""
    return [RandomResizedCrop(size, scale=(0.2, 1.0)), HorizontalFlip(0.5)]


def _strong(size: Pixels) -> list[Operation]:
    """SCE's strong view, online: crop (0.2, 1), flip, jitter (.4, .4, .4, .1) p .8, grey .2, blur .5.

    (SCE's code for CIFAR-10; its supplement, section E, says "colour distortion 0.5", which would be (.4, .4, .4, .1).)
    """
    return _simaugment(size, blur=True)


def _sce_imagenet(size: Pixels, *, view: int = 1) -> list[Operation]:
    """SCE's views of ImageNet: jitter (.4, .4, .2, .1) p .8, grey .2; view 1 blur p 1, view 2 blur p .1, solarise p .2.

    Resized crop (0.2, 1) and flip. (Published code of SCE and its successor; the former lacks view 2's flip.)
    """
    if view not in (1, 2):
        raise ValueError(
            f"view is {view!r}; expected 1 (blur always) or 2 (blur p .1, solarise), the views of 'sce-imagenet'"
        )
    return [
        RandomResizedCrop(size, scale=(0.2, 1.0)),
        HorizontalFlip(0.5),
        ColorJitter(0.4, 0.4, 0.2, 0.1, p=0.8),
        RandomGrayscale(0.2),
        GaussianBlur((0.1, 2.0), p=1.0 if view == 1 else 0.1),
        *([Solarize(0.5, p=0.2)] if view == 2 else []),
    ]


def _wang_liu(size: Pixels, *, flip: bool | float = False) -> list[Operation]:
    """Wang & Liu on CIFAR and SVHN: resized crop (0.2, 1), colour jitter (.4, .4, .4, .4) always, grey .2.

    Deviates: the text (section 5.1) has a flip, the code behind its tables has it commented out; ``flip=True`` adds it
    (p .5; a number is another p).
    """
    return [
        RandomResizedCrop(size, scale=(0.2, 1.0)),
        *([HorizontalFlip(probability("flip", flip, 0.5))] if flip else []),
        ColorJitter(0.4, 0.4, 0.4, 0.4),
        RandomGrayscale(0.2),
    ]


def _wang_liu_imagenet(size: Pixels) -> list[Operation]:
    """Wang & Liu on ImageNet-100: crop (0.2, 1), flip, jitter (.4, .4, .4, .1) p .8, grey .2, blur .5."""
    return _simaugment(size, blur=True)


def _crop_flip(size: Pixels, *, padding: int = 4) -> list[Operation]:
    """Random crop with a border of 4 pixels, and flip.

    Graf et al.'s "standard" on CIFAR (32 pixels), and TCL's on Fashion-MNIST (28 pixels).
    """
    return [RandomCrop(size, padding), HorizontalFlip(0.5)]


def _whole_object(size: Pixels, *, padding: int = 4) -> list[Operation]:
    """Views that keep the whole object: padded crop, flip, AutoAugment. For small grey images, without labels too.

    A resized crop down to a fifth of a garment of 28 × 28 pixels leaves no sleeve or hem to tell a shirt from a coat
    by; two crops that overlap little have nothing in common but brightness. AutoAugment shears, shifts, turns and
    changes tones, and what is in the picture stays in it. Its policies were found with the labels of CIFAR-10, not of
    the data here. (Trials on held-out rows of fashion-mini: docs/experiments/trials.md.)
    """
    return _autoaugment(size, padding=padding)


def _none(size: Pixels | None = None) -> list[Operation]:
    """Nothing but conversion to float and normalisation: evaluation, and Graf et al.'s runs without augmentation."""
    return []


def _vector_noise(*, noise: float = 0.1, dropout: float = 0.0) -> list[Operation]:
    """Feature vectors: Gaussian noise of standard deviation ``noise``, and ``dropout`` of entries. No paper's.

    With ``mean`` and ``std`` the features are standardised first: ``noise`` is then in standard deviations of each, and
    an entry that is dropped becomes the feature's mean.
    """
    return [GaussianNoise(noise), *([FeatureDropout(dropout)] if dropout else [])]


ENTRIES: dict[str, Callable[..., list[Operation]]] = {
    "autoaugment": _autoaugment,
    "crop-flip": _crop_flip,
    "none": _none,
    "sce-imagenet": _sce_imagenet,
    "simaugment": _simaugment,
    "simclr": _simclr,
    "strong": _strong,
    "vector-noise": _vector_noise,
    "wang-liu": _wang_liu,
    "wang-liu-imagenet": _wang_liu_imagenet,
    "weak": _weak,
    "whole-object": _whole_object,
}
"""The presets by name. Those for images take ``size``, and with it the strengths; those for vectors do not."""
PRESETS = FAMILIES["preset"]
NAMES = tuple(PRESETS)
"""The names of the presets."""


def preset(
    name: str,
    *,
    size: Pixels | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    interpolation: str = "bilinear",
    **options: Any,
) -> Compose:
    """Make the augmentation of this name; with ``mean`` and ``std`` it normalises, images last and vectors first.

    Args:
        name: one of `NAMES`.
        size: pixels of the output, one number or (height, width). Required by presets that crop.
        mean: per channel for pixels in 0…1, or per feature of vectors.
        std: the same; give both or neither.
        interpolation: how resized crops resize, "bilinear" or "bicubic".
        **options: the preset's own options (`options_of`); for images also the strengths (see the module).

    Returns:
        The operations as one.

    Raises:
        ValueError: an unknown name or option (the error names the nearest one), or a value outside its range.

    >>> preset("simaugment", size=32, blur=True).operations[-1]
    GaussianBlur(sigma=(0.1, 2.0), p=0.5, kernel=None)
    >>> preset("none", mean=0.5, std=0.25)
    Compose([Normalize(mean=(0.5,), std=(0.25,))])
    >>> preset("vector-noise", mean=5.0, std=2.0)
    Compose([Normalize(mean=(5.0,), std=(2.0,)), GaussianNoise(std=0.1, p=1.0)])
    """
    PRESETS.check(name, options)
    takes = inspect.signature(PRESETS[name]).parameters
    strengths = {key: value for key, value in options.items() if key in STRENGTHS and key not in takes}
    options = {key: value for key, value in options.items() if key not in strengths}
    if "size" not in takes:
        return _with_normalize(PRESETS.make(name, **options), mean, std, kind="vector")
    if size is not None:
        image_size("size", size)
    elif takes["size"].default is inspect.Parameter.empty or strengths.get("scale") is not None:
        raise ValueError(f"preset {name!r} needs size=, the pixels of the output: 32, or (height, width)")
    operations = _apply_strengths(PRESETS.make(name, size, **options), size, strengths)
    return _with_normalize(_interpolate(operations, interpolation), mean, std, kind=kind_of(name))


def _interpolate(operations: list[Operation], interpolation: str) -> list[Operation]:
    """The operations, with resized crops that resize in this way."""
    is_crop = [isinstance(operation, RandomResizedCrop) for operation in operations]
    return [
        dataclasses.replace(o, interpolation=interpolation) if crop else o  # type: ignore[type-var]
        for o, crop in zip(operations, is_crop, strict=True)
    ]


def _with_normalize(operations: list[Operation], mean: Numbers | None, std: Numbers | None, *, kind: str) -> Compose:
    """Add a `Normalize` if there are ``mean`` and ``std``: last for images, first for vectors."""
    if (mean is None) != (std is None):
        raise ValueError(f"mean={mean!r}, std={std!r}: must both be set or both be None. Set both to normalise")
    if mean is None or std is None:
        return Compose(operations)
    normalize = Normalize(mean, std)
    if kind == "image":
        normalize.check_images()  # now, not at the first batch
    return Compose([normalize, *operations] if kind == "vector" else [*operations, normalize])


def options_of(name: str) -> dict[str, Any]:
    """Return a preset's options with their defaults: its own, then for images the strengths.

    Args:
        name: one of `NAMES`.

    Returns:
        The defaults by option.

    Raises:
        ValueError: an unknown name.

    >>> options_of("simaugment"), options_of("vector-noise")
    ({'blur': False, 'scale': None, 'jitter': None, 'grayscale': None, 'flip': None}, {'noise': 0.1, 'dropout': 0.0})
    """
    return PRESETS.options(name)


def describe(name: str) -> str:
    """Return one line about a preset: the first line of its docstring.

    Args:
        name: one of `NAMES`.

    Returns:
        The line.

    Raises:
        ValueError: an unknown name.

    >>> describe("weak")
    "SCE's weak view, the target: resized crop (0.2, 1) and flip. (SCE, supplement, section E, and its code.)"
    """
    return PRESETS.summary(name)


# ------------------------------------------------------------------------------------------------ lists of operations

_OPERATIONS = FAMILIES["operation"]
OPERATIONS = tuple(_OPERATIONS)
"""The names of the operations that a view may list."""

Step = str | Mapping[str, Any]
Description = str | Mapping[str, Any] | Sequence[Step]
"""A view: a preset's name, a mapping with the preset's name and options, or a list of operations."""


def view(
    description: Description,
    *,
    size: Pixels | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    interpolation: str = "bilinear",
) -> Compose:
    """Make one view from its description in a recipe: a preset, or a list of operations.

    Args:
        description: ``"weak"``, ``{"name": "weak", "scale": 0.5}`` or ``[{"name": "resized-crop"}, "flip"]``.
        size: pixels of the output, as for `preset`.
        mean: with ``std``, what the view is normalised with.
        std: give both or neither.
        interpolation: how resized crops resize, "bilinear" or "bicubic".

    Returns:
        The operations as one.

    Raises:
        ValueError: an unknown name or option (the error names the nearest one), or a value outside its range.

    >>> view({"name": "crop-flip", "flip": 0}, size=28)
    Compose([RandomCrop(size=28, padding=4)])
    >>> view([{"name": "crop", "padding": 2}], size=28, mean=0.5, std=0.5)
    Compose([RandomCrop(size=28, padding=2), Normalize(mean=(0.5,), std=(0.5,))])
    >>> view(["gaussian-noise"], mean=0.0, std=2.0)
    Compose([Normalize(mean=(0.0,), std=(2.0,)), GaussianNoise(std=0.1, p=1.0)])
    """
    if not isinstance(description, str | Mapping):
        operations = [_operation(name, options, size) for name, options in _parse_steps(description)]
        return _with_normalize(_interpolate(operations, interpolation), mean, std, kind=kind_of(description))
    options = _as_mapping(description)
    return preset(options.pop("name"), size=size, mean=mean, std=std, interpolation=interpolation, **options)


def kind_of(description: Description) -> Literal["image", "vector", "any"]:
    """Return the kind of data that a view is for; ``any`` is the preset none without strengths.

    Args:
        description: as for `view`.

    Returns:
        "image", "vector" or "any".

    Raises:
        ValueError: operations for images and for vectors in one view.

    >>> kind_of("weak"), kind_of("none"), kind_of(["gaussian-noise"])
    ('image', 'any', 'vector')
    """
    if isinstance(description, str | Mapping):
        options = _as_mapping(description)
        size = inspect.signature(PRESETS[options["name"]]).parameters.get("size")
        if size is None:
            return "vector"
        needs_images = size.default is inspect.Parameter.empty or any(options.get(key) is not None for key in STRENGTHS)
        return "image" if needs_images else "any"
    kinds = {name: _OPERATIONS[name].kind for name, _ in _parse_steps(description)}
    if len(set(kinds.values())) > 1:
        vector, image = (next(name for name in kinds if kinds[name] == kind) for kind in ("vector", "image"))
        raise ValueError(
            f"operation {vector!r} is for vectors and {image!r} for images: a view must have operations of one kind"
        )
    return "vector" if "vector" in kinds.values() else "image"


def expand_options(description: Description) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the view with every option of its preset or operations, as plain values for a file.

    Args:
        description: as for `view`.

    Returns:
        A mapping for a preset, a list of mappings for a list of operations.

    Raises:
        ValueError: as `view` does.

    >>> expand_options([{"name": "resized-crop", "scale": 0.5}, "flip"])
    [{'name': 'resized-crop', 'scale': [0.5, 1.0], 'ratio': [0.75, 1.3333333333333333]}, {'name': 'flip', 'p': 0.5}]
    >>> expand_options("crop-flip")["padding"]
    4
    """
    view(description, size=32)  # raises if something is wrong
    if isinstance(description, str | Mapping):
        options = _as_mapping(description)
        name = PRESETS.canonical(options.pop("name"))
        return {"name": name, **{key: _plain(value) for key, value in {**options_of(name), **options}.items()}}
    steps = []
    for name, options in _parse_steps(description):
        operation = _operation(name, options, 32)
        values = {key: _plain(getattr(operation, key), default) for key, default in operation_options(name).items()}
        steps.append({"name": _OPERATIONS.canonical(name), **values})
    return steps


def title(description: Description) -> str:
    """Return a short title of a view: the preset's name, or the names of its operations.

    Args:
        description: as for `view`.

    Returns:
        The title.

    >>> title({"name": "weak", "scale": 0.5}), title([{"name": "resized-crop"}, "flip"])
    ('weak', 'resized-crop, flip')
    """
    if isinstance(description, str | Mapping):
        return str(_as_mapping(description)["name"])
    return ", ".join(name for name, _ in _parse_steps(description))


def operation_options(name: str) -> dict[str, Any]:
    """Return the options of an operation with their defaults; the size is the data's and no option.

    Args:
        name: one of `OPERATIONS`.

    Returns:
        The defaults by option.

    Raises:
        ValueError: an unknown name.

    >>> operation_options("blur")
    {'sigma': (0.1, 2.0), 'p': 0.5, 'kernel': None}
    """
    return _OPERATIONS.options(name)


def describe_operation(name: str) -> str:
    """Return one line about an operation: the first paragraph of its file's docstring.

    Args:
        name: one of `OPERATIONS`.

    Returns:
        The line.

    Raises:
        ValueError: an unknown name.

    >>> describe_operation("flip")
    "Horizontal flip: left becomes right, with probability p. As torchvision's RandomHorizontalFlip."
    """
    return _OPERATIONS.summary(name)


def _as_mapping(step: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"name": step} if isinstance(step, str) else dict(step)


def _parse_steps(steps: Sequence[Step]) -> list[tuple[str, dict[str, Any]]]:
    """The checked names and the options of a list of operations."""
    if not isinstance(steps, list | tuple) or not steps:
        raise ValueError(
            f"view={quoted(steps)}: must be a preset, or a list of operations such as [resized-crop, flip]. Use the "
            "preset none to change nothing"
        )
    parts = []
    for step in steps:
        options = _as_mapping(step) if isinstance(step, str | Mapping) else {}
        name = options.pop("name", None)
        if not isinstance(name, str):
            raise ValueError(f"operation={quoted(step)}: must be a name, or a mapping with a name and options")
        check_operation(name)
        parts.append((name, options))
    return parts


def _operation(name: str, options: Mapping[str, Any], size: Pixels | None) -> Operation:
    check_operation(name, options)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    if "size" in (field.name for field in dataclasses.fields(_OPERATIONS[name])):
        if size is None:
            raise ValueError(f"operation {name!r} needs size=, the pixels of the output: 32, or (height, width)")
        values["size"] = size
    try:
        operation: Operation = _OPERATIONS.make(name, **values)
    except ValueError as error:
        raise ValueError(f"operation {name!r}: {error}") from None
    return operation


def _plain(value: Any, default: Any = None) -> Any:
    """Tuples as lists; whole numbers as floats where the option has floats, so that 1 and 1.0 give the same recipe."""
    if isinstance(value, tuple | list):
        return [float(item) if isinstance(default, tuple) else item for item in value]
    return float(value) if isinstance(default, float) else value
