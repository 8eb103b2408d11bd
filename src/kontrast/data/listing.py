"""Which images lie in a folder: found by name, checked, sorted; what is no image is listed and skipped.

Hidden files and folders are passed over, links followed but not in circles, and names may hold any character. A file
counts as an image by its suffix, or if it has none; other files beside the images (annotations, notes) are listed as
*others* and do no harm. An image by name that is none, or is damaged, is *skipped*: listed with the reason, and once
there are more of them than the limit, loading stops.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from PIL import Image

from kontrast.data.images import ImageError, decode
from kontrast.data.options import Options
from kontrast.registry import one_line

SHOWN = 10  # skipped files that a message names


@dataclass(frozen=True)
class Listing:
    """The images of a folder: paths below ``folder``, sorted; ``sizes`` (height, width) where headers were read.

    ``skipped`` are images by name that are none, with the reason; ``others`` are files that are none by their suffix.
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
        """Where each image lies."""
        return [os.path.join(self.folder, name) for name in self.names]

    @property
    def size(self) -> tuple[int, int] | None:
        """The one (height, width) of all images; None if they differ or were not looked at."""
        return self.sizes[0] if self.sizes and len(set(self.sizes)) == 1 else None

    def without(self, bad: dict[int, str]) -> Listing:
        """The listing without images ``{index: reason}``, which join the skipped."""
        kept = [i for i in range(len(self)) if i not in bad]
        return replace(
            self,
            names=[self.names[i] for i in kept],
            skipped=[*self.skipped, *((self.names[i], reason) for i, reason in sorted(bad.items()))],
            sizes=None if self.sizes is None else [self.sizes[i] for i in kept],
        )


def list_images(folder: Path, options: Options, only: Collection[str] | None = None) -> Listing:
    """Every image below ``folder`` (below its subfolders ``only``), after the check that the options ask for.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (4, 2)).save(f"{folder}/b.png")
    ...     Image.new("RGB", (4, 2)).save(f"{folder}/a.jpg")
    ...     found = list_images(Path(folder), Options())
    >>> found.names, found.size
    (['a.jpg', 'b.png'], (2, 4))
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; expected one with images in it")
    listing = _walk(folder, only)
    if not len(listing):
        raise ValueError(f"no images in {folder} ({_holds(folder)}); known suffixes: {', '.join(sorted(suffixes()))}")
    return listing if options.check == "names" else check_images(listing, options)


def check_images(listing: Listing, options: Options) -> Listing:
    """The listing with the sizes of its images, and without the files that are none."""
    sizes: list[tuple[int, int]] = []
    bad: dict[int, str] = {}
    for i, found in enumerate(_checked(listing.paths, options.check == "full")):
        sizes.append((0, 0) if isinstance(found, str) else found)
        if isinstance(found, str):
            bad[i] = found
    checked = replace(listing, sizes=sizes).without(bad)
    stop_if_too_many(checked, options)
    return checked


def stop_if_too_many(listing: Listing, options: Options) -> None:
    """An error if more files were skipped than allowed, or none is left."""
    files = len(listing) + len(listing.skipped)
    if len(listing.skipped) <= options.bad_limit(files) and len(listing):
        return
    if files == 1:
        ((name, reason),) = listing.skipped
        raise ValueError(f"{one_line(str(listing.folder / name))} is the only image, and cannot be read: {reason}")
    if not len(listing):
        raise ValueError(
            f"none of the {files:,} image files in {listing.folder} can be read: {shown(listing.skipped)}. Expected at "
            "least one; mend them, or name another folder"
        )
    raise ValueError(
        f"{len(listing.skipped):,} of {files:,} image files in {listing.folder} cannot be read, more than the "
        f"{options.bad_limit(files):,} allowed: {shown(listing.skipped)}. Mend or remove them, or raise max_bad"
    )


def warn_of_skipped(skipped: Sequence[tuple[str, str]], files: int, folder: Path) -> None:
    """A warning that lists what was skipped, if anything was."""
    if skipped:
        warnings.warn(
            f"skipped {len(skipped):,} of {files:,} image files in {folder}: {shown(skipped)}",
            UserWarning,
            stacklevel=3,
        )


def shown(skipped: Sequence[tuple[str, str]]) -> str:
    """The first of the skipped files with their reasons, and how many more there are.

    >>> shown([("a.jpg", "truncated")])
    'a.jpg (truncated)'
    """
    listed = ", ".join(one_line(f"{name} ({reason})") for name, reason in skipped[:SHOWN])
    return listed + (f" and {len(skipped) - SHOWN:,} more" if len(skipped) > SHOWN else "")


@cache
def suffixes() -> frozenset[str]:
    """The suffixes of image formats that PIL can read pixels of, with their dot; films and documents are left out."""
    Image.init()
    known = {suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    return frozenset(known - {".pdf", ".eps", ".ps", ".mpg", ".mpeg", ".h5", ".hdf", ".grib", ".bufr", ".wmf", ".emf"})


@contextmanager
def quietly() -> Iterator[None]:
    """PIL's remarks about odd but readable files are not ours to pass on; its warning of size is our refusal."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\..*")
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        yield


def _walk(folder: Path, only: Collection[str] | None = None) -> Listing:
    """What lies below ``folder``, by name; links that lead nowhere are skipped."""
    listing = Listing(folder, [])

    def visit(place: str, below: str, above: frozenset[tuple[int, int]]) -> None:
        with os.scandir(place) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
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


def _checked(paths: list[str], whole: bool) -> Iterator[tuple[int, int] | str]:
    """(height, width) of each file, or why it is none; PIL waits for disk and decodes without Python's lock."""

    def look(path: str) -> tuple[int, int] | str:
        try:
            _, height, width = decode(path, check=not whole).shape
        except ImageError as error:
            return str(error)
        return height, width

    with quietly(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        yield from pool.map(look, paths, chunksize=64)


def _holds(folder: Path) -> str:
    """What lies in a folder without images, in a few words."""
    found = sorted(entry.name for entry in os.scandir(folder))
    return f"it holds {', '.join(map(one_line, found[:5]))}{' …' if len(found) > 5 else ''}" if found else "it is empty"
