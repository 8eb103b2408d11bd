"""Files that are whole or not there. (Failing writes: tests/train/test_checkpoint.py.)"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kontrast.files import dump, finite, whole_file, write_atomically


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
