"""How data become the inputs of an encoder: one place for training, evaluation, monitors, embedding and cards.

A checkpoint says what its images went through (`kontrast.models.Preprocessing`); `prepare` writes that into the data
set (`mean`, `std`, `size`, `crop`, `interpolation`), and whoever reads images reads it there. `embed` does the same for
a list of images in Python, where it is what `kontrast.models.Encoder.embed` calls.

The checkpoint's size is used for images of every size: pixels of 32 × 32 are enlarged to 224 × 224 for weights that
learned with that. It costs 49 times the work, and the features are far better; who wants it cheaper says so (``size=``,
``data.size`` or ``augment.size``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from kontrast import models
from kontrast.data import Crop, DataSet, ImageError, Memory, Split, decode
from kontrast.data.dataset import check_seeds
from kontrast.data.images import from_value, with_channels
from kontrast.evaluate.features import extract
from kontrast.evaluate.result import Progress
from kontrast.files import expanded
from kontrast.registry import one_line, quoted


def prepare(data: DataSet, preprocessing: models.Preprocessing, *, whole: bool = False) -> DataSet:
    """Return the data set, read as a checkpoint's images were.

    Args:
        data: Images.
        preprocessing: What the checkpoint's images went through; for other channels than the data's, its averages.
        whole: Keep the size that the images have: they were brought to it when they were loaded.

    Returns:
        The same rows with the mean, std, size, crop and interpolation of the checkpoint.

    >>> from kontrast.data import load
    >>> prepared = prepare(load("fashion-mini", limit=10), models.Preprocessing(56, (0.5,) * 3, (0.5,) * 3, "bicubic"))
    >>> prepared.mean, prepared.size, prepared.crop, prepared.interpolation
    ((0.5,), 56, 0.875, 'bicubic')
    """
    fit = preprocessing.with_channels(len(data.mean))
    where: dict[str, Any] = {} if whole else {"size": fit.size, "crop": fit.crop}
    return replace(data, mean=fit.mean, std=fit.std, interpolation=fit.interpolation, **where)


# ------------------------------------------------------------------------------------------------ encoder.embed


def embed(
    encoder: models.Encoder,
    images: Any,
    *,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """The features of images, as `kontrast.models.Encoder.embed` says it.

    Args:
        encoder: An encoder of images that knows its preprocessing.
        images: Paths, PIL images or arrays.
        batch_size: How many go through the encoder at once.
        device: Where it runs.
        progress: Called with ``("features", done, of)``.

    Returns:
        float32 ``[N, D]``.

    Raises:
        ValueError: An image cannot be read or has another type, there is none, or the preprocessing is not known.
    """
    if encoder.preprocessing is None:
        raise ValueError(
            "these weights do not say how images become inputs: load them with kontrast.load(…, "
            "preprocessing=kontrast.models.Preprocessing(size=224, mean=…, std=…))"
        )
    channels = int(getattr(encoder, "in_channels", len(encoder.preprocessing.mean)))
    how = encoder.preprocessing.with_channels(channels)
    return extract(
        encoder,
        Split(Images(_listed(images), channels)),
        mean=how.mean,
        std=how.std,
        size=how.size,
        fraction=how.crop,
        interpolation=how.interpolation,
        batch_size=batch_size,
        device=device,
        progress=progress,
    )


def embed_vectors(
    encoder: models.Encoder,
    vectors: Any,
    *,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """The features of vectors ``[N, D]`` (or one, ``[D]``), standardised as the encoder's run did it.

    Args:
        encoder: An encoder of vectors.
        vectors: An array, a tensor or a list.
        batch_size: How many go through the encoder at once.
        device: Where it runs.
        progress: Called with ``("features", done, of)``.

    Returns:
        float32 ``[N, feature_dim]``.

    Raises:
        ValueError: The vectors have another length, or are no finite numbers, or the encoder is not of a run.
    """
    if encoder.standardisation is None:
        raise ValueError("these weights do not say how vectors are standardised: load the run that they are of")
    mean, std = encoder.standardisation
    try:
        rows = torch.as_tensor(np.asarray(vectors) if isinstance(vectors, list | tuple) else vectors).to(torch.float32)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"vectors={quoted(vectors)}: must be numbers [N, {len(mean)}]") from None
    rows = rows[None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[1] != len(mean) or not len(rows):
        raise ValueError(f"vectors has shape {list(rows.shape)}: must be [N, {len(mean)}], at least one row")
    bad = (~rows.isfinite()).any(1)
    if bool(bad.any()):
        raise ValueError(f"vectors[{int(bad.nonzero()[0])}] holds NaN or infinity: must be finite numbers")
    split = Split(Memory(rows.cpu().contiguous()))
    return extract(encoder, split, mean=mean, std=std, batch_size=batch_size, device=device, progress=progress)


class Images:
    """Paths, PIL images and arrays as the inputs of a split; their sizes may differ, so they are read with a crop.

    >>> images = Images([np.zeros((4, 6, 3), dtype=np.uint8), Image.new("L", (8, 8))], channels=3)
    >>> from kontrast.data import CentreCrop
    >>> images.read(torch.arange(2), CentreCrop(4), [0, 0]).shape
    torch.Size([2, 3, 4, 4])
    """

    shape = None

    def __init__(self, images: Sequence[Any], channels: int) -> None:
        self.images, self.channels = images, channels

    def __len__(self) -> int:
        return len(self.images)

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Read and crop the images by number (see `kontrast.data.Inputs.read`)."""
        assert crop is not None
        crop_seeds = check_seeds(seeds, len(indices))
        return torch.stack([self._image(i, crop, s) for i, s in zip(indices.tolist(), crop_seeds, strict=True)])

    def _image(self, index: int, crop: Crop, seed: int) -> Tensor:
        image = self.images[index]
        is_path = isinstance(image, str | os.PathLike)
        name = f"images[{index}]" + (f" ({one_line(os.fspath(image))})" if is_path else "")
        try:
            if is_path:
                return decode(_file(image), channels=self.channels, crop=crop, seed=seed)
            if isinstance(image, Image.Image):
                image = ImageOps.exif_transpose(image)
            return crop(with_channels(from_value(image), self.channels), seed)
        except ImageError as error:
            raise ValueError(f"{name} cannot be read: {error}") from error


def _file(path: str | os.PathLike[str]) -> Path:
    file = expanded(path)
    if not file.is_file():
        raise ImageError(
            "it is a folder; embed one with `kontrast embed`" if file.is_dir() else "there is no such file"
        )
    return file


def _listed(images: Any) -> Sequence[Any]:
    """The images as a sequence; each of a type that can be read."""
    if isinstance(images, np.ndarray | Tensor) and images.ndim == 4:
        images = list(images)
    elif isinstance(images, str | os.PathLike | Image.Image | np.ndarray | Tensor):
        images = [images]
    if not isinstance(images, Sequence):
        raise ValueError(f"images={quoted(images)}: must be a list of paths, PIL images or arrays, or one of them")
    if not len(images):
        raise ValueError("images=[]: must hold at least one path, PIL image or array")
    for i, image in enumerate(images):
        if not isinstance(image, str | os.PathLike | Image.Image | np.ndarray | Tensor):
            raise ValueError(f"images[{i}]={quoted(image)}: must be a path, a PIL image or an array [H, W, C]")
    return images
