"""The verdicts of `torture/faults.py`, and a few of its cases."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import faults
from faults import Kind, Lab, Row


def test_damage_is_done(tmp_path: Path) -> None:
    path, draw = tmp_path / "x", random.Random(0)
    path.write_bytes(b"0123456789")
    faults.damage(path, "flipped", draw)
    assert sum((a ^ b).bit_count() for a, b in zip(path.read_bytes(), b"0123456789", strict=True)) == 1
    faults.damage(path, "cut", draw)
    assert len(path.read_bytes()) < 10
    faults.damage(path, "deleted", draw)
    assert not path.exists()


def no_check(path: Path) -> bytes:
    return path.read_bytes()


def no_name(path: Path) -> bytes:
    if path.read_bytes() != b"good" * 100:
        raise ValueError("something is damaged")
    return path.read_bytes()


def other_error(path: Path) -> bytes:
    if path.read_bytes() != b"good" * 100:
        raise IndexError(str(path))
    return path.read_bytes()


@pytest.mark.parametrize("read", [no_check, no_name, other_error])
def test_a_reader_that_does_not_report_damage_is_missed(tmp_path: Path, read: Any) -> None:
    (tmp_path / "x").write_bytes(b"good" * 100)
    rows = faults.reading([Kind("x", "x", read)], tmp_path, 6)
    assert [row.counts["missed"] for row in rows] == [6, 3]
    assert all(len(row.missed) == row.counts["missed"] for row in rows)
    assert "| **all** |  | 9 | 0 | 0 | 0 | 9 |" in faults.table(rows)


def test_a_few_cases(tmp_path: Path) -> None:
    """Files read after damage, and an interrupted run with a damaged checkpoint or log."""
    lab = Lab(tmp_path)
    files = tmp_path / "files"
    files.mkdir()
    run = next(lab.whole(lab.recipe()).glob("*/run.json")).parent
    rows: list[Row] = faults.reading(faults.write_files(files, run), files, 6)
    assert sum(row.counts.total() for row in rows) > 100
    rows += faults.checkpoints(lab, 1, random.Random(1))
    assert [row.missed for row in rows if row.missed] == []
    assert all(row.counts["resumed"] for row in rows[-2:])


@pytest.mark.slow
def test_every_group(tmp_path: Path) -> None:
    rows = list(faults.run_groups(tmp_path, 15, list(faults.GROUPS)))
    assert [row.missed for row in rows if row.missed] == []
    assert faults.can_mount(tmp_path) == any("disk full" in row.damage for row in rows)
