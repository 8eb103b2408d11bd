"""Presets: the augmentations of the papers by name, each with its exact parameters.

>>> from kontrast import augment
>>> augment.preset("weak", size=32)
Compose([RandomResizedCrop(size=32, scale=(0.2, 1.0), ratio=(0.75, 1.3333333333333333)), HorizontalFlip(p=0.5)])
>>> augment.preset("weka", size=32)
Traceback (most recent call last):
    ...
ValueError: no preset 'weka'; did you mean 'weak'? Known: autoaugment, crop-flip, none, sce-imagenet, simaugment, ...
>>> print(augment.describe("crop-flip"))
Random crop with a border of 4 pixels, and flip.

Where the published code puts the flip last (solo-learn), it stands behind the crop here: a mirror image of a changed
picture is the changed mirror image, so the views are the same, and crop and flip are one pair of matrices.

Every preset for images also takes the strengths of `kontrast.augment.strength`: scale, jitter, grayscale, blur, flip.

>>> augment.preset("weak", size=32, scale=0.5, flip=0)
Compose([RandomResizedCrop(size=32, scale=(0.5, 1.0), ratio=(0.75, 1.3333333333333333))])
>>> augment.preset("simaugment", size=32, jitter=0, grayscale=0)  # classes that differ by colour
Compose([RandomResizedCrop(size=32, scale=(0.2, 1.0), ratio=(0.75, 1.3333333333333333)), HorizontalFlip(p=0.5)])
>>> augment.preset("weak", size=32, jitter=0.4).operations[-1]
ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, p=0.8)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from kontrast.augment._inputs import image_size
from kontrast.augment.autoaugment import AutoAugment
from kontrast.augment.blur import GaussianBlur
from kontrast.augment.color_jitter import ColorJitter
from kontrast.augment.compose import Compose
from kontrast.augment.crop import RandomCrop
from kontrast.augment.flip import HorizontalFlip
from kontrast.augment.grayscale import RandomGrayscale
from kontrast.augment.normalize import Normalize, Numbers
from kontrast.augment.operation import Operation
from kontrast.augment.resized_crop import RandomResizedCrop
from kontrast.augment.solarize import Solarize
from kontrast.augment.strength import probability, strengthened
from kontrast.augment.vectors import FeatureDropout, GaussianNoise
from kontrast.vocabulary import STRENGTHS, check_name, check_preset

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


def _vector_noise(size: int | None = None, *, noise: float = 0.1, dropout: float = 0.0) -> list[Operation]:
    """Feature vectors: Gaussian noise of standard deviation ``noise``, and ``dropout`` of entries. No paper's.

    With ``mean`` and ``std`` the features are standardised first: ``noise`` is then in standard deviations of each, and
    an entry that is dropped becomes the feature's mean.
    """
    return [GaussianNoise(noise), *([FeatureDropout(dropout)] if dropout else [])]


_PRESETS: dict[str, Callable[..., list[Operation]]] = {
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
NAMES = tuple(sorted(_PRESETS))
_NO_SIZE = ("none", "vector-noise")


def preset(
    name: str,
    *,
    size: int | tuple[int, int] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    **options: Any,
) -> Compose:
    """The augmentation of this name, normalised at the end where ``mean`` and ``std`` are given (vectors at the start).

    Args:
        name: one of `NAMES`.
        size: pixels of what comes out, one number or (height, width); presets that crop need it.
        mean: per channel for pixels in 0…1, or per feature of vectors.
        std: the same; give both or neither.
        **options: the preset's own (`options_of`); for images also the strengths (`kontrast.augment.strength`).

    Returns:
        The operations as one.

    Raises:
        ValueError: an unknown name or option (the nearest known one is named), or a value outside its range.

    >>> preset("simaugment", size=32, blur=True).operations[-1]
    GaussianBlur(sigma=(0.1, 2.0), p=0.5, kernel=None)
    >>> preset("none", mean=0.5, std=0.25)
    Compose([Normalize(mean=(0.5,), std=(0.25,))])
    >>> preset("vector-noise", mean=5.0, std=2.0)
    Compose([Normalize(mean=(5.0,), std=(2.0,)), GaussianNoise(std=0.1, p=1.0)])
    """
    check_preset(name, **options)
    build = _PRESETS[name]
    strengths = {key: options[key] for key in STRENGTHS if key in options and key not in _own_options(name)}
    if size is None and (name not in _NO_SIZE or strengths.get("scale") is not None):
        raise ValueError(f"preset {name!r} needs size=, the pixels of what comes out: 32, or (height, width)")
    if size is not None and name != "vector-noise":
        image_size("size", size)
    operations = build(size, **{key: value for key, value in options.items() if key not in strengths})
    operations = strengthened(operations, size, strengths)
    return normalized(operations, mean, std, of_vectors=name == "vector-noise", of_images=name not in _NO_SIZE)


def normalized(
    operations: list[Operation],
    mean: Numbers | None,
    std: Numbers | None,
    *,
    of_vectors: bool = False,
    of_images: bool = True,
) -> Compose:
    """The operations with a `Normalize`, if there are ``mean`` and ``std``: last for images, first for vectors.

    >>> normalized([HorizontalFlip()], mean=0.5, std=0.25)
    Compose([HorizontalFlip(p=0.5), Normalize(mean=(0.5,), std=(0.25,))])
    """
    if (mean is None) != (std is None):
        raise ValueError(f"mean is {mean!r} and std {std!r}: give both to normalise, or neither")
    if mean is None or std is None:
        return Compose(operations)
    normalize = Normalize(mean, std)
    if of_images:
        normalize.check_images()  # complains now, not at the first batch
    return Compose([normalize, *operations] if of_vectors else [*operations, normalize])


def options_of(name: str) -> dict[str, Any]:
    """A preset's options with their defaults: its own, then for images the strengths.

    >>> options_of("simaugment"), options_of("vector-noise")
    ({'blur': False, 'scale': None, 'jitter': None, 'grayscale': None, 'flip': None}, {'noise': 0.1, 'dropout': 0.0})
    """
    own = _own_options(name)
    return own if name == "vector-noise" else {**own, **{key: None for key in STRENGTHS if key not in own}}


def _own_options(name: str) -> dict[str, Any]:
    found = inspect.signature(_PRESETS[_known(name)]).parameters.values()
    return {p.name: p.default for p in found if p.kind is p.KEYWORD_ONLY}


def describe(name: str) -> str:
    """What a preset does, in one line (the first of its documentation).

    >>> describe("weak")
    "SCE's weak view, the target: resized crop (0.2, 1) and flip. (SCE, supplement, section E, and its code.)"
    """
    return (inspect.getdoc(_PRESETS[_known(name)]) or "").partition("\n")[0]


def _known(name: str) -> str:
    check_name("preset", name, NAMES)
    return name
