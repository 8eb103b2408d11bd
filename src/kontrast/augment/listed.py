"""A view as a list of operations: each by name, with its options, in the order they are applied.

    [{name: resized-crop, scale: [0.5, 1]}, flip]          in a recipe: one entry of augment.views
    [{"name": "resized-crop", "scale": 0.5}, "flip"]       the same from Python; a number s is the scale [s, 1]

The crops' size is that of the data (``data.size``, ``augment.size``), and normalisation is added: at the end for
images, at the start for vectors. Images of several sizes need ``resized-crop`` as the first operation, which is then
taken while a file is decoded.

>>> listed([{"name": "resized-crop", "scale": [0.5, 1]}, "flip"], size=32)
Compose([RandomResizedCrop(size=32, scale=(0.5, 1.0), ratio=(0.75, 1.3333333333333333)), HorizontalFlip(p=0.5)])
>>> listed(["resized-crop", {"name": "filp"}], size=32)
Traceback (most recent call last):
    ...
ValueError: no operation 'filp'; did you mean 'flip'? Known: autoaugment, blur, color-jitter, crop, feature-dropout, ...
>>> listed([{"name": "resized-crop", "scales": 0.5}], size=32)
Traceback (most recent call last):
    ...
ValueError: operation 'resized-crop' has no option 'scales'; did you mean 'scale'? It has scale, ratio
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from kontrast.augment.autoaugment import AutoAugment
from kontrast.augment.blur import GaussianBlur
from kontrast.augment.color_jitter import ColorJitter
from kontrast.augment.compose import Compose
from kontrast.augment.crop import RandomCrop
from kontrast.augment.flip import HorizontalFlip
from kontrast.augment.grayscale import RandomGrayscale
from kontrast.augment.normalize import Numbers
from kontrast.augment.operation import Operation
from kontrast.augment.presets import normalized, options_of, preset
from kontrast.augment.resized_crop import RandomResizedCrop
from kontrast.augment.solarize import Solarize
from kontrast.augment.strength import crop_scale
from kontrast.augment.vectors import FeatureDropout, GaussianNoise
from kontrast.registry import quoted
from kontrast.vocabulary import STRENGTHS, check_operation

_OPERATIONS: dict[str, Any] = {
    "autoaugment": AutoAugment,
    "blur": GaussianBlur,
    "color-jitter": ColorJitter,
    "crop": RandomCrop,
    "feature-dropout": FeatureDropout,
    "flip": HorizontalFlip,
    "gaussian-noise": GaussianNoise,
    "grayscale": RandomGrayscale,
    "resized-crop": RandomResizedCrop,
    "solarize": Solarize,
}
OPERATIONS = tuple(_OPERATIONS)
"""The names that a listed view may have."""
_OF_VECTORS = ("feature-dropout", "gaussian-noise")

Step = str | Mapping[str, Any]
Description = str | Mapping[str, Any] | Sequence[Step]
"""A view: a preset's name, a mapping with the preset's name and options, or a list of operations."""


def view(
    description: Description,
    *,
    size: int | tuple[int, int] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
) -> Compose:
    """One view as a recipe describes it: a preset, or a list of operations.

    Args:
        description: ``"weak"``, ``{"name": "weak", "scale": 0.5}`` or ``[{"name": "resized-crop"}, "flip"]``.
        size: pixels of what comes out, as for `preset`.
        mean: with ``std``, what the view is normalised with.
        std: give both or neither.

    Returns:
        The operations as one.

    Raises:
        ValueError: an unknown name or option (the nearest known one is named), or a value outside its range.

    >>> view({"name": "crop-flip", "flip": 0}, size=28)
    Compose([RandomCrop(size=28, padding=4)])
    >>> view([{"name": "crop", "padding": 2}], size=28, mean=0.5, std=0.5)
    Compose([RandomCrop(size=28, padding=2), Normalize(mean=(0.5,), std=(0.5,))])
    """
    if not isinstance(description, str | Mapping):
        return listed(description, size=size, mean=mean, std=std)
    given = {"name": description} if isinstance(description, str) else dict(description)
    return preset(given.pop("name"), size=size, mean=mean, std=std, **given)


def listed(
    steps: Sequence[Step],
    *,
    size: int | tuple[int, int] | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
) -> Compose:
    """The operations of a list as one; see the module. Arguments and errors are those of `view`."""
    operations = [_operation(*step, size) for step in _split(steps)]
    of_vectors = kind_of(steps) == "vector"
    return normalized(operations, mean, std, of_vectors=of_vectors, of_images=not of_vectors)


def kind_of(description: Description) -> Literal["image", "vector", "any"]:
    """What a view is for; ``any`` is the preset none without strengths.

    >>> kind_of("weak"), kind_of("none"), kind_of(["gaussian-noise"])
    ('image', 'any', 'vector')
    """
    if isinstance(description, str | Mapping):
        given: dict[str, Any] = {"name": description} if isinstance(description, str) else dict(description)
        if given["name"] == "none":
            return "image" if any(given.get(key) is not None for key in STRENGTHS) else "any"
        return "vector" if given["name"] == "vector-noise" else "image"
    names = [name for name, _ in _split(description)]
    vectors = [name for name in names if name in _OF_VECTORS]
    if vectors and len(vectors) < len(names):
        other = next(name for name in names if name not in _OF_VECTORS)
        raise ValueError(
            f"operation {vectors[0]!r} is for vectors and {other!r} for images; expected one kind in a view"
        )
    return "vector" if vectors else "image"


def written_out(description: Description) -> dict[str, Any] | list[dict[str, Any]]:
    """The view with every option of its preset, or of its operations, written out, as plain values for a file.

    >>> written_out([{"name": "resized-crop", "scale": 0.5}, "flip"])
    [{'name': 'resized-crop', 'scale': [0.5, 1.0], 'ratio': [0.75, 1.3333333333333333]}, {'name': 'flip', 'p': 0.5}]
    >>> written_out("crop-flip")["padding"]
    4
    """
    view(description, size=32)  # says what is wrong
    if isinstance(description, str | Mapping):
        given: dict[str, Any] = {"name": description} if isinstance(description, str) else dict(description)
        options = {**options_of(given["name"]), **given}
        return {"name": options.pop("name"), **{key: _plain(value) for key, value in options.items()}}
    found = []
    for name, options in _split(description):
        made = _operation(name, options, 32)
        values = {key: getattr(made, key) for key in operation_options(name)}
        defaults = operation_options(name)
        found.append({"name": name, **{key: _plain(value, defaults[key]) for key, value in values.items()}})
    return found


def title(description: Description) -> str:
    """A view in a word or a few: the preset's name, or those of its operations.

    >>> title({"name": "weak", "scale": 0.5}), title([{"name": "resized-crop"}, "flip"])
    ('weak', 'resized-crop, flip')
    """
    if isinstance(description, str):
        return description
    if isinstance(description, Mapping):
        return str(description["name"])
    return ", ".join(name for name, _ in _split(description))


def operation_options(name: str) -> dict[str, Any]:
    """The options of an operation with their defaults; the size is the data's and no option.

    >>> operation_options("blur")
    {'sigma': (0.1, 2.0), 'p': 0.5, 'kernel': None}
    """
    return {f.name: f.default for f in dataclasses.fields(_OPERATIONS[_known(name)]) if f.name != "size"}


def describe_operation(name: str) -> str:
    """What an operation does, in one line: the first of its file's documentation, or of its class's.

    >>> describe_operation("flip")
    "Horizontal flip: left becomes right, with probability p. As torchvision's RandomHorizontalFlip."
    """
    kind = _OPERATIONS[_known(name)]
    text = inspect.getdoc(kind) if name in _OF_VECTORS else inspect.getdoc(inspect.getmodule(kind))
    return " ".join((text or "").partition("\n\n")[0].split())


def _operation(name: str, options: Mapping[str, Any], size: int | tuple[int, int] | None) -> Operation:
    check_operation(name, **options)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    if name in ("crop", "resized-crop"):
        if size is None:
            raise ValueError(f"operation {name!r} needs size=, the pixels of what comes out: 32, or (height, width)")
        values["size"] = size
    try:
        if name == "resized-crop" and "scale" in values:
            values["scale"] = crop_scale(values["scale"])
        made: Operation = _OPERATIONS[name](**values)
    except ValueError as error:
        raise ValueError(f"operation {name!r}: {error}") from None
    return made


def _split(steps: Sequence[Step]) -> list[tuple[str, dict[str, Any]]]:
    """The names and options of a list of operations, the names known."""
    if not isinstance(steps, list | tuple) or not steps:
        raise ValueError(
            f"a view is {quoted(steps)}; expected a preset, or a list of operations such as [resized-crop, flip]. The "
            "preset none changes nothing"
        )
    found = []
    for step in steps:
        given = {"name": step} if isinstance(step, str) else dict(step) if isinstance(step, Mapping) else {}
        name = given.pop("name", None)
        if not isinstance(name, str):
            raise ValueError(f"an operation is {quoted(step)}; expected a name, or a mapping with name and options")
        found.append((_known(name), given))
    return found


def _known(name: str) -> str:
    check_operation(name)
    return name


def _plain(value: Any, default: Any = None) -> Any:
    """Tuples as lists; whole numbers as floats where the option has floats, so that 1 and 1.0 are one recipe."""
    if isinstance(value, tuple | list):
        return [float(item) if isinstance(default, tuple) else item for item in value]
    return float(value) if isinstance(default, float) else value
