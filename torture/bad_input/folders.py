"""Image folders: damaged, empty, huge and odd files under any names, links in circles; and the bytes of an image."""

from __future__ import annotations

import functools
import io
import os
import struct
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from PIL import Image

from bad_input.judging import Kind, unclear
from kontrast.data import load
from kontrast.data.images import CentreCrop, ImageError, decode

MODES = {
    "png": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "jpg": ("L", "RGB", "CMYK"),
    "gif": ("P", "L"),
    "bmp": ("1", "L", "P", "RGB"),
    "webp": ("RGB", "RGBA"),
    "tif": ("1", "L", "RGB", "RGBA", "CMYK", "F", "I;16"),
    "ppm": ("RGB",),
}
FORMATS = {"jpg": "JPEG", "tif": "TIFF"}
ODD = (
    *(
        "a b",
        " ",
        "two\nlines",
        'quote\'s "two"',
        "ünïcödé 日本語",
        "<script>alert(1)<script>",
        "&amp;",
        "%s",
        "$(true)",
    ),
    *(
        "-rf",
        "~",
        "a\x1b[31m",
        "a\tb",
        "con",
        "x" * 200,
        "\u202egnp",
        "\udcff\udcfe",
        "..a",
        "*",
        "#",
        "[bold]",
        "c:\\d",
    ),
    *("None", "nan", "0"),
)
SIZES = ((8, 8), (8, 8), (8, 8), (1, 1), (5, 9), (20_000, 1), (1, 20_000))


@functools.cache
def image(suffix: str, mode: str, size: tuple[int, int], shade: int = 0) -> bytes:
    """The file of a small picture."""
    width, height = size if suffix != "webp" else (min(size[0], 16_383), min(size[1], 16_383))  # its limit
    grey = ((np.arange(width * height).reshape(height, width) * 7 + shade) % 256).astype(np.uint8)
    made = Image.fromarray(grey)
    if mode == "I;16":
        made = Image.fromarray(grey.astype(np.uint16) * 257)
    elif mode == "F":
        made = Image.fromarray(grey.astype(np.float32) / 255)
    else:
        made = made.convert("RGBA" if mode in ("LA", "RGBA") else "RGB").convert(mode)
    file = io.BytesIO()
    made.save(file, FORMATS.get(suffix, suffix.upper()))
    return file.getvalue()


def png_header(width: int, height: int, data: bytes = b"") -> bytes:
    """A PNG file that says it is that large."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@functools.cache
def bombs() -> tuple[bytes, ...]:
    """Files of some kilobytes that would unfold to gigabytes: pixels, text, profile; and headers that promise them."""
    unfolded = zlib.compress(bytes(30_000_000))
    text = b"\x89PNG\r\n\x1a\n" + image("png", "L", (8, 8))[8:33]
    body = b"Comment\0\0" + zlib.compress(bytes(100_000_000))
    text += struct.pack(">I", len(body)) + b"zTXt" + body + struct.pack(">I", zlib.crc32(b"zTXt" + body))
    text += image("png", "L", (8, 8))[33:]
    bmp = bytearray(image("bmp", "RGB", (8, 8)))
    bmp[18:26] = struct.pack("<ii", 60_000, 60_000)
    gif = bytearray(image("gif", "P", (8, 8)))
    gif[6:10] = struct.pack("<HH", 65_535, 65_535)
    return (
        png_header(60_000, 60_000, unfolded),
        png_header(2**31 - 1, 2**31 - 1, unfolded),
        png_header(10_000, 10_000, unfolded),
        png_header(0, 0),
        text,
        bytes(bmp),
        bytes(gif),
        b"P6\n99999999999 99999999999\n255\n",
        b"P6\n-5 3\n255\n",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    )


@dataclass(frozen=True)
class Entry:
    """A file to be: where, what is in it, and whether it is a whole image."""

    path: str
    content: bytes | str  # text: what kind of link or special file
    good: bool


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A picture's bytes, cut off or changed."""
    suffix = draw(st.sampled_from(list(MODES)))
    made = bytearray(image(suffix, draw(st.sampled_from(MODES[suffix])), draw(st.sampled_from([(8, 8), (40, 30)]))))
    for _ in range(draw(st.integers(0, 6))):
        made[draw(st.integers(0, min(len(made), 120) - 1) | st.integers(0, len(made) - 1))] = draw(st.integers(0, 255))
    return bytes(made[: draw(st.integers(0, len(made)) | st.just(len(made)))])


names = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20),
)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """One thing in a folder."""
    levels = draw(
        st.sampled_from([[], ["cat"], ["dog"], ["cat"], ["dog"], ["train", "cat"], ["test", "cat"], ["unlabelled"]])
    )
    if draw(st.integers(0, 5)) == 0:
        levels = [*levels, draw(names)]
    stem = draw(names)
    suffix = draw(st.sampled_from(list(MODES)))
    what = draw(st.sampled_from(["good"] * 6 + ["damaged", "bomb", "nothing", "text", "other suffix", "link", "pipe"]))
    path = "/".join([*levels, stem + "." + suffix])
    if what == "damaged":
        return Entry(path, draw(damaged()), False)
    if what == "bomb":
        return Entry(path, draw(st.sampled_from(bombs())), False)
    if what == "link":
        return Entry("/".join([*levels, stem]), draw(st.sampled_from(["up", "itself", "nowhere", "folder.png"])), False)
    if what in ("nothing", "text", "pipe"):
        contents: dict[str, bytes | str] = {"nothing": b"", "text": b"<html>no image</html>", "pipe": "pipe"}
        return Entry(path, contents[what], False)
    content = image(suffix, draw(st.sampled_from(MODES[suffix])), draw(st.sampled_from(SIZES)), draw(st.integers(0, 9)))
    if what == "other suffix":
        path = "/".join([*levels, stem + draw(st.sampled_from([".jpg", ".png", "", ".JPEG", ".txt", ".tar.gz"]))])
    return Entry(path, content, True)


@st.composite
def folders(draw: st.DrawFn) -> tuple[list[Entry], dict[str, Any]]:
    """Some entries, and how they are to be loaded."""
    options: dict[str, Any] = {
        "size": draw(st.sampled_from([None, 8, 8, 1])),
        "channels": draw(st.sampled_from([None, None, 1, 3])),
        "labelled": draw(st.sampled_from([None, None, True, False])),
        "check": draw(st.sampled_from(["headers", "headers", "names", "full"])),
        "max_bad": draw(st.sampled_from([None, None, 0, 0.5, 100])),
        "cache": draw(st.sampled_from([False, False, True])),
        "limit": draw(st.sampled_from([None, None, 1, 3])),
    }
    return draw(st.lists(entries(), min_size=0, max_size=7)), options


def laid(folder: Path, made: list[Entry]) -> set[str]:
    """Makes the entries, as far as the file system takes them; the paths of the good ones."""
    good = set()
    for entry in made:
        path = folder / entry.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() or path.is_symlink():
                continue
            if isinstance(entry.content, bytes):
                path.write_bytes(entry.content)
            elif entry.content == "pipe":
                os.mkfifo(path)
            elif entry.content == "folder.png":
                path.with_name(path.name + ".png").mkdir()
            else:
                path.symlink_to({"up": folder, "itself": path, "nowhere": folder / "gone"}[entry.content])
        except (OSError, ValueError):  # a name that is too long, or a file where a folder should be
            continue
        if entry.good:
            good.add(entry.path)
    return good


def opened(case: tuple[list[Entry], dict[str, Any]]) -> None:
    """`load`, then every row is read: as many as there are, of one size, labels in range, no good image left out."""
    made, options = case
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "photos"
        folder.mkdir()
        good = laid(folder, made)
        data = load(folder, root=top, **options)
        for split in filter(None, (data.train, data.test, data.unlabelled)):
            rows = torch.arange(len(split))
            crop = CentreCrop(8) if split.inputs.shape is None else None
            read = split.inputs.read(rows, crop, [0] * len(rows) if crop else None)
            assert read.dtype == torch.uint8
            assert len(read) == len(split) > 0
            assert split.labels is None or 0 <= int(split.labels.min()) <= int(split.labels.max()) < data.num_classes
        for name, why in data.skipped:
            part, _, file = name.partition(": ")
            other = "suffix" in why or "beside the class folders" in why
            places = {file, f"{part}/{file}"}  # which of them, depends on what the folder was taken for
            whole = bool(places & good) and not places & {entry.path for entry in made if not entry.good}
            assert other or not whole, f"a whole image is skipped: {name} ({why})"
            assert why.isprintable(), f"{why!r} of {name!r}"


def one_image(content: bytes) -> None:
    """`decode`: looked at and whole, grey and coloured, and at another size."""
    with tempfile.TemporaryDirectory() as top:
        path = Path(top) / "image"
        path.write_bytes(content)
        for channels in (3, 1):
            _, height, width = decode(path, channels=channels, check=True).shape
            pixels = decode(path, channels=channels)
            assert pixels.shape == (channels, height, width)
            assert pixels.dtype == torch.uint8
            assert decode(path, channels=channels, crop=CentreCrop(4)).shape == (channels, 4, 4)


def file(content: bytes) -> None:
    """One file: an image, or an error that says why; `ImageError` leaves what to do to the list it is told in."""
    try:
        one_image(content)
    except ImageError as error:
        trouble = unclear(str(error))
        if trouble not in (None, "says not what to do"):
            raise
        raise ValueError("skipped, and listed with the reason; expected an image") from error


KINDS = [
    Kind("image folders", "files truncated, empty, huge, misnamed; links, pipes, any names", folders(), opened, cost=2),
    Kind(
        "image files",
        "seven formats in every mode, cut off and changed; bombs",
        damaged() | st.sampled_from(bombs()),
        file,
    ),
]
