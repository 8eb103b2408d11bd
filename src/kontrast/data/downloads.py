"""Files from the network, each known by its checksum before it is fetched.

What comes is hashed while it is written beside its place; only the file that was published is moved there, and any
other is removed. So a server, a proxy or a line that answers with something else is found out over plain http as well,
and nothing unpacks or reads what it sent.

Checksums are the publishers' or torchvision's: mostly MD5. To make *another* file of a given MD5 (a second preimage) is
beyond anyone's means; its known weakness, two files made together that agree, is of no use against a fixed list.
"""

from __future__ import annotations

import hashlib
import http.client
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kontrast.files import whole_file

CHUNK = 1 << 20
WAIT = 60.0  # seconds without a byte
MOST_BYTES = 8 << 30


class DownloadError(ValueError):
    """A file that could not be had, or is another than was published."""


def download(url: str, path: Path, *, checksum: str, most_bytes: int = MOST_BYTES) -> Path:
    """The file at ``path``, fetched from ``url`` unless it lies there; ``checksum`` is ``"md5:…"`` or ``"sha256:…"``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     here = Path(folder, "a.txt")
    ...     _ = here.write_text("first")
    ...     known = "sha256:a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
    ...     download("http://nowhere.invalid/a.txt", here, checksum=known) == here  # it is there: nobody is asked
    True
    """
    algorithm, expected = _parsed(checksum)
    if path.is_file() and matches(path, checksum):
        return path
    if urlsplit(url).scheme not in ("http", "https"):
        raise DownloadError(f"{url} is no address of the web; expected http:// or https://")
    digest, size = hashlib.new(algorithm, usedforsecurity=False), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "kontrast"})
    try:
        with urllib.request.urlopen(request, timeout=WAIT) as answer, whole_file(path) as file:
            with _bar(answer.length, path.name) as bar:
                while part := answer.read(CHUNK):
                    size += len(part)
                    if size > most_bytes:
                        raise DownloadError(f"{url} sends more than {most_bytes:,} bytes; it was not kept")
                    digest.update(part)
                    file.write(part)
                    bar.update(len(part))
            if digest.hexdigest() != expected:
                raise DownloadError(
                    f"{url} sent {size:,} bytes with the {algorithm} {digest.hexdigest()}; expected {expected}. It is "
                    "not the published file and was not kept; try again later, or from another network"
                )
    except http.client.HTTPException as error:
        raise DownloadError(f"{url} broke off ({type(error).__name__}: {error}); try again") from error
    return path


def matches(content: Path | bytes, checksum: str) -> bool:
    """Whether a file, or bytes that were read from one, have the checksum.

    >>> known = "md5:8b04d5e3775d298e78455efc5ca404d5"
    >>> matches(b"first", known), matches(b"other", known)
    (True, False)
    """
    algorithm, expected = _parsed(checksum)
    if isinstance(content, bytes):
        return hashlib.new(algorithm, content, usedforsecurity=False).hexdigest() == expected
    with content.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest() == expected


def _parsed(checksum: str) -> tuple[str, str]:
    algorithm, _, expected = checksum.partition(":")
    if algorithm not in ("md5", "sha256") or len(expected) != {"md5": 32, "sha256": 64}[algorithm]:
        raise ValueError(f"checksum is {checksum!r}; expected md5:… or sha256:… with its hexadecimal digits")
    return algorithm, expected.lower()


def _bar(length: int | None, name: str) -> Any:
    """How far it is, on standard error."""
    from torch.hub import tqdm  # type: ignore[attr-defined]  # tqdm's where that is installed, else a plain one of torch's

    return tqdm(total=length, unit="B", unit_scale=True, desc=name)
