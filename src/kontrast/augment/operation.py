"""What every augmentation is, and how augmentations combine: `Operation`, `Compose`, `Normalize`, `Views`.

An operation draws random numbers for a batch and then applies them, in two separate steps:

    params = operation.draw(n, size, generator)     parameters of each sample, on the CPU, first dimension n
    views  = operation.apply(images, params)        images [n, C, H, W] in 0…1 (or vectors [n, D]), on any device
    views  = operation(images, generator)           both; uint8 becomes float in 0…1

The draw depends on the generator alone, not on the device, the workers or the ranks. Each rank draws for the whole
global batch and applies its own rows:

    operation.apply(images[rows], params[rows])  =  operation.apply(images, params)[rows]       (to float rounding)

Crop, resize and flip are separable linear maps (`Separable`): two small matrices for each sample, applied as batched
products.

    (1)  Y_c = A X_c Bᵀ      for every channel c,   A [H', H] acting on the columns of pixels, B [W', W] on the rows
    (2)  A₂ (A₁ X B₁ᵀ) B₂ᵀ = (A₂A₁) X (B₂B₁)ᵀ       so a crop, its resizing and a flip are one pair of matrices

Two dense products cost H'HW + H'WW' multiplications per channel, which for small images is less than the overhead of
any loop over samples; above `DENSE` pixels each operation has a way of its own.

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

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

import torch
from torch import Tensor

from kontrast.registry import quoted

Size = tuple[int, ...]
OUTSIDE = 1e-3  # how far resizing and half precision may carry pixels beyond 0…1


def interval(name: str, value: Any, *, above: float = 0.0, most: float = math.inf) -> tuple[float, float]:
    """A range (low, high) of positive numbers, as floats."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not above < low <= high <= most:
        limit = "" if most == math.inf else f" ≤ {most:g}"
        raise ValueError(f"{name} must be a pair (low, high) with {above:g} < low ≤ high{limit}, got {value!r}")
    return low, high


def image_size(name: str, value: Any) -> tuple[int, int]:
    """Height and width of an image; one number means a square."""
    both = (value, value) if isinstance(value, numbers.Integral) else tuple(value) if hasattr(value, "__len__") else ()
    whole = all(isinstance(v, numbers.Integral) and not isinstance(v, bool) and int(v) > 0 for v in both)
    if len(both) != 2 or not whole:
        raise ValueError(f"{name} must be a number of pixels or a pair (height, width), got {quoted(value)}")
    return int(both[0]), int(both[1])


def generator_on_cpu(generator: torch.Generator | None) -> torch.Generator | None:
    """Check that draws come from the CPU, so that they do not depend on the batch's device."""
    if generator is not None and generator.device.type != "cpu":
        raise ValueError(
            f"the generator lives on {generator.device}; draws are made on the CPU so that they do not depend on the "
            f"device: pass torch.Generator().manual_seed(…)"
        )
    return generator


def as_floats(batch: Any) -> Tensor:
    """Convert a batch to float32: uint8 images become 0…1; float images must be in 0…1. Never copies float32."""
    if not isinstance(batch, Tensor):
        raise ValueError(f"expected a tensor, images [n, C, H, W] or vectors [n, D], got {type(batch).__name__}")
    if batch.ndim not in (2, 4):
        hint = "; add a first dimension to a single image: image[None]" if batch.ndim == 3 else ""
        raise ValueError(f"a batch has shape {list(batch.shape)}; expected images [n, C, H, W] or vectors [n, D]{hint}")
    if 0 in batch.shape[1:]:
        raise ValueError(f"a batch has shape {list(batch.shape)}: its samples are empty")
    if batch.dtype == torch.uint8:
        if batch.ndim == 2:
            raise ValueError("vectors must hold floating point numbers, got torch.uint8; call .float() on them")
        return batch.float().div_(255.0)
    if not batch.is_floating_point():
        raise ValueError(f"a batch must be uint8 or floating point, got {batch.dtype}")
    if batch.ndim == 4 and batch.numel():
        low, high = (float(v) for v in batch.detach().aminmax())
        if not (low >= -OUTSIDE and high <= 1 + OUTSIDE):  # NaN too
            raise ValueError(
                f"images hold floats from {low:g} to {high:g}; expected 0…1. Divide levels 0…255 by 255 or pass uint8; "
                "normalise after augmenting (mean= and std= of a preset, or Normalize as the last operation)"
            )
    return batch.float()


def rgb_or_grey(operation: str, images: Tensor) -> int:
    """The number of channels, 1 or 3; other images raise an error."""
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise ValueError(f"{operation} takes images [n, 1 or 3, H, W], got shape {list(images.shape)}")
    return images.shape[1]


