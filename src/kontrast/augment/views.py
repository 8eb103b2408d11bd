"""Several views of a batch, each by an augmentation of its own.

>>> import torch
>>> from kontrast import augment
>>> weak, strong = augment.preset("weak", size=32), augment.preset("strong", size=32)
>>> images = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
>>> target, online = augment.Views([weak, strong])(images, torch.Generator().manual_seed(1)).unbind(1)
>>> target.shape
torch.Size([4, 3, 32, 32])
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast.augment._inputs import Size, as_floats
from kontrast.augment.operation import Operation, Params


class Views:
    """``operations``, one a view. The result is [n, V, C, H, W] (vectors: [n, V, D]), or a list of V batches where
    their sizes differ (global and local crops).

    A batch that has its views already, [n, V, C, H, W] (cropped while it was decoded, see `at_decoding`), gives each
    operation its own.

    >>> from kontrast.augment import RandomResizedCrop
    >>> crops = Views([RandomResizedCrop(32), RandomResizedCrop(32), RandomResizedCrop(16)])
    >>> [tuple(view.shape) for view in crops(torch.rand(4, 3, 40, 40))]
    [(4, 3, 32, 32), (4, 3, 32, 32), (4, 3, 16, 16)]
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = tuple(operations)
        if not self.operations or not all(isinstance(o, Operation) for o in self.operations):
            raise ValueError(
                f"views need at least one augmentation, such as preset('weak', size=32); got {operations!r}"
            )

    def __repr__(self) -> str:
        return f"Views([{', '.join(map(repr, self.operations))}])"

    def __len__(self) -> int:
        return len(self.operations)

    def draw(self, n: int, size: Size | int, generator: torch.Generator | None = None) -> Params:
        """The parameters of all views of n samples."""
        return Params.joined(n, [operation.draw(n, size, generator) for operation in self.operations])

    def apply(self, images: Tensor, params: Params) -> Tensor | list[Tensor]:
        """The views; see the class."""
        batches = self._batches(images)
        seen = [
            o.apply(batch, params.part(i)) for i, (o, batch) in enumerate(zip(self.operations, batches, strict=True))
        ]
        return torch.stack(seen, 1) if len({view.shape for view in seen}) == 1 else seen

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor | list[Tensor]:
        """Draw for this batch and apply."""
        one = self._batches(images[:0] if isinstance(images, Tensor) else images)[0]  # says what is wrong
        return self.apply(images, self.draw(len(images), Operation.size_of(one), generator))

    def _batches(self, images: Tensor) -> list[Tensor]:
        """What each operation is given: the batch as floats, converted once, or its own view of it."""
        if not isinstance(images, Tensor) or images.ndim != 5:
            return [as_floats(images)] * len(self)
        if images.shape[1] != len(self):
            raise ValueError(
                f"images {list(images.shape)} have {images.shape[1]} views; expected {len(self)}, one each"
            )
        return [as_floats(images[:, view]) for view in range(len(self))]
