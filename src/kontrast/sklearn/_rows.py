"""The rows as the encoder sees them: by which numbers they are standardised, and how views of them are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from kontrast import augment
from kontrast.data import DataSet, Memory, Split, from_arrays
from kontrast.data.dataset import channel_statistics
from kontrast.sklearn._parameters import JOINTLY

NOISE = {"noise": 0.3, "dropout": 0.2}  # chosen on fashion-mini's pixels and their principal components

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


def statistics_of(data: DataSet, standardize: bool | str) -> Statistics:
    """Mean and deviation of images, channel by channel or of all channels together, or 0 and 1; vectors have theirs.

    >>> pixels = np.stack([np.zeros((2, 4, 4)), np.ones((2, 4, 4)), np.ones((2, 4, 4))], axis=3)
    >>> statistics_of(from_arrays(pixels), True)[0], statistics_of(from_arrays(pixels), False)
    ((0.0, 1.0, 1.0), ((0.0,), (1.0,)))
    >>> [round(number, 4) for (number,) in statistics_of(from_arrays(pixels), "jointly")]
    [0.6667, 0.4714]
    """
    if data.kind == "image" and not standardize:
        return (0.0,), (1.0,)
    if data.kind == "vector" or standardize != JOINTLY:
        return data.mean, data.std
    assert isinstance(data.train.inputs, Memory)
    return channel_statistics(Memory(data.train.inputs.values.flatten(1, 2)[:, None]))


def scaler_of(x: NDArray[Any], standardize: bool | str) -> StandardScaler | None:
    """What standardises vectors: feature by feature, all numbers as one feature, or nothing.

    >>> x = np.array([[0.0, 10.0], [2.0, 30.0]])
    >>> standardised(x, scaler_of(x, True)).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> standardised(x, scaler_of(x, "jointly")).round(2).tolist()
    [[-0.89, -0.04], [-0.72, 1.64]]
    """
    if not standardize:
        return None
    return StandardScaler().fit(x.reshape(-1, 1) if standardize == JOINTLY else x)


def standardised(x: NDArray[Any], scaler: StandardScaler | None) -> NDArray[Any]:
    """In the type that X has: float32 would swallow small deviations of large numbers."""
    return x if scaler is None else scaler.transform(x.reshape(-1, scaler.n_features_in_)).reshape(x.shape)


def vectors_of(x: NDArray[Any]) -> DataSet:
    """A matrix as data, in float32."""
    with np.errstate(over="ignore"):
        rows = torch.from_numpy(np.array(x, dtype=np.float32, order="C"))
    if not bool(rows.isfinite().all()):
        raise ValueError("X holds numbers beyond float32's range of 3.4e38, after standardising; expected less")
    return DataSet(name="X", train=Split(Memory(rows)), kind="vector", mean=(0.0,), std=(1.0,))


def images_of(x: NDArray[Any]) -> DataSet:
    """Images in any layout as data, with the statistics of their channels."""
    x = x.astype(np.float32) if x.dtype.kind == "f" else x  # a copy: the caller's pixels stay as they are
    try:
        return from_arrays(x, name="X")
    except ValueError as error:  # which calls X as data files do
        raise ValueError(str(error).replace("x_train", "X")) from None


def view_of(
    augmentation: str | augment.Operation, data: DataSet, *, labelled: bool, params: Mapping[str, Any] | None
) -> augment.Compose:
    """What makes one view of these rows, normalised as the encoder sees them."""
    options, vectors = dict(params or {}), data.kind == "vector"
    assert isinstance(data.train.inputs, Memory)
    rows = data.train.inputs
    statistics: dict[str, Any] = {} if vectors else {"mean": data.mean, "std": data.std}
    if augmentation == "auto":
        if vectors:
            augmentation = "vector-noise" if labelled else "corruption"
        else:
            augmentation = "crop-flip" if labelled else "strong"
        if augmentation == "vector-noise":
            options = {**NOISE, **options}
        if augmentation == "crop-flip":
            options.setdefault("padding", max(1, min(rows.shape[1:]) // 8))  # 4 of 32 pixels, as published
    if isinstance(augmentation, augment.Operation):
        if options:
            raise ValueError(f"augmentation_params {options} go with a preset's name; {augmentation!r} has its own")
        return augment.Compose([augmentation, *([] if vectors else [augment.Normalize(data.mean, data.std)])])
    if augmentation == "corruption":
        if not vectors:
            raise ValueError("augmentation 'corruption' is for vectors, and X are images; take 'strong' or 'weak'")
        return augment.Compose([augment.MarginalCorruption(rows.values, **options)])
    if vectors and augmentation not in ("none", "vector-noise"):
        augment.describe(augmentation)  # an unknown name is the first thing to say
        raise ValueError(f"preset {augmentation!r} is for images; vectors have 'vector-noise', 'corruption', 'none'")
    size = None if vectors else (rows.shape[1], rows.shape[2])
    return augment.preset(augmentation, size=size, **statistics, **options)