def height_and_width(operation: str, size: Size) -> tuple[int, int]:
    """The size of images; vectors raise an error."""
    if len(size) != 2:
        raise ValueError(f"{operation} takes images, whose size is (height, width); got size {tuple(size)}")
    return int(size[0]), int(size[1])


def vector_length(operation: str, size: Size) -> int:
    """The length of vectors, whose size is (D,); images raise an error."""
    if len(size) != 1:
        raise ValueError(f"{operation} takes vectors [n, D], whose size is (D,); got size {tuple(size)}")
    return int(size[0])


class Params:
    """Random parameters of n samples: named CPU tensors with first dimension n.

    ``params["top"]`` is one of the tensors; ``params[rows]`` (a slice, a list or tensor of indices or bools) are the
    parameters of some samples.

    Args:
        n: the number of samples.
        tensors: the parameters by name.

    Raises:
        ValueError: a tensor of another length.

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
        """The parameters that `join` stored under this index."""
        start = f"{index}/"
        return Params(self._n, {k[len(start) :]: v for k, v in self._tensors.items() if k.startswith(start)})

    @staticmethod
    def join(n: int, parts: Sequence[Params]) -> Params:
        """The parameters of several operations, each name behind its operation's index: ``"0/top"``."""
        return Params(n, {f"{i}/{k}": v for i, part in enumerate(parts) for k, v in part._tensors.items()})


