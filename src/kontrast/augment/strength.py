"""Strength: how much a preset for images changes, by the same five options in every preset.

Every preset for images takes these options. None, the default, keeps the preset's published value.

| option | takes | meaning |
|---|---|---|
| ``scale`` | ``[low, high]``, or ``low`` for ``[low, 1]`` | part of the area that the resized crop keeps |
| ``jitter`` | ``[brightness, contrast, saturation, hue]``, or ``s`` for ``[s, s, s, s/4]``; 0: none | colour jitter |
| ``grayscale`` | a probability; 0: never | colour taken away |
| ``blur`` | a probability; 0: never | Gaussian blur, σ in 0.1…2 |
| ``flip`` | a probability; 0: never | mirrored |

Where a preset lacks the operation, the option adds it, at its usual place (crop, flip, AutoAugment, jitter, grayscale,
blur, solarise); jitter then happens with p .8. In a preset that crops with a border (`crop-flip`, `autoaugment`),
``scale`` puts a resized crop in place of that crop.

>>> from kontrast import augment
>>> augment.preset("strong", size=32, jitter=0, grayscale=0, blur=0)  # classes that differ by colour
Compose([RandomResizedCrop(size=32, scale=(0.2, 1.0), ratio=(0.75, 1.3333333333333333)), HorizontalFlip(p=0.5)])
"""

from __future__ import annotations

from typing import Any

from kontrast.augment._inputs import interval, number
from kontrast.augment.autoaugment import AutoAugment
from kontrast.augment.blur import GaussianBlur
from kontrast.augment.color_jitter import ColorJitter
from kontrast.augment.crop import RandomCrop
from kontrast.augment.flip import HorizontalFlip
from kontrast.augment.grayscale import RandomGrayscale
from kontrast.augment.operation import Operation
from kontrast.augment.resized_crop import RandomResizedCrop
from kontrast.augment.solarize import Solarize
from kontrast.registry import quoted
from kontrast.vocabulary import STRENGTHS

JITTER, BLUR, FLIP = 0.8, 0.5, 0.5
"""Probabilities where a preset has no such operation of its own."""
ORDER: tuple[type[Operation] | tuple[type[Operation], ...], ...] = (
    (RandomCrop, RandomResizedCrop), HorizontalFlip, AutoAugment, ColorJitter, RandomGrayscale, GaussianBlur, Solarize,
)  # fmt: skip
"""Where an operation stands among the others."""


def strengthened(
    operations: list[Operation], size: int | tuple[int, int] | None, strengths: dict[str, Any]
) -> list[Operation]:
    """The operations with those replaced, added or left out that the strengths name; None changes nothing."""
    found = list(operations)
    scale, jitter, grayscale, blur, flip = (strengths.get(key) for key in STRENGTHS)
    if scale is not None:
        assert size is not None
        found = _placed(found, RandomResizedCrop(size, scale=crop_scale(scale)))
    if jitter is not None:
        own = next((o.p for o in found if isinstance(o, ColorJitter)), JITTER)
        found = _placed(found, ColorJitter(*jitter_amounts(jitter), p=own))
    if grayscale is not None:
        found = _placed(found, RandomGrayscale(number("grayscale", grayscale, least=0.0, most=1.0)))
    if blur is not None:
        own = next((o.p for o in found if isinstance(o, GaussianBlur)), BLUR)
        found = _placed(found, GaussianBlur((0.1, 2.0), p=probability("blur", blur, own)))
    if flip is not None:
        own = next((o.p for o in found if isinstance(o, HorizontalFlip)), FLIP)
        found = _placed(found, HorizontalFlip(probability("flip", flip, own)))
    return found


def _placed(operations: list[Operation], new: Operation) -> list[Operation]:
    """``new`` in place of the operation of its kind, else at its place in `ORDER`; one that does nothing goes out."""
    rank = next(i for i, kind in enumerate(ORDER) if isinstance(new, kind))
    before = [o for o in operations if any(isinstance(o, kind) for kind in ORDER[:rank])]
    after = [o for o in operations if any(isinstance(o, kind) for kind in ORDER[rank + 1 :])]
    return [*before, *([] if _does_nothing(new) else [new]), *after]


def _does_nothing(operation: Operation) -> bool:
    if isinstance(operation, ColorJitter):
        return not any((operation.brightness, operation.contrast, operation.saturation, operation.hue))
    return getattr(operation, "p", 1.0) == 0.0


def crop_scale(value: Any) -> tuple[float, float]:
    """``[low, high]``, or ``low`` alone for ``[low, 1]``: the part of the area that a resized crop keeps.

    >>> crop_scale(0.5), crop_scale([0.2, 0.8])
    ((0.5, 1.0), (0.2, 0.8))
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value), 1.0
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"scale must be a pair [low, high] with 0 < low ≤ high ≤ 1, or low alone, got {quoted(value)}")
    return interval("scale", value, most=1.0)


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


def probability(name: str, value: Any, own: float) -> float:
    """A probability; true is the preset's own, false 0."""
    if isinstance(value, bool):
        return own if value else 0.0
    return number(name, value, least=0.0, most=1.0)
