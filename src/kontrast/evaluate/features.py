"""The features of a split: every row once through a frozen encoder, in order.

The encoder runs in eval mode without gradients, and is afterwards as it was: each part in its own mode, on its own
device. Images of one size go in whole; images of several sizes are read as their middle (resize, centre crop 0.875).
``fraction`` asks for that part of the middle of all images, so that what becomes of one does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.augment import Compose, preset
from kontrast.augment.operation import Numbers
from kontrast.data import CentreCrop, DataSet, InOrder, Loader, Split
from kontrast.evaluate._inputs import whole
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
    workers: int = 0,
    progress: Progress | None = None,
) -> Tensor:
    """``encoder(x)`` for every row of a split: float32 ``[N, D]`` on the CPU.

    ``mean`` and ``std`` normalise images channel by channel, vectors feature by feature; None for both leaves images
    in 0…1 and vectors as they are. ``size`` is that of images of several sizes (224, say); with ``fraction`` that part
    of the middle of every image is brought to ``size``. ``device`` is where it runs: the encoder's own if left out.
    ``batch_size`` is how many rows go through at once; left out, it follows from the bytes of one row's activations
    (`kontrast.evaluate.activations`).

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
        "workers": workers,
        "progress": progress,
    }
    out: Tensor | None = None
    done = 0
    for h in features_of(encoder, split, mean=mean, std=std, **options):
        if out is None:
            out = torch.empty(len(split), h.shape[1])
        out[done : done + len(h)] = h
        done += len(h)
    assert out is not None
    return out


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
    workers: int = 0,
    progress: Progress | None = None,
) -> Iterator[Tensor]:
    """The same batch by batch, for features that are more than memory holds.

    >>> from kontrast import data
    >>> split = data.Split(data.Memory(torch.arange(10.0).view(5, 2)))
    >>> [list(h.shape) for h in features_of(nn.Linear(2, 4), split, mean=None, std=None, batch_size=2)]
    [[2, 4], [2, 4], [1, 4]]
    """
    prepare, crop = normalisation(mean, std), middle(split, size, fraction)
    if batch_size is not None:
        whole("batch_size", batch_size)
    done = 0
    with frozen(encoder, device) as place:
        if batch_size is None:
            row = split.inputs.read(torch.zeros(1, dtype=torch.int64), crop, None if crop is None else [0])
            batch_size = rows_at_once(encoder, prepare(row.to(place)))
        loader = Loader(split, InOrder(len(split), batch_size), workers=workers, crop=crop)
        for batch in loader.epoch(0):
            with torch.no_grad():  # not around the yield: who takes the batches may want gradients of their own
                h = checked(encoder(prepare(batch.inputs.to(place))), len(batch.inputs)).float().cpu()
            bad = ~h.isfinite().all(1)
            if bool(bad.any()):
                raise ValueError(
                    f"the encoder gives NaN or infinity for row {done + int(bad.nonzero()[0])}; expected finite "
                    "features. Did its training diverge?"
                )
            yield h
            done += len(h)
            if progress is not None:
                progress("features", done, len(split))


def normalisation(mean: Numbers | None, std: Numbers | None) -> Compose:
    """Images to floats, and what was given normalised."""
    return preset("none", mean=mean, std=std)


def fraction_of(data: DataSet) -> float | None:
    """The part of an image's middle that every split is read with; None where all images have a size of their own.

    By the training images: if they differ in size it is `FRACTION`; if only test images do, those are read whole.
    """
    if data.train.inputs.shape is None:
        return FRACTION
    return 1.0 if data.test is not None and data.test.inputs.shape is None else None


def middle(split: Split, size: int | None, fraction: float | None = None) -> CentreCrop | None:
    """The crop that images are read with: those of several sizes, with ``fraction`` all; None where they go whole."""
    if fraction is not None:
        if size is None:
            raise ValueError(f"fraction is {fraction} without a size; give size=…, the pixels that the encoder takes")
        whole_already = fraction == 1 and split.inputs.shape is not None and split.inputs.shape[1:] == (size, size)
        return None if whole_already else CentreCrop(size, fraction=fraction)
    if split.inputs.shape is not None:
        if size is not None and split.inputs.shape[1:] != (size, size):
            raise ValueError(
                f"size is {size}, but these inputs are {split.inputs.shape}; it goes with images of several sizes. "
                f"Load them with size={size} instead"
            )
        return None
    if size is None:
        raise ValueError("these images differ in size; give size=…, the pixels that the encoder takes (224, say)")
    return CentreCrop(size, fraction=FRACTION)


def checked(h: object, rows: int) -> Tensor:
    """What an encoder gave, if it is ``[rows, D]``."""
    if not isinstance(h, Tensor) or h.ndim != 2 or len(h) != rows:
        seen = list(h.shape) if isinstance(h, Tensor) else type(h).__name__
        raise ValueError(
            f"the encoder gives {seen} for {rows} rows; expected features [{rows}, D]: flatten or pool them"
        )
    return h


def device_of(module: nn.Module) -> torch.device:
    """Where a module's first tensor lies; the CPU if it has none."""
    first = next((t for t in (*module.parameters(), *module.buffers())), None)
    return torch.device("cpu") if first is None else first.device


@contextmanager
def frozen(encoder: nn.Module, device: torch.device | str | None = None) -> Iterator[torch.device]:
    """The encoder in eval mode on a device, each part back in its own mode and place afterwards."""
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
