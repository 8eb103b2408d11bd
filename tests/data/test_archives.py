"""Archives unpack below their folder, or not at all."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from kontrast.data.downloads import ArchiveError, unpack

OUT = ["../out.txt", "a/../../out.txt", "/tmp/out.txt", "a\\..\\out.txt", "C:/out.txt", "C:out.txt", "a/.."]


def tar(path: Path, *members: tarfile.TarInfo | tuple[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as made:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                made.addfile(member, io.BytesIO(bytes(member.size)))
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                made.addfile(info, io.BytesIO(member[1]))
    return path


def packed(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members:
            made.writestr(name, content)
    return path


def kept(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def special(kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo("set/odd")
    info.type, info.linkname = kind, target
    return info


MAKERS: dict[str, Callable[..., Path]] = {"zip": packed, "tar": tar}


@pytest.mark.parametrize("kind", MAKERS)
def test_files_and_folders(tmp_path: Path, kind: str) -> None:
    archive = MAKERS[kind](tmp_path / f"set.{kind}", ("set/a.bin", b"one" * 9), ("set/b/c.bin", b"two"), ("d.txt", b""))
    assert unpack(archive, tmp_path / "to") == ["d.txt", "set"]
    assert kept(tmp_path / "to") == {"d.txt": b"", "set/a.bin": b"one" * 9, "set/b/c.bin": b"two"}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_every_compression(tmp_path: Path, mode: str) -> None:
    unpack(tar(tmp_path / "any", ("a", b"x"), mode=mode), tmp_path / "to")
    assert kept(tmp_path / "to") == {"a": b"x"}


@pytest.mark.parametrize("name", OUT)
@pytest.mark.parametrize("kind", MAKERS)
def test_names_that_lead_out(tmp_path: Path, kind: str, name: str) -> None:
    archive = MAKERS[kind](tmp_path / "bad", ("set/good.txt", b"good"), (name, b"bad"))
    (tmp_path / "to").mkdir()
    with pytest.raises(ArchiveError, match="a name that leads out of the folder"):
        unpack(archive, tmp_path / "to")
    assert kept(tmp_path) == {"bad": archive.read_bytes()}, "nothing is written, and nothing left of the good file"
    assert not list((tmp_path / "to").iterdir())
    assert not Path("/tmp/out.txt").exists()


@pytest.mark.parametrize(
    "member",
    [
        special(tarfile.SYMTYPE, "/etc"),
        special(tarfile.SYMTYPE, "a.txt"),
        special(tarfile.LNKTYPE, "../../etc/passwd"),
        special(tarfile.CHRTYPE),
        special(tarfile.BLKTYPE),
        special(tarfile.FIFOTYPE),
    ],
    ids=["symlink", "symlink inside", "hard link", "character device", "block device", "pipe"],
)
def test_links_and_devices_of_tar(tmp_path: Path, member: tarfile.TarInfo) -> None:
    archive = tar(tmp_path / "bad.tar", ("set/good.txt", b"good"), member, ("set/odd/through.txt", b"bad"))
    with pytest.raises(ArchiveError, match=r"holds (a link|a special file): 'set/odd'"):
        unpack(archive, tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_of_zip(tmp_path: Path, mode: int) -> None:
    info = zipfile.ZipInfo("set/odd")
    info.create_system, info.external_attr = 3, (mode | 0o777) << 16
    with pytest.raises(ArchiveError, match=r"holds (a link|a special file): 'set/odd'"):
        unpack(packed(tmp_path / "bad.zip", (info, b"/etc/passwd")), tmp_path / "to")


def test_a_name_with_a_zero_byte(tmp_path: Path) -> None:
    archive = packed(tmp_path / "bad.zip", ("set/abcd", b"x"))
    archive.write_bytes(archive.read_bytes().replace(b"set/abcd", b"set/a\0cd"))
    with pytest.raises(ArchiveError, match="leads out"):
        unpack(archive, tmp_path / "to")


@pytest.mark.parametrize("kind", MAKERS)
def test_bombs(tmp_path: Path, kind: str) -> None:
    bomb = MAKERS[kind](tmp_path / "bomb", *((f"set/{i}", bytes(1 << 20)) for i in range(3)))
    assert bomb.stat().st_size < 20_000
    with pytest.raises(ArchiveError, match=r"unpacks to more than 2,500,000 bytes"):
        unpack(bomb, tmp_path / "to", most_bytes=2_500_000)
    with pytest.raises(ArchiveError, match="more than 2 files"):
        unpack(bomb, tmp_path / "to", most_files=2)
    assert not list((tmp_path / "to").iterdir())
    assert unpack(bomb, tmp_path / "to", most_bytes=3 << 20, most_files=3) == ["set"], "the limits are the largest"


def test_a_declared_terabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("set/huge")
    info.size = 1 << 40
    (tmp_path / "huge.tar").write_bytes(info.tobuf() + bytes(10_240))
    with pytest.raises(ArchiveError, match="unpacks to more than"):
        unpack(tmp_path / "huge.tar", tmp_path / "to")


def test_a_zip_that_says_less_than_it_holds(tmp_path: Path) -> None:
    """It says ten bytes; what is read is what counts, and no more than the limit is written."""
    content = bytes(1 << 20)
    archive = packed(tmp_path / "liar.zip", ("a", content))
    raw = archive.read_bytes().replace(len(content).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    raw = raw.replace(zlib.crc32(content).to_bytes(4, "little"), zlib.crc32(bytes(10)).to_bytes(4, "little"))
    archive.write_bytes(raw)
    unpack(archive, tmp_path / "to", most_bytes=10)
    assert kept(tmp_path / "to") == {"a": bytes(10)}


@pytest.mark.parametrize(("names", "twice"), [(("a", "a"), "a"), (("a", "a/b"), "a"), (("a/b", "a"), "a")])
def test_a_name_twice(tmp_path: Path, names: tuple[str, str], twice: str) -> None:
    archive = tar(tmp_path / "bad.tar", *((name, b"x") for name in names))
    with pytest.raises(ArchiveError, match=rf"holds a name twice .*{twice}"):
        unpack(archive, tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())


def test_a_link_that_lies_there_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "set").symlink_to(tmp_path / "elsewhere")
    unpack(packed(tmp_path / "set.zip", ("set/a", b"x")), tmp_path / "to")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not (tmp_path / "to" / "set").is_symlink()


def test_what_is_damaged_leaves_the_old_one(tmp_path: Path) -> None:
    good = tar(tmp_path / "set.tgz", ("set/a", bytes(range(256)) * 40))
    unpack(good, tmp_path / "to")
    whole, before = good.read_bytes(), kept(tmp_path / "to")
    for raw in (
        whole[: len(whole) // 2],
        whole[:-30],
        b"",
        b"no archive at all",
        whole[:40] + b"\xff" * 20 + whole[60:],
    ):
        good.write_bytes(raw)
        with pytest.raises(ArchiveError, match="cannot be unpacked"):
            unpack(good, tmp_path / "to")
        assert kept(tmp_path / "to") == before
        assert len(list((tmp_path / "to").iterdir())) == 1
    unpack(tar(tmp_path / "new.tgz", ("set/b", b"new")), tmp_path / "to")
    assert kept(tmp_path / "to") == {"set/b": b"new"}, "replaced as a whole"


def test_modes_are_not_taken_over(tmp_path: Path) -> None:
    info = tarfile.TarInfo("run")
    info.mode = 0o6777
    unpack(tar(tmp_path / "a.tar", info), tmp_path)
    assert (tmp_path / "run").stat().st_mode & 0o7111 == 0
