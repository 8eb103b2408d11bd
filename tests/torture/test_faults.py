"""The faults' own judgement, and a few of them: `python torture/faults.py` does hundreds."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "torture"))

import faults
from broken import disks, reading, runs
from broken.outcome import Row, harmed


def test_harm_is_done(tmp_path: Path) -> None:
    path, draw = tmp_path / "x", random.Random(0)
    path.write_bytes(b"0123456789")
    harmed(path, "flipped", draw)
    flipped = path.read_bytes()
    assert sum((a ^ b).bit_count() for a, b in zip(flipped, b"0123456789", strict=True)) == 1
    harmed(path, "cut", draw)
    assert len(path.read_bytes()) < 10
    harmed(path, "gone", draw)
    assert not path.exists()


def plain(path: Path) -> bytes:
    """Reads without looking."""
    return path.read_bytes()


def unnamed(path: Path) -> bytes:
    """Notices, and does not say where."""
    if path.read_bytes() != b"good" * 100:
        raise ValueError("something is damaged")
    return path.read_bytes()


def other(path: Path) -> bytes:
    """Does not know what it has."""
    raise IndexError(str(path))


@pytest.mark.parametrize("read", [plain, unnamed])
def test_what_is_read_wrong_or_not_named_is_missed(tmp_path: Path, read: Any) -> None:
    (tmp_path / "x").write_bytes(b"good" * 100)
    rows = reading.tried(reading.Kind("x", "x", read), tmp_path, 6, seed=0)
    assert [row.counts["missed"] for row in rows] == [6, 3]
    assert all(len(row.faults) == row.counts["missed"] for row in rows)


def test_an_error_nobody_catches_is_missed(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"good")
    assert reading._verdict(reading.Kind("x", "x", other), tmp_path / "x", b"good", "harm")[0] == "missed"


def test_the_page_is_filled_between_its_marks() -> None:
    begin, end = faults.MARKS["faults"]
    page = f"before\n{begin}earlier\n{end}after\n"
    row = Row("x", "cut")
    row.add("told")
    row.add("missed", "seen")
    filled = faults.filled(page, "faults", faults.table([row]))
    assert "| x | cut | 2 | 1 | 0 | 0 | 1 |" in filled
    assert "earlier" not in filled
    assert filled.startswith("before")
    assert filled.endswith("after\n")
    assert faults.filled(filled, "faults", faults.table([row])) == filled


def test_a_few_of_each(tmp_path: Path) -> None:
    """Files read after harm, a checkpoint half-way, and a run folder that may not be written to."""
    lab = runs.Lab(tmp_path)
    files = tmp_path / "files"
    files.mkdir()
    tmp_path.chmod(0o755)
    done = next(lab.whole(lab.recipe()).glob("*/run.json")).parent
    rows = [*reading.all_tried(files, done, 6), *runs.checkpoints(lab, 1, random.Random(1))]
    assert sum(row.counts.total() for row in rows) > 100
    assert [row.faults for row in rows if row.faults] == []
    assert all(row.counts["went on"] for row in rows[-2:])


@pytest.mark.slow
def test_every_group(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    rows = faults.tried(tmp_path, 15, list(faults.GROUPS), tell=len)
    assert [row.faults for row in rows if row.faults] == []
    assert disks.possible(tmp_path) == any("disk full" in row.fault for row in rows)
