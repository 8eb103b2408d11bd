"""What the estimator's parameters may be, and the words for what they may not.

scikit-learn sets parameters unseen, and an estimator looks at them when it is fitted: so that "no" is not taken for
True and a number not for a shape. Numbers are looked at where they are used. Nothing here knows scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kontrast.train import pick_device

JOINTLY = "jointly"
SWITCHES = ("normalize", "early_stopping")
OPTIONS = ("loss_params", "encoder_params", "augmentation_params")


def check_parameters(params: Mapping[str, Any]) -> None:
    """Raises ValueError for switches that are none, options that are no mapping, shapes that are no shape.

    >>> good = dict.fromkeys(OPTIONS) | dict.fromkeys(SWITCHES, False) | {"verbose": 0, "image_shape": (8, 8)}
    >>> check_parameters({**good, "standardize": True})
    >>> check_parameters({**good, "standardize": "no"})
    Traceback (most recent call last):
        ...
    ValueError: standardize is 'no'; expected True (each feature), 'jointly' (all by one mean and deviation) or False
    """
    for name in SWITCHES:
        if not isinstance(params[name], bool | np.bool_):
            raise ValueError(f"{name} is {params[name]!r}; expected True or False")
    if not isinstance(params["verbose"], int | np.bool_):  # a count, to other estimators
        raise ValueError(f"verbose is {params['verbose']!r}; expected True or False, or how much as a whole number")
    standardize = params["standardize"]
    if not isinstance(standardize, bool | np.bool_) and standardize != JOINTLY:
        raise ValueError(
            f"standardize is {standardize!r}; expected True (each feature), {JOINTLY!r} (all by one mean and "
            "deviation) or False"
        )
    for name in OPTIONS:
        if not isinstance(params[name], Mapping | None):
            raise ValueError(f"{name} is {params[name]!r}; expected options by name, such as {{'width': 32}}, or None")
    shape = params["image_shape"]
    if shape is not None:
        sides = list(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else []
        if len(sides) not in (2, 3) or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
            raise ValueError(
                f"image_shape is {shape!r}; expected two or three whole numbers, such as (28, 28) or (3, 32, 32)"
            )


def device_of(name: str) -> torch.device:
    """The device of this name, or of a GPU if there is one.

    >>> device_of("abacus")
    Traceback (most recent call last):
        ...
    ValueError: device is 'abacus': ...
    """
    try:
        return pick_device(name)
    except ValueError as error:  # as recipes say it
        raise ValueError(str(error).removeprefix("run.")) from error


def warn_of_equal_views(augmentation: Any, *, loss: str, labelled: bool) -> None:
    """A warning where two views of a row are the same and nothing else says what is alike."""
    if not labelled and isinstance(augmentation, str) and augmentation == "none":
        warnings.warn(
            f"augmentation='none' makes two equal views of each row, and loss {loss!r} without y learns from how they "
            "differ: it only pushes rows apart; take 'auto', or give y to a loss that learns from it",
            UserWarning,
            stacklevel=4,  # where fit was called
        )


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raises ValueError where no label is one that was fitted: numbers for names, most likely.

    >>> check_known(np.array([2, 3]), np.array([1, 2]))
    >>> check_known(np.array(["1", "2"]), np.array([1, 2]))
    Traceback (most recent call last):
        ...
    ValueError: no label of y is among classes_: y holds '1', '2'; the encoder was fitted on 1, 2
    """
    known = set(classes.tolist())
    given = list(dict.fromkeys(y.tolist()))
    if known.isdisjoint(given):
        seen, fitted = (", ".join(map(repr, few[:5])) + ", …" * (len(few) > 5) for few in (given, classes.tolist()))
        raise ValueError(f"no label of y is among classes_: y holds {seen}; the encoder was fitted on {fitted}")
