"""The features of a split: every row once through a frozen encoder, in order.

The encoder runs in eval mode without gradients, and is afterwards as it was: each part in its own mode, on its own
device. Images of one size go in whole; images of several sizes are read as their middle (resize, centre crop 0.875).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from kontrast.augment import Compose, preset
from kontrast.augment.normalize import Numbers
from kontrast.data import CentreCrop, InOrder, Loader, Split
from kontrast.evaluate._inputs import whole
from kontrast.evaluate.result import Progress

FRACTION = 0.875  # of the shorter side that is kept of images of several sizes: "resize 256, crop 224"


def extract(
    encoder: nn.Module,
    split: Split,
    *,
    mean: Numbers | None,
    std: Numbers | None,
    batch_size: int = 512,
    device: torch.device | str | None = None,
    size: int | None = None,
    workers: int = 0,
    progress: Progress | None = None,
) -> Tensor:
    """``encoder(x)`` for every row of a split: float32 ``[N, D]`` on the CPU.

    ``mean`` and ``std`` normalise images channel by channel, vectors feature by feature; None for both leaves images
    in 0…1 and vectors as they are. ``size`` is that of images of several sizes (224, say). ``device`` is where it runs:
    the encoder's own if left out.

    >>> from kontrast import data
    >>> split = data.Split(data.Memory(torch.arange(6.0).view(3, 2)))
    >>> extract(nn.Linear(2, 4), split, mean=None, std=None).shape
    torch.Size([3, 4])
    """
    prepare = normalisation(mean, std)
    loader = Loader(
        split, InOrder(len(split), whole("batch_size", batch_size)), workers=workers, crop=middle(split, size)
    )
    out: Tensor | None = None
    with frozen(encoder, device) as place, torch.no_grad():
        for done, batch in enumerate(loader.epoch(0)):
            h = checked(encoder(prepare(batch.inputs.to(place))), len(batch.inputs))
            if out is None:
                out = torch.empty(len(split), h.shape[1])
            start = done * batch_size
            out[start : start + len(h)] = h.float().cpu()
            if progress is not None:
                progress("features", min(start + batch_size, len(split)), len(split))
    assert out is not None
    finite = out.isfinite().all(1)
    if not bool(finite.all()):
        raise ValueError(
            f"the encoder gives NaN or infinity for {int((~finite).sum())} of {len(out)} rows (first: row "
            f"{int((~finite).nonzero()[0])}); expected finite features. Did its training diverge?"
        )
    return out


def normalisation(mean: Numbers | None, std: Numbers | None) -> Compose:
    """Images to floats, and what was given normalised."""
    return preset("none", mean=mean, std=std)


def middle(split: Split, size: int | None) -> CentreCrop | None:
    """The crop that images of several sizes are read with; None where all are of one."""
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
