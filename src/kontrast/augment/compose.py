"""Operations one after the other, as one operation.

Neighbours that are separable linear maps (crop, resize, flip) become one pair of matrices a sample, and what comes
after works in place on memory that is the composition's own.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from kontrast.augment._inputs import Size
from kontrast.augment._separable import Separable, run
from kontrast.augment.operation import Operation, Params


class Compose(Operation):
    """``operations`` in their order; with none of them the batch is only converted to float.

    >>> from kontrast.augment import HorizontalFlip, Normalize
    >>> images = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    >>> Compose([HorizontalFlip(p=1.0), Normalize(0.5, 0.25)])(images)
    tensor([[[[ 2., -2.]]]])
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        found: list[Operation] = []
        for i, operation in enumerate(operations):
            if not isinstance(operation, Operation):
                raise ValueError(
                    f"operation {i} is {operation!r}; expected operations of kontrast.augment, such as HorizontalFlip()"
                )
            found.extend(operation.operations if isinstance(operation, Compose) else [operation])
        self.operations: tuple[Operation, ...] = tuple(found)

    def __repr__(self) -> str:
        return f"Compose([{', '.join(map(repr, self.operations))}])"

    @property
    def is_writing(self) -> bool:
        """Whether the first operation writes; the later ones meet memory of our own. Without any a copy is made."""
        return not self.operations or self.operations[0].is_writing

    def output_size(self, size: Size) -> Size:
        """The size after all of them."""
        for operation in self.operations:
            size = operation.output_size(size)
        return size

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        parts = []
        for operation in self.operations:
            parts.append(operation._draw(n, size, generator))
            size = operation.output_size(size)
        return Params.joined(n, parts)

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        separable: list[Separable] = []
        own: list[Params] = []
        for i, operation in enumerate(self.operations):
            if isinstance(operation, Separable):
                separable.append(operation)
                own.append(params.part(i))
                continue
            if separable:
                images = run(separable, own, images)
                separable, own = [], []
            images = operation._apply(images, params.part(i))
        return run(separable, own, images) if separable else images