class Operation(ABC):
    """One augmentation. A subclass defines `_draw` and `_apply`; checks, conversion and memory are handled here.

    >>> from kontrast.augment import HorizontalFlip
    >>> HorizontalFlip(p=1.0)(torch.tensor([[[[0.0, 1.0]]]]))
    tensor([[[[1., 0.]]]])
    """

    kind: ClassVar[Literal["image", "vector"]] = "image"
    """The data that the operation is for, when a recipe lists it."""
    writes: ClassVar[bool] = True
    """Whether `_apply` may write into the images it is given; if not, it returns new memory."""

    def draw(self, n: int, size: Size | int, generator: torch.Generator | None = None) -> Params:
        """Draw the parameters of n samples.

        Args:
            n: the number of samples.
            size: (height, width) of images, or the length of vectors.
            generator: on the CPU; None uses torch's global one.
        """
        if n < 0:
            raise ValueError(f"n is {n}; it is the number of samples to draw for")
        return self._draw(n, (size,) if isinstance(size, int) else tuple(size), generator_on_cpu(generator))

    @torch.no_grad()
    def apply(self, images: Tensor, params: Params) -> Tensor:
        """Return the augmented batch in float32; the input is not changed and no gradient flows back.

        Args:
            images: images [n, C, H, W] or vectors [n, D].
            params: what `draw` returned for them.
        """
        batch = as_floats(images)
        if len(params) != len(batch):
            raise ValueError(
                f"{len(batch)} samples, but parameters for {len(params)}: draw for {len(batch)}, or pass params[rows]"
            )
        if self.is_writing and batch.data_ptr() == images.data_ptr():
            batch = batch.clone()
        with torch.autocast(batch.device.type, enabled=False):  # half precision would round what the weights multiply
            result = self._apply(batch, params) if len(batch) else self._empty(batch)
        if result.dtype != torch.float32:
            raise ValueError(
                f"{type(self).__name__}._apply must return torch.float32, as its input is; got {result.dtype}"
            )
        return result

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw parameters for this batch and apply them."""
        if not isinstance(images, Tensor) or images.ndim not in (2, 4):
            as_floats(images)  # says what is wrong
        return self.apply(images, self.draw(len(images), self.size_of(images), generator))

    @staticmethod
    def size_of(batch: Tensor) -> Size:
        """(height, width) of images [n, C, H, W], (length,) of vectors [n, D]."""
        return tuple(batch.shape[2:] if batch.ndim == 4 else batch.shape[1:])

    def output_size(self, size: Size) -> Size:
        """The output size for samples of this size."""
        return size

    @property
    def strength(self) -> Literal["none", "weak", "strong"]:
        """How much it changes a picture for an encoder: nothing, no more than a shift or a mirror, or more.

        By default nothing where the probability ``p`` is 0, else more.
        """
        return "none" if getattr(self, "p", 1.0) == 0.0 else "strong"

    @property
    def is_writing(self) -> bool:
        """Whether it writes into its input; a composition takes it from its first operation."""
        return self.writes

    def _empty(self, batch: Tensor) -> Tensor:
        """The result for an empty batch."""
        size = self.size_of(batch)
        return batch.new_empty(0, *batch.shape[1 : batch.ndim - len(size)], *self.output_size(size))

    @abstractmethod
    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        """Draw the random numbers."""

    @abstractmethod
    def _apply(self, images: Tensor, params: Params) -> Tensor:
        """Compute the result, for at least one sample in float32."""


def bernoulli(n: int, p: float, generator: torch.Generator | None) -> Tensor:
    """Draw n bools, each true with probability p.

    Args:
        n: how many.
        p: the probability of True.
        generator: on the CPU; None uses torch's global one.

    Returns:
        Bools ``[n]``.

    >>> bernoulli(3, 1.0, None)
    tensor([True, True, True])
    """
    return torch.rand(n, generator=generator) < p


def uniform(n: int, low: float, high: float, generator: torch.Generator | None) -> Tensor:
    """Draw n numbers, uniform from low to high.

    Args:
        n: how many.
        low: the smallest.
        high: the largest.
        generator: on the CPU; None uses torch's global one.

    Returns:
        Numbers, float32 ``[n]``.

    >>> uniform(2, 0.5, 0.5, None)
    tensor([0.5000, 0.5000])
    """
    return torch.rand(n, generator=generator) * (high - low) + low


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
    """An operation that is a separable linear map (1)."""

    writes: ClassVar[bool] = False

    @property
    def overshoots(self) -> bool:
        """Whether it may leave 0…1, so that the result is clamped before anything else is applied."""
        return False

    @abstractmethod
    def fold(self, maps: Maps, params: Params, size: Size, device: torch.device) -> Maps:
        """These maps, followed by this operation on images that now have this size."""

    @abstractmethod
    def _one_by_one(self, images: Tensor, params: Params) -> Tensor:
        """The same for large images, in new memory."""

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        return apply_maps([self], [params], images)


def apply_maps(operations: Sequence[Separable], params: Sequence[Params], images: Tensor) -> Tensor:
    """Separable operations in a row: as one pair of matrices if the images are small, else one after the other."""
    sizes = [height_and_width(type(operations[0]).__name__, Operation.size_of(images))]
    for operation in operations:
        sizes.append(height_and_width(type(operation).__name__, operation.output_size(sizes[-1])))
    if not is_small(*sizes):
        for operation, draws in zip(operations, params, strict=True):
            images = operation._one_by_one(images, draws)
        return images
    maps = Maps()
    for operation, draws, size in zip(operations, params, sizes, strict=False):
        maps = operation.fold(maps, draws, size, images.device)
        if operation.overshoots:
            images, maps = maps(images).clamp_(0, 1), Maps()
    return maps(images)


class Compose(Operation):
    """Several operations, one after the other, as one operation.

    Neighbouring separable operations (crop, resize, flip) become one pair of matrices for each sample; later operations
    work in place on the composition's own memory.

    Args:
        operations: in the order they are applied; without any, the batch is only converted to float.

    Raises:
        ValueError: an entry that is not an operation.

    >>> from kontrast.augment import HorizontalFlip, Normalize
    >>> images = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    >>> Compose([HorizontalFlip(p=1.0), Normalize(0.5, 0.25)])(images)
    tensor([[[[ 2., -2.]]]])
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        flat: list[Operation] = []
        for i, operation in enumerate(operations):
            if not isinstance(operation, Operation):
                raise ValueError(
                    f"operation {i} is {operation!r}; expected operations of kontrast.augment, such as HorizontalFlip()"
                )
            flat.extend(operation.operations if isinstance(operation, Compose) else [operation])
        self.operations: tuple[Operation, ...] = tuple(flat)

    def __repr__(self) -> str:
        return f"Compose([{', '.join(map(repr, self.operations))}])"

    @property
    def strength(self) -> Literal["none", "weak", "strong"]:
        """That of its strongest operation."""
        order: tuple[Literal["none", "weak", "strong"], ...] = ("none", "weak", "strong")
        return max((operation.strength for operation in self.operations), key=order.index, default="none")

    @property
    def is_writing(self) -> bool:
        """Whether the first operation writes; later ones get the composition's own memory."""
        return not self.operations or self.operations[0].is_writing

    def output_size(self, size: Size) -> Size:
        """The size after all operations."""
        for operation in self.operations:
            size = operation.output_size(size)
        return size

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        parts = []
        for operation in self.operations:
            parts.append(operation._draw(n, size, generator))
            size = operation.output_size(size)
        return Params.join(n, parts)

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        separable: list[Separable] = []
        draws: list[Params] = []
        for i, operation in enumerate(self.operations):
            if isinstance(operation, Separable):
                separable.append(operation)
                draws.append(params.part(i))
                continue
            if separable:
                images = apply_maps(separable, draws, images)
                separable, draws = [], []
            images = operation._apply(images, params.part(i))
        return apply_maps(separable, draws, images) if separable else images


Numbers = float | Sequence[float] | Tensor


