"""What every augmentation is: random numbers drawn for a batch, then applied to it, two separate steps.

    params = operation.draw(n, size, generator)     per-sample parameters, on the CPU, first dimension n
    views  = operation.apply(images, params)        images [n, C, H, W] in 0…1 (or vectors [n, D]), on any device
    views  = operation(images, generator)           both; uint8 becomes float in 0…1

Because the draw is apart, it depends on nothing but the generator: not on the device, the workers or the ranks. Each
rank draws for the whole global batch and applies its own rows:

    operation.apply(images[rows], params[rows])  =  operation.apply(images, params)[rows]       (to float rounding)

>>> import torch
>>> from kontrast.augment import ColorJitter, Compose, HorizontalFlip, RandomResizedCrop
>>> operation = Compose([RandomResizedCrop(32), HorizontalFlip(), ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8)])
>>> images = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
>>> params = operation.draw(8, (32, 32), torch.Generator().manual_seed(1))
>>> sorted(params)[:4]
['0/height', '0/left', '0/top', '0/width']
>>> whole = operation.apply(images, params)
>>> mine = operation.apply(images[2:5], params[2:5])
>>> bool((whole[2:5] - mine).abs().max() < 1e-6)
True
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, overload

import torch
from torch import Tensor

from kontrast.augment._inputs import Size, as_floats, generator_on_cpu


class Params:
    """Random parameters of ``n`` samples: named CPU tensors whose first dimension is n. ``params["top"]`` is one of
    them, ``params[rows]`` (a slice, a list or tensor of indices or of bools) are those of some samples.

    >>> params = Params(3, {"top": torch.tensor([0, 4, 8])})
    >>> params["top"], params[1:]["top"], len(params[[0]])
    (tensor([0, 4, 8]), tensor([4, 8]), 1)
    """

    def __init__(self, n: int, tensors: Mapping[str, Tensor] | None = None) -> None:
        self._n = n
        self._tensors = dict(tensors or {})
        for name, tensor in self._tensors.items():
            if len(tensor) != n:
                raise ValueError(f"{name} has {len(tensor)} rows; expected {n}, one a sample")

    @overload
    def __getitem__(self, key: str) -> Tensor: ...
    @overload
    def __getitem__(self, key: slice | Tensor | Sequence[int] | Sequence[bool]) -> Params: ...
    def __getitem__(self, key: str | slice | Tensor | Sequence[int] | Sequence[bool]) -> Tensor | Params:
        if isinstance(key, str):
            if key not in self._tensors:
                raise KeyError(f"no parameter {key!r}; there are {', '.join(sorted(self._tensors)) or 'none'}")
            return self._tensors[key]
        rows: Any = key if isinstance(key, slice) else torch.as_tensor(key, device="cpu")
        if isinstance(rows, Tensor) and not rows.numel():
            rows = rows.long()
        return Params(len(torch.arange(self._n)[rows]), {k: v[rows] for k, v in self._tensors.items()})

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{k}={list(v.shape)}" for k, v in self._tensors.items())
        return f"Params({self._n}{', ' if shapes else ''}{shapes})"

    def part(self, index: int) -> Params:
        """What `joined` put together under this index."""
        start = f"{index}/"
        return Params(self._n, {k[len(start) :]: v for k, v in self._tensors.items() if k.startswith(start)})

    @staticmethod
    def joined(n: int, parts: Sequence[Params]) -> Params:
        """The parameters of several operations, each name behind its operation's index: ``"0/top"``."""
        return Params(n, {f"{i}/{k}": v for i, part in enumerate(parts) for k, v in part._tensors.items()})


class Operation(ABC):
    """One augmentation. A new one writes `_draw` and `_apply`; checks, conversion and memory are taken care of here."""

    writes: ClassVar[bool] = True
    """Whether `_apply` may write into the images it is given; if not, it returns new memory."""

    def draw(self, n: int, size: Size | int, generator: torch.Generator | None = None) -> Params:
        """Parameters for n samples of this size: (height, width), or the length of a vector. Without a generator
        torch's global one is used."""
        if n < 0:
            raise ValueError(f"n is {n}; it is the number of samples to draw for")
        return self._draw(n, (size,) if isinstance(size, int) else tuple(size), generator_on_cpu(generator))

    @torch.no_grad()
    def apply(self, images: Tensor, params: Params) -> Tensor:
        """The augmented batch, in float32. What was passed in stays as it is; no gradient flows back."""
        batch = as_floats(images)
        if len(params) != len(batch):
            raise ValueError(
                f"{len(batch)} samples, but parameters for {len(params)}: draw for {len(batch)}, or pass params[rows]"
            )
        if self.is_writing and batch.data_ptr() == images.data_ptr():
            batch = batch.clone()
        with torch.autocast(batch.device.type, enabled=False):  # half precision would round what the weights multiply
            return self._apply(batch, params) if len(batch) else self._empty(batch)

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw for this batch and apply."""
        if not isinstance(images, Tensor) or images.ndim not in (2, 4):
            as_floats(images)  # says what is wrong
        return self.apply(images, self.draw(len(images), self.size_of(images), generator))

    @staticmethod
    def size_of(batch: Tensor) -> Size:
        """(height, width) of images [n, C, H, W], (length,) of vectors [n, D]."""
        return tuple(batch.shape[2:] if batch.ndim == 4 else batch.shape[1:])

    def output_size(self, size: Size) -> Size:
        """The size of what comes out for samples of this size."""
        return size

    @property
    def is_writing(self) -> bool:
        """`writes`, which a composition has from its first operation."""
        return self.writes

    def _empty(self, batch: Tensor) -> Tensor:
        """The result for no samples."""
        size = self.size_of(batch)
        return batch.new_empty(0, *batch.shape[1 : batch.ndim - len(size)], *self.output_size(size))

    @abstractmethod
    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        """The random numbers."""

    @abstractmethod
    def _apply(self, images: Tensor, params: Params) -> Tensor:
        """The computation, on at least one sample in float32."""


def chosen(n: int, p: float, generator: torch.Generator | None) -> Tensor:
    """[n] bools, each true with probability p."""
    return torch.rand(n, generator=generator) < p


def uniform(n: int, low: float, high: float, generator: torch.Generator | None) -> Tensor:
    """[n] numbers, uniform from low to high."""
    return torch.rand(n, generator=generator) * (high - low) + low
