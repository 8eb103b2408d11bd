"""Image files: list a folder, check which files can be read, and decide where their pixels are kept.

Hidden files and folders are ignored, links are followed but not in circles. A file counts as an image by its suffix, or
if it has no suffix; other files (annotations, notes) are listed as *others*. An image that cannot be read is *skipped*:
it is listed with the reason, and loading stops when more files are skipped than ``max_bad`` allows.

`store` keeps the pixels in memory if all images have one size (their own, or the requested ``size``) and fit the
allowed bytes, in a cache file if one is requested, and else in the files, which are then decoded when they are read
(`Folder`).
"""

from __future__ import annotations

import hashlib
import math
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from kontrast.data.cache import fingerprint, open_or_write, write_cache
from kontrast.data.dataset import Inputs, Memory, Options, check_seeds
from kontrast.data.images import Crop, ImageError, decode
from kontrast.registry import one_line

SHOWN = 10  # skipped files that a message names


@dataclass(frozen=True)
class Listing:
    """The images of a folder.

    ``names`` are paths below ``folder``, sorted; ``sizes`` are (height, width), if headers were read. ``skipped`` are
    image files that cannot be read, with the reason; ``others`` are files that are no images by their suffix.
    """

    folder: Path
    names: list[str]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    sizes: list[tuple[int, int]] | None = None
    others: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def paths(self) -> list[str]:
        """The path of each image."""
        return [os.path.join(self.folder, name) for name in self.names]

    @property
    def size(self) -> tuple[int, int] | None:
        """The (height, width) of all images; None if they differ or were not read."""
        return self.sizes[0] if self.sizes and len(set(self.sizes)) == 1 else None

    def without(self, bad: dict[int, str]) -> Listing:
        """Return the listing without the images ``{index: reason}``, which join the skipped."""
        rest = [i for i in range(len(self)) if i not in bad]
        return replace(
            self,
            names=[self.names[i] for i in rest],
            skipped=[*self.skipped, *((self.names[i], reason) for i, reason in sorted(bad.items()))],
            sizes=None if self.sizes is None else [self.sizes[i] for i in rest],
        )


