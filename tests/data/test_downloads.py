"""Only the published file is kept, whatever a server sends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest

from kontrast.data.downloads import DownloadError, download, matches
from tests.data.serving import Server, serving

CONTENT = bytes(range(256)) * 5000
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
SHA = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        made.pages["/set.bin"] = CONTENT
        yield made


@pytest.mark.parametrize("checksum", [MD5, SHA, SHA.upper().replace("SHA256", "sha256")])
def test_the_published_file(server: Server, tmp_path: Path, checksum: str) -> None:
    path = download(f"{server.url}/set.bin", tmp_path / "new" / "set.bin", checksum=checksum)
    assert path.read_bytes() == CONTENT
    download(f"{server.url}/set.bin", path, checksum=checksum)
    assert server.asked == ["/set.bin"], "what is there is not fetched again"


@pytest.mark.parametrize("sent", [CONTENT[:-1], CONTENT + b"x", b"", b"\1" + CONTENT[1:], b"<html>log in first</html>"])
def test_another_file_is_not_kept(server: Server, tmp_path: Path, sent: bytes) -> None:
    server.pages["/set.bin"] = sent
    with pytest.raises(DownloadError, match=rf"sent {len(sent):,} bytes with the sha256 .*; must be {SHA[7:]}"):
        download(f"{server.url}/set.bin", tmp_path / "set.bin", checksum=SHA)
    assert not list(tmp_path.iterdir()), "nor a part of it"


def test_a_line_that_breaks(server: Server, tmp_path: Path) -> None:
    server.claims["/set.bin"] = len(CONTENT) + 1000
    (tmp_path / "set.bin").write_bytes(b"old")
    server.pages["/set.bin"] = CONTENT[:5000]
    with pytest.raises(DownloadError, match=r"broke off \(IncompleteRead|sent 5,000 bytes"):
        download(f"{server.url}/set.bin", tmp_path / "set.bin", checksum=SHA)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"set.bin": b"old"}


def test_a_wrong_file_that_lies_there_is_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set.bin").write_bytes(CONTENT[:-1])
    download(f"{server.url}/set.bin", tmp_path / "set.bin", checksum=MD5)
    assert (tmp_path / "set.bin").read_bytes() == CONTENT


def test_without_end(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="sends more than 1,000 bytes"):
        download(f"{server.url}/set.bin", tmp_path / "set.bin", checksum=SHA, most_bytes=1000)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/etc/passwd", "data:,x"])
def test_only_the_web(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="must begin with http:// or https://"):
        download(url, tmp_path / "x", checksum=SHA)


def test_a_redirection_to_a_file_is_not_followed(server: Server, tmp_path: Path) -> None:
    server.moved["/set.bin"] = "file:///etc/passwd"
    with pytest.raises(URLError):
        download(f"{server.url}/set.bin", tmp_path / "x", checksum=SHA)
    server.moved = {"/old.bin": f"{server.url}/set.bin"}
    assert download(f"{server.url}/old.bin", tmp_path / "x", checksum=SHA).read_bytes() == CONTENT


def test_no_such_page_and_no_such_server(server: Server, tmp_path: Path) -> None:
    for url in (f"{server.url}/other.bin", "http://127.0.0.1:9/set.bin"):
        with pytest.raises(URLError):
            download(url, tmp_path / "x", checksum=SHA)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("checksum", ["", "md5:", "abc", "sha1:" + 40 * "0", "sha256:" + 32 * "0"])
def test_without_a_checksum_nothing_is_asked(server: Server, tmp_path: Path, checksum: str) -> None:
    with pytest.raises(ValueError, match=r"must be md5:… or sha256:…"):
        download(f"{server.url}/set.bin", tmp_path / "x", checksum=checksum)
    assert not server.asked


def test_a_file_by_its_checksum(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(CONTENT)
    assert matches(tmp_path / "x", MD5)
    assert matches(CONTENT, SHA)
    assert not matches(CONTENT[1:], SHA)
