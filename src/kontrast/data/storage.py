"""Where the images of a folder are kept: in memory, in a cache file, or in their own files.

In memory if they have one size (their own, or the ``size`` asked for) and fit the bytes allowed; in a cache file if one
is asked for; else they stay files and are decoded when read.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from kontrast.data.cache import fingerprint, open_or_write, write_cache
from kontrast.data.folder import Folder
from kontrast.data.images import CentreCrop, ImageError, decode
from kontrast.data.listing import Listing, check_images, quietly, stop_if_too_many
from kontrast.data.options import Options
from kontrast.data.records import Inputs, Memory

CHUNK, CHUNK_BYTES = 256, 2**26  # images that are decoded before they are put in place: at most so many, so large


def store(listing: Listing, options: Options) -> tuple[Inputs, Listing]:
    """Inputs for the images of a listing (by name only), and the listing without those that turned out to be none.

    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 6)).save(f"{folder}/a.png")
    ...     store(Listing(Path(folder), ["a.png"]), Options(size=4))[0]
    Memory(uint8 [1, 3, 4, 4])
    """
    if options.cache_folder is not None:
        return _cached(listing, options, options.cache_folder)
    shape = _shape(listing, options)
    if options.size is None or shape is None or not _fits(listing, shape, options):
        if options.check != "names":
            listing = check_images(listing, options)
        shape = _shape(listing, options)
        if shape is None or options.size is not None or not _fits(listing, shape, options):
            crop = None if options.size is None else CentreCrop(options.size)
            limit = options.bad_limit(len(listing))
            return Folder(listing.paths, shape=shape, crop=crop, channels=options.channels or 3, max_bad=limit), listing
    bad: dict[int, str] = {}
    rows: Tensor | None = None
    filled = 0
    for chunk in _decoded(listing, options, shape, bad):
        if rows is None:  # in place: joining chunks at the end would need the memory twice
            rows = torch.empty(len(listing), *shape, dtype=torch.uint8)
        rows[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
    listing = listing.without(bad)
    stop_if_too_many(listing, options)
    assert rows is not None
    return Memory(rows[:filled]), listing


def _shape(listing: Listing, options: Options) -> tuple[int, int, int] | None:
    """(C, H, W) of every image: at the size asked for, or their own if it is the same for all."""
    size = (options.size, options.size) if options.size is not None else listing.size
    return None if size is None else (options.channels or 3, *size)


def _fits(listing: Listing, shape: tuple[int, int, int], options: Options) -> bool:
    return len(listing) * shape[0] * shape[1] * shape[2] <= options.memory


def _decoded(listing: Listing, options: Options, shape: tuple[int, int, int], bad: dict[int, str]) -> Iterator[Tensor]:
    """All images, decoded by threads, in chunks uint8 ``[n, *shape]``; what cannot be read so goes into ``bad``."""
    crop = None if options.size is None else CentreCrop(options.size)

    def image(path: str) -> Tensor | str:
        try:
            return decode(path, channels=shape[0], crop=crop)
        except ImageError as error:
            return str(error)

    paths, step = listing.paths, max(1, min(CHUNK, CHUNK_BYTES // math.prod(shape)))
    with quietly(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(paths), step):
            kept: list[Tensor] = []
            for i, found in enumerate(pool.map(image, paths[start : start + step]), start):
                if isinstance(found, str):
                    bad[i] = found
                elif tuple(found.shape) != shape:
                    bad[i] = f"{list(found.shape)} and not {list(shape)} as it was when listed"
                else:
                    kept.append(found)
            if kept:
                yield torch.stack(kept)
            if len(bad) > options.bad_limit(len(paths)):  # no use in decoding the rest
                stop_if_too_many(listing.without(bad), options)


def _cached(listing: Listing, options: Options, folder: Path) -> tuple[Inputs, Listing]:
    """The images in a cache file, which is made first if there is none or the folder has changed."""
    channels = options.channels or 3
    made = fingerprint(listing.folder, listing.names, size=options.size, channels=channels)
    place = hashlib.blake2b(os.fsencode(listing.folder.resolve()), digest_size=4).hexdigest()
    tag = f"{options.size or 'own'}-{'rgb' if channels == 3 else 'grey'}"
    path = folder / f"{listing.folder.resolve().name}-{place}-{tag}.kimg"

    def write() -> None:
        bad: dict[int, str] = {}
        shape = _shape(listing, options)
        if shape is None:
            shape = _shape(check_images(listing, replace(options, check="headers")), options)
            if shape is None:
                raise ValueError(
                    f"the images in {listing.folder} differ in size and a cache holds one; give size=…, somewhat "
                    "larger than the crops that training takes (256 for 224)"
                )
        chunks = _decoded(listing, options, shape, bad)
        write_cache(path, chunks, shape=shape, fingerprint=made, skipped=partial(_left_out, listing, bad, options))

    images = open_or_write(path, made, write, verify=options.verify)
    reasons = dict(images.skipped)
    kept = listing.without({i: reasons[n] for i, n in enumerate(listing.names) if n in reasons})
    stop_if_too_many(kept, options)  # the cache may have been made when more were allowed
    return images, kept


def _left_out(listing: Listing, bad: dict[int, str], options: Options) -> list[tuple[str, str]]:
    """What could not be decoded, once all has been; an error (and no cache) if that is too much."""
    stop_if_too_many(listing.without(bad), options)
    return [(listing.names[i], reason) for i, reason in sorted(bad.items())]