def list_images(folder: Path, only: Collection[str] | None = None) -> Listing:
    """List every image below ``folder`` (below its subfolders ``only``); no file is opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (4, 2)).save(f"{folder}/b.png")
    ...     Image.new("RGB", (4, 2)).save(f"{folder}/a.jpg")
    ...     list_images(Path(folder)).names
    ['a.jpg', 'b.png']
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: must be a folder with images")
    listing = _walk(folder, only)
    if not len(listing):
        raise ValueError(
            f"{folder}: must hold at least one image ({_holds(folder)}). Known suffixes: "
            f"{', '.join(sorted(suffixes()))}"
        )
    return listing


def check_images(listing: Listing, options: Options) -> Listing:
    """Return the listing with the sizes of its images, and without the files that cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (4, 2)).save(f"{folder}/a.png")
    ...     check_images(list_images(Path(folder)), Options()).size
    (2, 4)
    """
    sizes: list[tuple[int, int]] = []
    bad: dict[int, str] = {}
    for i, result in enumerate(_check_files(listing.paths, options.check == "full")):
        sizes.append((0, 0) if isinstance(result, str) else result)
        if isinstance(result, str):
            bad[i] = result
    readable = replace(listing, sizes=sizes).without(bad)
    check_skipped(readable, options)
    return readable


def check_skipped(listing: Listing, options: Options) -> None:
    """Raise a ValueError if more files were skipped than allowed, or no image is left."""
    files = len(listing) + len(listing.skipped)
    if len(listing.skipped) <= options.bad_limit(files) and len(listing):
        return
    if files == 1:
        ((name, reason),) = listing.skipped
        raise ValueError(f"{one_line(str(listing.folder / name))} is the only image, and cannot be read: {reason}")
    if not len(listing):
        raise ValueError(
            f"none of the {files:,} image files in {listing.folder} can be read: {format_skipped(listing.skipped)}. "
            "Repair them, or name another folder"
        )
    raise ValueError(
        f"{len(listing.skipped):,} of {files:,} image files in {listing.folder} cannot be read, more than the "
        f"{options.bad_limit(files):,} allowed: {format_skipped(listing.skipped)}. Repair or remove them, or "
        "raise max_bad"
    )


def warn_of_skipped(skipped: Sequence[tuple[str, str]], files: int, folder: Path) -> None:
    """Warn about the skipped files, if there are any."""
    if skipped:
        warnings.warn(
            f"skipped {len(skipped):,} of {files:,} image files in {folder}: {format_skipped(skipped)}",
            UserWarning,
            stacklevel=3,
        )


def format_skipped(skipped: Sequence[tuple[str, str]]) -> str:
    """The first skipped files with their reasons, and the number of the others.

    >>> format_skipped([("a.jpg", "truncated")])
    'a.jpg (truncated)'
    """
    first = ", ".join(one_line(f"{name} ({reason})") for name, reason in skipped[:SHOWN])
    return first + (f" and {len(skipped) - SHOWN:,} more" if len(skipped) > SHOWN else "")


@cache
def suffixes() -> frozenset[str]:
    """The suffixes, with the dot, of image formats that PIL reads pixels of; films and documents are left out."""
    Image.init()
    readable = {suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    return frozenset(
        readable - {".pdf", ".eps", ".ps", ".mpg", ".mpeg", ".h5", ".hdf", ".grib", ".bufr", ".wmf", ".emf"}
    )


@contextmanager
def ignore_pil_warnings() -> Iterator[None]:
    """Ignore PIL's warnings about unusual but readable files, and about sizes, which `decode` checks itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\..*")
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def _walk(folder: Path, only: Collection[str] | None = None) -> Listing:
    """List the files below ``folder`` by name; broken links are skipped."""
    listing = Listing(folder, [])

    def visit(place: str, below: str, above: frozenset[tuple[int, int]]) -> None:
        with os.scandir(place) as entries:
            content = sorted(entries, key=lambda entry: entry.name)
        for entry in content:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            if only is not None and not below and entry.name not in only:
                continue
            name = f"{below}{entry.name}"
            try:
                if entry.is_dir():
                    status = entry.stat()
                    here = (status.st_dev, status.st_ino)
                    if here not in above:  # a link back to a folder that we are in
                        visit(entry.path, f"{name}/", above | {here})
                elif os.path.splitext(entry.name)[1].lower() not in ("", *suffixes()):
                    listing.others.append(name)
                elif entry.is_file():
                    listing.names.append(name)
                else:
                    listing.skipped.append((name, "a link to nothing" if entry.is_symlink() else "no ordinary file"))
            except OSError as error:
                listing.skipped.append((name, error.strerror or str(error)))

    status = folder.stat()
    visit(os.fspath(folder), "", frozenset({(status.st_dev, status.st_ino)}))
    return listing


