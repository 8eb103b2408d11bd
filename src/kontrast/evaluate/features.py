"""The features of a split: every row once through a frozen encoder, in order.

The encoder runs in eval mode without gradients; afterwards each of its parts is in its own mode and on its own device
again. Images of one size go in whole; of images of several sizes the middle is read (resize, centre crop 0.875). With
``fraction`` this part of the middle of every image is read, so that one image does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.augment import Compose, preset
from kontrast.augment.operation import Numbers
from kontrast.checks import whole_number
from kontrast.data import CentreCrop, DataSet, InOrder, Interpolation, Loader, Split
from kontrast.evaluate.activations import rows_at_once
from kontrast.evaluate.result import Progress

FRACTION = 0.875  # of the shorter side that is kept of images of several sizes: "resize 256, crop 224"


def extract(
    encoder: nn.Module,
    split: Split,
    *,
    mean: Numbers | None,
    std: Numbers | None,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
    size: int | None = None,
    fraction: float | None = None,
    interpolation: Interpolation = "bilinear",
    workers: int = 0,
    progress: Progress | None = None,
) -> Tensor:
    """Extract the features of every row of a split.

    Args:
        encoder: Maps a batch of inputs to features ``[n, D]``.
        split: The rows.
        mean: Normalises images by channel, vectors by feature; None for mean and std leaves images in 0…1 and vectors
            as they are.
        std: As ``mean``.
        batch_size: Rows that go through at once; None decides by the bytes of one row's activations
            (`kontrast.evaluate.activations`).
        device: Where the encoder runs; its own device by default.
        size: Pixels of the side, for images of several sizes (224, say).
        fraction: Bring this part of the middle of every image to ``size``.
        interpolation: How images are resized, "bilinear" or "bicubic".
        workers: Processes that read images.
        progress: Called with ``("features", done, of)``.

    Returns:
        float32 ``[N, D]`` on the CPU.

    Raises:
        ValueError: The encoder gives something else than finite ``[n, D]``, or images need another ``size``.

    >>> from kontrast import data
    >>> split = data.Split(data.Memory(torch.arange(6.0).view(3, 2)))
    >>> extract(nn.Linear(2, 4), split, mean=None, std=None).shape
    torch.Size([3, 4])
    """
    options: dict[str, Any] = {
        "batch_size": batch_size,
        "device": device,
        "size": size,
        "fraction": fraction,
        "interpolation": interpolation,
        "workers": workers,
        "progress": progress,
    }
    features, count = torch.empty(0), 0
    for h in features_of(encoder, split, mean=mean, std=std, **options):
        if not count:  # in place: joining batches at the end would need the memory twice
            features = torch.empty(len(split), h.shape[1])
        features[count : count + len(h)] = h
        count += len(h)
    return features


def features_of(
    encoder: nn.Module,
    split: Split,
    *,
    mean: Numbers | None,
    std: Numbers | None,
    batch_size: int | None = None,
    device: torch.device | str | None = None,
    size: int | None = None,
    fraction: float | None = None,
    interpolation: Interpolation = "bilinear",
    workers: int = 0,
    progress: Progress | None = None,
) -> Iterator[Tensor]:
    """Yield the features batch by batch, for more of them than memory holds; the arguments are those of `extract`.

    >>> from kontrast import data
    >>> split = data.Split(data.Memory(torch.arange(10.0).view(5, 2)))
    >>> [list(h.shape) for h in features_of(nn.Linear(2, 4), split, mean=None, std=None, batch_size=2)]
    [[2, 4], [2, 4], [1, 4]]
    """
    prepare, crop = normalisation(mean, std), middle(split, size, fraction, interpolation)
    if batch_size is not None:
        whole_number("batch_size", batch_size, least=1)
    count = 0
    with eval_mode(encoder, device) as place:
        if batch_size is None:
            row = split.inputs.read(torch.zeros(1, dtype=torch.int64), crop, None if crop is None else [0])
            batch_size = rows_at_once(encoder, prepare(row.to(place)))
        loader = Loader(split, InOrder(len(split), batch_size), workers=workers, crop=crop)
        for batch in loader.epoch(0):
            with torch.no_grad():  # not around the yield: who takes the batches may want gradients of their own
                h = check_output(encoder(prepare(batch.inputs.to(place))), len(batch.inputs)).float().cpu()
            bad = ~h.isfinite().all(1)
            if bool(bad.any()):
                raise ValueError(
                    f"the encoder gives NaN or infinity for row {count + int(bad.nonzero()[0])}; expected finite "
                    "features. Did its training diverge?"
                )
            yield h
            count += len(h)
            if progress is not None:
                progress("features", count, len(split))


def normalisation(mean: Numbers | None, std: Numbers | None) -> Compose:
    """The conversion of inputs to floats, with normalisation if mean and std are given."""
    return preset("none", mean=mean, std=std)


def fraction_of(data: DataSet) -> float | None:
    """The part of an image's middle that every split is read with; None if all images have one size.

    The data's own ``crop``, if they have one; else by the training images: if they differ in size it is `FRACTION`; if
    only test images do, those are read whole.
    """
    if data.crop is not None:
        return data.crop
    if data.train.inputs.shape is None:
        return FRACTION
    return 1.0 if data.test is not None and data.test.inputs.shape is None else None


def has_several_sizes(data: DataSet) -> bool:
    """Whether the training or test images differ in size."""
    return any(split is not None and split.inputs.shape is None for split in (data.train, data.test))


def middle(
    split: Split, size: int | None, fraction: float | None = None, interpolation: Interpolation = "bilinear"
) -> CentreCrop | None:
    """The crop that images are read with; None if they are read whole."""
    if fraction is not None:
        if size is None:
            raise ValueError(f"fraction is {fraction} without a size; give size=…, the pixels that the encoder takes")
        is_whole = fraction == 1 and split.inputs.shape is not None and split.inputs.shape[1:] == (size, size)
        return None if is_whole else CentreCrop(size, fraction, interpolation)
    if split.inputs.shape is not None:
        if size is not None and split.inputs.shape[1:] != (size, size):
            raise ValueError(
                f"size is {size}, but these inputs are {split.inputs.shape}; it goes with images of several sizes. "
                f"Load them with size={size} instead"
            )
        return None
    if size is None:
        raise ValueError("these images differ in size; give size=…, the pixels that the encoder takes (224, say)")
    return CentreCrop(size, FRACTION, interpolation)


def check_output(h: object, rows: int) -> Tensor:
    """Check that an encoder's output is ``[rows, D]``.

    Args:
        h: The output.
        rows: How many rows went in.

    Returns:
        The output.

    Raises:
        ValueError: Another type or shape.

    >>> check_output(torch.zeros(2, 3), 2).shape
    torch.Size([2, 3])
    """
    if not isinstance(h, Tensor) or h.ndim != 2 or len(h) != rows:
        shape = list(h.shape) if isinstance(h, Tensor) else type(h).__name__
        raise ValueError(
            f"the encoder gives {shape} for {rows} rows; expected features [{rows}, D]: flatten or pool them"
        )
    return h


def device_of(module: nn.Module) -> torch.device:
    """The device of a module's first tensor; the CPU if it has none.

    Args:
        module: Any module.

    Returns:
        The device.

    >>> device_of(nn.Linear(2, 1))
    device(type='cpu')
    """
    first = next(iter((*module.parameters(), *module.buffers())), None)
    return torch.device("cpu") if first is None else first.device


@contextmanager
def eval_mode(encoder: nn.Module, device: torch.device | str | None = None) -> Iterator[torch.device]:
    """Put the encoder into eval mode on a device; each part is back in its own mode and place afterwards.

    Args:
        encoder: The encoder.
        device: Where it runs; its own device by default.

    Returns:
        A context that gives the device.

    >>> encoder = nn.Dropout()
    >>> with eval_mode(encoder):
    ...     encoder.training
    False
    >>> encoder.training
    True
    """
    modes = [(part, part.training) for part in encoder.modules()]
    home = device_of(encoder)
    place = home if device is None else torch.device(device)
    try:
        encoder.eval()
        if place != home:
            encoder.to(place)
        yield place
    finally:
        if place != home:
            encoder.to(home)
        for part, training in modes:
            part.training = training
