"""Files that are whole or not there. (Failing writes: tests/train/test_checkpoint.py.)"""

from __future__ import annotations

import fcntl
import io
import os
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.files import (
    NotRegularFile,
    NotWritten,
    digest,
    dump,
    finite,
    npz_names,
    open_regular,
    read_json,
    read_npz,
    read_regular,
    whole_file,
    write_atomically,
)


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_atomically(path, b"old")
    with whole_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


def cut_short(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_what_is_cut_short_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        cut_short(tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_what_json_cannot_say_is_null() -> None:
    assert finite({1: (float("nan"), 2.0, "nan")}) == {"1": [None, 2.0, "nan"]}
    assert dump(float("-inf")) == "null"


# -------------------------------------------------------------------------------------------- what cannot be written


@pytest.mark.parametrize("number", [28, 30, 13, 5])
def test_what_cannot_be_written_is_named_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "x"
    write_atomically(path, b"old")

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(NotWritten, match=rf"x cannot be written: {os.strerror(number)}\. .*unchanged") as caught:
        write_atomically(path, b"new")
    assert caught.value.errno == number
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def copy(source: Path, to: Path) -> None:
    with whole_file(to) as file:
        file.write(source.read_bytes())


def test_an_error_of_another_file_is_that_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        copy(tmp_path / "absent", tmp_path / "x")
    assert os.listdir(tmp_path) == []


FULL = """
import sys
from pathlib import Path
from kontrast.files import NotWritten, write_atomically
path = Path(sys.argv[1]) / "x"
write_atomically(path, b"old" * 1000)
try:
    write_atomically(path, b"new" * 1_000_000)
except NotWritten as error:
    print(error)
print(path.read_bytes() == b"old" * 1000, [p.name for p in path.parent.iterdir()])
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """A real one, of 1 MB, in a space of its own."""
    can = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(can, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    command = f"mount -t tmpfs -o size=1m tmpfs {tmp_path} && exec {sys.executable} -c '{FULL}' {tmp_path}"
    told = subprocess.run(["unshare", "-rm", "sh", "-c", command], capture_output=True, text=True)
    assert told.stdout.splitlines() == [
        f"{tmp_path}/x cannot be written: No space left on device. Make room there, and try again; the file "
        "before is unchanged",
        "True ['x']",
    ], told.stderr


# -------------------------------------------------------------------------------------------- what cannot be read


def test_damaged_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for content in (b"{", b"\xff\xfe", b"[1]", b"null", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.json is damaged \(.*\); put it back"):
            read_json(path, "put it back")
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "absent", "put it back")


ARRAYS = {"x_train": np.arange(60, dtype=np.float32).reshape(6, 10), "y": np.arange(6)}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_no_flipped_bit_and_no_cut_changes_what_is_read(tmp_path: Path, save: Any) -> None:
    """Bits of the directory, where one can hide an array, and of the rest: an error, or the same arrays."""
    path = tmp_path / "x.npz"
    buffer = io.BytesIO()
    save(buffer, **ARRAYS)
    content = buffer.getvalue()
    directory = content.index(b"PK\x01\x02")
    draw = random.Random(0)
    every = 1 if save is np.savez else 5
    bits = [*range(8 * directory, 8 * len(content), every), *(draw.randrange(8 * directory) for _ in range(300))]
    found = 0
    for bit in bits:
        harmed = bytearray(content)
        harmed[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(harmed)
        found += not same_arrays(path)
    assert found > len(bits) // 3  # the rest are times, versions and the like
    for length in range(0, len(content), 17):
        path.write_bytes(content[:length])
        assert not same_arrays(path)


def same_arrays(path: Path) -> bool:
    """Whether they are read, and then as they were; False if it is an error that names the file."""
    try:
        seen = read_npz(path, "put it back")
    except ValueError as error:
        told = str(error)
    else:
        told = None
    if told is not None:
        assert told.startswith(f"{path} is damaged (")
        assert told.endswith("); put it back")
        return False
    assert seen.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert seen[name].dtype == array.dtype
        np.testing.assert_array_equal(seen[name], array)
    return True


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **ARRAYS)  # type: ignore[arg-type]
    assert list(read_npz(tmp_path / "x.npz", "", names=("y", "z"))) == ["y"]
    assert npz_names(tmp_path / "x.npz", "") == ["x_train", "y"]


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_npz(tmp_path / "x.npz", "")


def test_what_a_killed_writer_left_goes_and_what_another_writes_stays(tmp_path: Path) -> None:
    (tmp_path / ".x.99999-abcd.part").write_bytes(b"left by one that is no more")
    (tmp_path / ".xy.99999-abcd.part").write_bytes(b"of another file")
    with whole_file(tmp_path / "x") as first:
        first.write(b"first")
        write_atomically(tmp_path / "x", b"second")  # meanwhile, by another
        assert (tmp_path / "x").read_bytes() == b"second"
    assert (tmp_path / "x").read_bytes() == b"first"
    assert sorted(os.listdir(tmp_path)) == [".xy.99999-abcd.part", "x"]


def test_a_file_that_is_cleared_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer may take it for a leftover in the moment between its making and its locking."""
    real, cleared = fcntl.flock, []

    def late(file: int, how: int) -> None:
        if not cleared:
            (left,) = tmp_path.glob(".x.*.part")
            left.unlink()
            cleared.append(left)
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomically(tmp_path / "x", b"new")
    assert cleared
    assert (tmp_path / "x").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


# -------------------------------------------------------------------------------------------- what is no file


def test_a_pipe_a_folder_a_device_and_a_socket_are_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "c").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "d"))
        for name, kind in {"a": "pipe", "b": "folder", "c": "device", "d": "socket"}.items():
            for read in (open_regular, digest, lambda path: read_json(path, ""), lambda path: read_npz(path, "")):
                with pytest.raises(NotRegularFile, match=rf"^{tmp_path}/{name} is a {kind}, not a file$"):
                    read(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "absent")


def test_a_file_and_a_link_to_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").symlink_to("a")
    assert read_regular(tmp_path / "a") == read_regular(tmp_path / "b") == b"1"


def test_leftovers_of_any_kind_are_cleared_and_what_a_link_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").write_bytes(b"1")
    os.mkfifo(tmp_path / ".x.1-a.part")
    (tmp_path / ".x.1-b.part").symlink_to("elsewhere")
    (tmp_path / ".x.1-c.part").symlink_to("elsewhere/kept")
    (tmp_path / ".x.1-d.part").symlink_to("nowhere")
    (tmp_path / ".x.1-e.part" / "deep").mkdir(parents=True)
    (tmp_path / ".x.1-e.part" / "deep" / "link").symlink_to(tmp_path / "elsewhere")
    write_atomically(tmp_path / "x", b"new")
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "x"]
    assert (tmp_path / "elsewhere" / "kept").read_bytes() == b"1"