def _check_files(paths: list[str], whole: bool) -> Iterator[tuple[int, int] | str]:
    """(height, width) of each file, or why it cannot be read; PIL reads and decodes without Python's lock."""

    def look(path: str) -> tuple[int, int] | str:
        try:
            _, height, width = decode(path, check=not whole).shape
        except ImageError as error:
            return str(error)
        return height, width

    with ignore_pil_warnings(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        yield from pool.map(look, paths, chunksize=64)


def _holds(folder: Path) -> str:
    """The content of a folder without images, in a few words."""
    names = sorted(entry.name for entry in os.scandir(folder))
    return f"it holds {', '.join(map(one_line, names[:5]))}{' …' if len(names) > 5 else ''}" if names else "it is empty"


class Folder:
    """Image files, decoded when they are read.

    Files are checked when they are listed, but may change later. A file that can no longer be read is replaced by the
    next one with the same label, with a warning; after ``max_bad`` such files it is an error.

    Args:
        paths: the files, at least one.
        shape: (C, H, W) of all images, if they have one shape.
        crop: applied when ``read`` gets no crop.
        labels: int64 ``[N]``; used to replace unreadable files.
        channels: 3 (RGB) or 1 (grey).
        max_bad: how many files may become unreadable.

    Raises:
        ValueError: no paths.

    >>> import tempfile
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
            raise ValueError("paths: must hold at least one image file")
        size = getattr(crop, "size", None)
        self.paths, self.crop, self.labels, self.channels, self.max_bad = list(paths), crop, labels, channels, max_bad
        self.shape: tuple[int, int, int] | None = (channels, *size) if size else shape if crop is None else None
        self.bad: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"Folder({len(self)} files, shape={self.shape})"

    def read(self, indices: Tensor, crop: Crop | None = None, seeds: Sequence[int] | None = None) -> Tensor:
        """Decode the files ``indices`` and crop each: uint8 ``[n, C, H, W]`` (see `Inputs.read`)."""
        if crop is None and self.shape is None and self.crop is None:
            raise ValueError("these images differ in size: read them with a crop, or load them with size=…")
        crop_seeds = [0] * len(indices) if crop is None else check_seeds(seeds, len(indices))
        images = [self._image(int(i), crop or self.crop, seed) for i, seed in zip(indices, crop_seeds, strict=True)]
        if any(image.shape != images[0].shape for image in images):
            raise ValueError(
                f"{one_line(self.paths[int(indices[0])])} has shape {list(images[0].shape)} and other images of the "
                "batch have other shapes: the files have changed since they were listed. Load them again"
            )
        return torch.stack(images) if images else torch.empty(0, *(self.shape or (self.channels, 0, 0))).byte()

    def _image(self, index: int, crop: Crop | None, seed: int) -> Tensor:
        """Image ``index``, or the next one with its label that can be read."""
        if index not in self.bad:
            try:
                return decode(self.paths[index], channels=self.channels, crop=crop, seed=seed)
            except ImageError as error:
                self._add_bad(index, str(error))
        after = torch.arange(index + 1, index + len(self)) % len(self)
        if self.labels is not None:
            after = after[self.labels[after] == self.labels[index]]
        for other in after.tolist():
            if other not in self.bad:  # bad ones are skipped, so it does not matter which are known already
                return self._image(other, crop, seed)
        raise ValueError(
            f"neither {one_line(self.paths[index])} nor any other file of its label can be read. Repair or remove them"
        )

    def _add_bad(self, index: int, reason: str) -> None:
        self.bad[index] = reason
        message = f"{one_line(self.paths[index])} can no longer be read ({one_line(reason)})"
        if len(self.bad) > self.max_bad:
            raise ValueError(
                f"{message}; with it {len(self.bad)} files, more than the {self.max_bad} allowed. Repair or remove "
                "them, or raise max_bad"
            )
        warnings.warn(f"{message}; the next image with its label replaces it", UserWarning, stacklevel=5)


CHUNK, CHUNK_BYTES = 256, 2**26  # images that are decoded before they are put in place: at most so many, so large


def store(listing: Listing, options: Options) -> tuple[Inputs, Listing]:
    """Return inputs for the images of a listing (by name only), and the listing without the unreadable files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 6)).save(f"{folder}/a.png")
    ...     store(Listing(Path(folder), ["a.png"]), Options(size=4))[0]
    Memory(uint8 [1, 3, 4, 4])
    """
    if options.cache_folder is not None:
        return _open_or_write_cache(listing, options, options.cache_folder)
    shape = _shape(listing, options)
    if options.size is None or shape is None or not _fits(listing, shape, options):
        if options.check != "names":
            listing = check_images(listing, options)
        shape = _shape(listing, options)
        if shape is None or options.size is not None or not _fits(listing, shape, options):
            crop = options.centre_crop
            limit = options.bad_limit(len(listing))
            return Folder(listing.paths, shape=shape, crop=crop, channels=options.channels or 3, max_bad=limit), listing
    bad: dict[int, str] = {}
    rows: Tensor | None = None
    count = 0
    for chunk in _decode_chunks(listing, options, shape, bad):
        if rows is None:  # in place: joining chunks at the end would need the memory twice
            rows = torch.empty(len(listing), *shape, dtype=torch.uint8)
        rows[count : count + len(chunk)] = chunk
        count += len(chunk)
    listing = listing.without(bad)
    check_skipped(listing, options)
    assert rows is not None
    return Memory(rows[:count]), listing


def _shape(listing: Listing, options: Options) -> tuple[int, int, int] | None:
    """(C, H, W) of every image: at the requested size, or their own if all have the same."""
    size = (options.size, options.size) if options.size is not None else listing.size
    return None if size is None else (options.channels or 3, *size)


def _fits(listing: Listing, shape: tuple[int, int, int], options: Options) -> bool:
    return len(listing) * math.prod(shape) <= options.memory


def _decode_chunks(
    listing: Listing, options: Options, shape: tuple[int, int, int], bad: dict[int, str]
) -> Iterator[Tensor]:
    """Decode all images in threads, in chunks uint8 ``[n, *shape]``; unreadable files are added to ``bad``."""
    crop = options.centre_crop

    def image(path: str) -> Tensor | str:
        try:
            return decode(path, channels=shape[0], crop=crop)
        except ImageError as error:
            return str(error)

    paths, step = listing.paths, max(1, min(CHUNK, CHUNK_BYTES // math.prod(shape)))
    with ignore_pil_warnings(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(paths), step):
            images: list[Tensor] = []
            for i, result in enumerate(pool.map(image, paths[start : start + step]), start):
                if isinstance(result, str):
                    bad[i] = result
                elif tuple(result.shape) != shape:
                    bad[i] = f"{list(result.shape)} and not {list(shape)} as it was when listed"
                else:
                    images.append(result)
            if images:
                yield torch.stack(images)
            if len(bad) > options.bad_limit(len(paths)):  # the rest need not be decoded
                check_skipped(listing.without(bad), options)


def _open_or_write_cache(listing: Listing, options: Options, folder: Path) -> tuple[Inputs, Listing]:
    """The images in a cache file, which is written first if there is none or the folder has changed."""
    channels = options.channels or 3
    how = {} if options.interpolation == "bilinear" else {"interpolation": options.interpolation}
    key = fingerprint(listing.folder, listing.names, size=options.size, channels=channels, **how)
    place = hashlib.blake2b(os.fsencode(listing.folder.resolve()), digest_size=4).hexdigest()
    tag = "-".join([str(options.size or "own"), "rgb" if channels == 3 else "grey", *how.values()])
    path = folder / f"{listing.folder.resolve().name}-{place}-{tag}.kimg"

    def write() -> None:
        bad: dict[int, str] = {}
        shape = _shape(listing, options)
        if shape is None:
            shape = _shape(check_images(listing, replace(options, check="headers")), options)
            if shape is None:
                raise ValueError(
                    f"size=None: must be set for a cache, because the images in {listing.folder} differ in size. Use a "
                    "size somewhat larger than the training crops (256 for 224)"
                )
        chunks = _decode_chunks(listing, options, shape, bad)
        write_cache(path, chunks, shape=shape, fingerprint=key, skipped=partial(_list_bad_files, listing, bad, options))

    images = open_or_write(path, key, write, verify=options.verify)
    reasons = dict(images.skipped)
    readable = listing.without({i: reasons[n] for i, n in enumerate(listing.names) if n in reasons})
    check_skipped(readable, options)  # the cache may have been made when more were allowed
    return images, readable


def _list_bad_files(listing: Listing, bad: dict[int, str], options: Options) -> list[tuple[str, str]]:
    """The files that could not be decoded; raises, so that no cache is written, if they are too many."""
    check_skipped(listing.without(bad), options)
    return [(listing.names[i], reason) for i, reason in sorted(bad.items())]
