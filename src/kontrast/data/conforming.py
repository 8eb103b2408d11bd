"""A loaded data set with the channels and labels that were asked for, whatever its source gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from kontrast.data.images import CentreCrop, with_channels
from kontrast.data.options import Options
from kontrast.data.records import Crop, DataSet, Inputs, Memory
from kontrast.data.statistics import channel_statistics


def conformed(data: DataSet, options: Options) -> DataSet:
    """``data`` with the channels and labels that the options ask for; itself if it has them.

    A set's own statistics are repeated for grey made RGB, and computed from the data for RGB made grey.

    >>> from kontrast.data.loading import load
    >>> grey = load("fashion-mini", limit=100)
    >>> conformed(grey, Options(channels=3, labelled=False))
    DataSet 'fashion-mini': 100 images (3, 28, 28), 2,000 for testing without labels
    """
    if options.labelled is False and (
        data.labelled or data.class_names or (data.test and data.test.labels is not None)
    ):
        bare = None if data.test is None else data.test.with_labels(None)
        data = replace(data, train=data.train.with_labels(None), test=bare, class_names=None)
    for which, split in (("training", data.train), ("testing", data.test)):
        if options.labelled and split is not None and split.labels is None:
            raise ValueError(
                f"labelled=True, but the rows for {which} of {data.name!r} have no labels; expected one a row. Give "
                "them, or leave labelled out"
            )
    shape, size, channels = data.train.inputs.shape, options.size, options.channels
    if data.kind == "vector" and (size is not None or channels is not None):
        raise ValueError(f"{data.name!r} holds vectors {shape}; size and channels go with images, leave them out")
    if size is not None and (shape is None or shape[1:] != (size, size)):
        raise ValueError(f"size is {size}, but {data.name!r} is loaded already, with images {shape}; load it anew")
    if channels is None or _channels(data.train.inputs) == channels:
        return data
    splits = {
        key: replace(split, inputs=_recoloured(split.inputs, channels))
        for key, split in (("train", data.train), ("test", data.test), ("unlabelled", data.unlabelled))
        if split is not None
    }
    repeated = (data.mean * 3, data.std * 3) if channels == 3 else None
    mean, std = repeated or channel_statistics(splits["train"].inputs)
    changed: dict[str, Any] = {**splits, "mean": mean, "std": std}
    return replace(data, **changed)


class Recoloured:
    """Inputs that are not in memory, made RGB or grey when read.

    >>> Recoloured(Memory(torch.zeros(2, 1, 4, 4, dtype=torch.uint8)), 3).read(torch.tensor([1])).shape
    torch.Size([1, 3, 4, 4])
    """

    def __init__(self, inputs: Inputs, channels: int) -> None:
        self.inputs, self.channels = inputs, channels

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        return f"Recoloured({self.inputs!r}, channels={self.channels})"

    @property
    def shape(self) -> tuple[int, ...] | None:
        """(C, H, W); None where images differ in size."""
        shape = self.inputs.shape
        return None if shape is None else (self.channels, *shape[1:])

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """The rows, cropped as they are and then converted."""
        return with_channels(self.inputs.read(indices, crop, seeds), self.channels)


def _recoloured(inputs: Inputs, channels: int) -> Inputs:
    if isinstance(inputs, Memory):
        return Memory(with_channels(inputs.values, channels))
    return Recoloured(inputs, channels)


def _channels(inputs: Inputs) -> int:
    """Of images: by their shape, or where they differ in size by the first."""
    if inputs.shape is not None:
        return inputs.shape[0]
    return inputs.read(torch.tensor([0]), CentreCrop(1), [0]).shape[-3]
