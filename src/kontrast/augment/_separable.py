r"""Separable linear maps: crop, resize and flip as two small matrices a sample, applied as batched products.

    (1)  Y_c = A X_c Bᵀ      for every channel c,   A [H', H] acting on the columns of pixels, B [W', W] on the rows
    (2)  A₂ (A₁ X B₁ᵀ) B₂ᵀ = (A₂A₁) X (B₂B₁)ᵀ       so a crop, its resizing and a flip are one pair of matrices

Two dense products cost H'HW + H'WW' multiplications a channel, which for small images is less than the overhead of
anything that goes from sample to sample; from `DENSE` pixels on each operation has a way of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from kontrast.augment._inputs import Size, height_and_width
from kontrast.augment.operation import Operation, Params

DENSE = 64  # the largest side, in pixels, for which products of dense matrices are the faster way


def is_small(*sizes: Size) -> bool:
    """Whether images of all these sizes are augmented by dense matrices."""
    return max(max(size) for size in sizes) <= DENSE


@dataclass
class Maps:
    """A [n, H', H] and B [n, W', W] of (1); None stands for the identity."""

    rows: Tensor | None = None
    columns: Tensor | None = None

    def then(self, rows: Tensor | None, columns: Tensor | None) -> Maps:
        """(2): these maps, followed by others."""
        return Maps(_product(rows, self.rows), _product(columns, self.columns))

    def __call__(self, images: Tensor) -> Tensor:
        """(1) on images [n, C, H, W]."""
        n, c, h, w = images.shape
        if self.columns is not None:
            images = torch.bmm(images.reshape(n, c * h, w), self.columns.transpose(1, 2)).view(n, c, h, -1)
        if self.rows is not None:
            # For the channels one after the other, torch would multiply sample by sample, each on all threads.
            images = torch.matmul(self.rows.unsqueeze(1), images)
        return images


def _product(second: Tensor | None, first: Tensor | None) -> Tensor | None:
    if second is None or first is None:
        return first if second is None else second
    return torch.bmm(second, first)


class Separable(Operation):
    """An operation that is (1)."""

    writes: ClassVar[bool] = False

    @abstractmethod
    def fold(self, maps: Maps, params: Params, size: Size, device: torch.device) -> Maps:
        """These maps, followed by this operation on images that now have this size."""

    @abstractmethod
    def _one_by_one(self, images: Tensor, params: Params) -> Tensor:
        """The same for large images, in new memory."""

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        return run([self], [params], images)


def run(operations: Sequence[Separable], params: Sequence[Params], images: Tensor) -> Tensor:
    """Separable operations in a row: as one pair of matrices if the images are small, else one after the other."""
    sizes = [height_and_width(type(operations[0]).__name__, Operation.size_of(images))]
    for operation in operations:
        sizes.append(height_and_width(type(operation).__name__, operation.output_size(sizes[-1])))
    if not is_small(*sizes):
        for operation, own in zip(operations, params, strict=True):
            images = operation._one_by_one(images, own)
        return images
    maps = Maps()
    for operation, own, size in zip(operations, params, sizes, strict=False):
        maps = operation.fold(maps, own, size, images.device)
    return maps(images)
