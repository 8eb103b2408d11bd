"""Images in files, decoded when they are read: by the loader's workers, with the crop done there and then."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from kontrast.data.images import ImageError, decode
from kontrast.data.records import Crop
from kontrast.registry import one_line


class Folder:
    """Image files by path, decoded when read.

    ``shape`` (C, H, W) is that of all images, if they have one; ``crop`` brings them to one where ``read`` is given
    none. A file that cannot be read after all (files are checked when listed, but the disk may have changed) is
    replaced by the next one with the same label, with a warning; after ``max_bad`` such files it is an error.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (4, 2), "red").save(f"{folder}/a.png")
    ...     Folder([f"{folder}/a.png"], shape=(3, 2, 4)).read(torch.tensor([0]))[0, :, 0, 0]
    tensor([255,   0,   0], dtype=torch.uint8)
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        shape: tuple[int, int, int] | None = None,
        crop: Crop | None = None,
        labels: Tensor | None = None,
        channels: int = 3,
        max_bad: int = 10,
    ) -> None:
        if not len(paths):
            raise ValueError("no image files; expected at least one path")
        size = getattr(crop, "size", None)
        self.paths, self.crop, self.labels, self.channels, self.max_bad = list(paths), crop, labels, channels, max_bad
        self._shape = (channels, *size) if size else shape if crop is None else None
        self.bad: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"Folder({len(self)} files, shape={self.shape})"

    @property
    def shape(self) -> tuple[int, ...] | None:
        """(C, H, W); None where images differ in size."""
        return self._shape

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Decodes the files ``indices`` and crops each: uint8 ``[n, C, H, W]``."""
        if crop is None and self.shape is None and self.crop is None:
            raise ValueError(
                "these images differ in size; read them with a crop, or load them with size=… to bring them to one"
            )
        if crop is not None and (seeds is None or len(seeds) != len(indices)):
            seen = "none" if seeds is None else str(len(seeds))
            raise ValueError(f"a crop of {len(indices)} images needs as many seeds, one each; seen {seen}")
        wanted = crop or self.crop
        drawn = seeds if crop is not None and seeds is not None else [0] * len(indices)
        images = [self._image(int(i), wanted, int(seed)) for i, seed in zip(indices, drawn, strict=True)]
        if any(image.shape != images[0].shape for image in images):
            raise ValueError(
                f"{one_line(self.paths[int(indices[0])])} gives {list(images[0].shape)} and others of the batch other "
                "shapes; the files have changed since they were listed, load them anew"
            )
        return torch.stack(images) if images else torch.empty(0, *(self.shape or (self.channels, 0, 0))).byte()

    def _image(self, index: int, crop: Crop | None, seed: int) -> Tensor:
        """Image ``index``, or the next one of its label that can be read."""
        if index not in self.bad:
            try:
                return decode(self.paths[index], channels=self.channels, crop=crop, seed=seed)
            except ImageError as error:
                self._found_bad(index, str(error))
        after = torch.arange(index + 1, index + len(self)) % len(self)
        if self.labels is not None:
            after = after[self.labels[after] == self.labels[index]]
        for other in after.tolist():
            if other not in self.bad:  # which of the others are known to be bad changes nothing: they are passed over
                return self._image(other, crop, seed)
        raise ValueError(
            f"neither {one_line(self.paths[index])} nor any other file of its label can be read; mend or remove them"
        )

    def _found_bad(self, index: int, reason: str) -> None:
        self.bad[index] = reason
        message = f"{one_line(self.paths[index])} can no longer be read ({one_line(reason)})"
        if len(self.bad) > self.max_bad:
            raise ValueError(
                f"{message}; with it {len(self.bad)} files, more than the {self.max_bad} allowed: mend or remove them, "
                "or raise max_bad"
            )
        warnings.warn(f"{message}; the next image with its label stands in for it", UserWarning, stacklevel=5)
