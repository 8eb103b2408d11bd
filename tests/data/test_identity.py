"""Inputs that differ in one byte, or one file, are not the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from kontrast.data import Memory, Split, load
from kontrast.data.identity import identity
from kontrast.data.records import Rows
from tests.data.pictures import write


def test_rows_labels_and_their_number() -> None:
    x, y = torch.arange(40.0).view(20, 2), torch.arange(20) % 3
    mine = identity(Split(Memory(x), y))
    assert mine == identity(Split(Memory(x.clone()), y.clone()))
    others = [Split(Memory(x + 1), y), Split(Memory(x), (y + 1) % 3), Split(Memory(x)), Split(Memory(x[:19]), y[:19])]
    assert len({mine, *(identity(split) for split in others)}) == 5


def test_every_value_counts() -> None:
    x = torch.zeros(500, 3)
    mine = identity(Split(Memory(x)))
    for row in (0, 7, 250, 499):
        changed = x.clone()
        changed[row, 1] = 1
        assert identity(Split(Memory(changed))) != mine
    some = torch.arange(10)
    assert identity(Split(Rows(Memory(x), some))) != identity(Split(Rows(Memory(x), some + 1)))


@pytest.mark.parametrize("cached", [False, True])
def test_an_image_file_that_was_replaced(tmp_path: Path, cached: bool) -> None:
    for i in range(3):
        write(tmp_path / "images" / "a" / f"{i}.png", (9 + i, 12))

    def now(*, times: bool) -> str:
        options = {"cache": tmp_path / "cache", "size": 8} if cached else {}
        return identity(load(tmp_path / "images", labelled=False, **options).train, times=times)

    before = {times: now(times=times) for times in (False, True)}
    assert {times: now(times=times) for times in (False, True)} == before
    os.utime(tmp_path / "images" / "a" / "1.png", (1e9, 1e9))
    assert now(times=False) == before[False], "a copy of the same"
    assert (now(times=True) == before[True]) == cached
    write(tmp_path / "images" / "a" / "1.png", (40, 30))
    assert now(times=False) != before[False]


def test_inputs_of_another_kind_are_known_by_some_rows() -> None:
    class Own:
        shape = (2,)

        def __init__(self, values: torch.Tensor) -> None:
            self.values = values

        def __len__(self) -> int:
            return len(self.values)

        def read(self, indices: torch.Tensor, crop: object = None, seeds: object = None) -> torch.Tensor:
            return self.values[indices]

    x = torch.rand(30, 2)
    assert identity(Split(Own(x))) == identity(Split(Own(x.clone())))
    assert identity(Split(Own(x))) != identity(Split(Own(x + 1)))