class Normalize(Operation):
    """Normalise: x ← (x − mean) / std, per channel of images or per feature of vectors.

    It is the last operation of presets for images, and the first for vectors, so that noise is in standard deviations.
    A constant feature has a std of 0 (up to rounding: at most 1.2e-7 of its mean, where float32 has no values between).
    It is divided by 1 instead, so that it becomes 0 and not NaN. For images a std of 0 is an error.

    Args:
        mean: one number for all, or one for each channel (pixels in 0…1) or feature.
        std: the same.

    Raises:
        ValueError: numbers that are not finite, or a negative std.

    >>> Normalize(mean=(0.5, 0.4, 0.3), std=0.25)(torch.full((1, 3, 1, 1), 0.5)).flatten()
    tensor([0.0000, 0.4000, 0.8000])
    >>> Normalize(mean=(1.0, 5.0), std=(2.0, 0.0))(torch.tensor([[3.0, 5.0], [1.0, 5.5]]))
    tensor([[1.0000, 0.0000],
            [0.0000, 0.5000]])
    """

    def __init__(self, mean: Numbers, std: Numbers) -> None:
        self.mean, self.std = _values("mean", mean), _values("std", std)
        if min(self.std) < 0 or self.std == (0.0,):
            raise ValueError(f"std must be above 0 in every channel, got {std!r}")

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"

    @property
    def strength(self) -> Literal["none"]:
        """None: all views are normalised alike."""
        return "none"

    def check_images(self) -> None:
        """Raise an error for a std of 0, which only vectors may have."""
        if min(self.std) <= 0:
            raise ValueError(f"std must be above 0 in every channel of images, got {self.std}")

    def _draw(self, n: int, size: Size, generator: torch.Generator | None) -> Params:
        if len(size) == 2:
            self.check_images()
        return Params(n)

    def _apply(self, images: Tensor, params: Params) -> Tensor:
        mean, std = (self._column(name, images) for name in ("mean", "std"))
        if images.ndim == 2:
            constant = std <= mean.abs() * torch.finfo(torch.float32).eps
            std = torch.where(constant, 1.0, std)
        return images.sub_(mean).div_(std)

    def _column(self, name: str, batch: Tensor) -> Tensor:
        values: tuple[float, ...] = getattr(self, name)
        if len(values) not in (1, batch.shape[1]):
            kind, each = ("images", "channel") if batch.ndim == 4 else ("vectors", "feature")
            count, shape = len(values), list(batch.shape)
            raise ValueError(f"{name} has {count} numbers for {kind} of shape {shape}: one a {each}, or one for all")
        return torch.tensor(values, device=batch.device).view(1, -1, *[1] * (batch.ndim - 2))


def _values(name: str, value: Numbers) -> tuple[float, ...]:
    """A number, a sequence, an array or a tensor, as a tuple."""
    try:
        x = value.detach() if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64, device="cpu")
        values = tuple(x.double().reshape(-1).tolist())
    except (TypeError, ValueError, RuntimeError):
        values = ()
    if not values or not all(math.isfinite(v) for v in values):
        raise ValueError(f"{name} must be a finite number, or one each of the channels or features, got {value!r}")
    return values


class Views:
    """Several views of a batch, each by its own augmentation.

    The result is [n, V, C, H, W] (vectors: [n, V, D]), or a list of V batches if their sizes differ (global and local
    crops). A batch that has its views already, [n, V, C, H, W] (cropped at decoding, see `at_decoding`), gives each
    operation its own view.

    Args:
        operations: one for each view.

    Raises:
        ValueError: no operation, or an entry that is not one.

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
        """Draw the parameters of all views of n samples."""
        return Params.join(n, [operation.draw(n, size, generator) for operation in self.operations])

    def apply(self, images: Tensor, params: Params) -> Tensor | list[Tensor]:
        """Return the views (see the class)."""
        batches = self._batches(images)
        views = [
            o.apply(batch, params.part(i)) for i, (o, batch) in enumerate(zip(self.operations, batches, strict=True))
        ]
        return torch.stack(views, 1) if len({view.shape for view in views}) == 1 else views

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor | list[Tensor]:
        """Draw parameters for this batch and apply them."""
        one = self._batches(images[:0] if isinstance(images, Tensor) else images)[0]  # says what is wrong
        return self.apply(images, self.draw(len(images), Operation.size_of(one), generator))

    def _batches(self, images: Tensor) -> list[Tensor]:
        """The input of each operation: the batch as floats, converted once, or its own view."""
        if not isinstance(images, Tensor) or images.ndim != 5:
            return [as_floats(images)] * len(self)
        if images.shape[1] != len(self):
            raise ValueError(
                f"images {list(images.shape)} have {images.shape[1]} views; expected {len(self)}, one each"
            )
        return [as_floats(images[:, view]) for view in range(len(self))]
