"""Checkpoints are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from kontrast.files import write_json
from kontrast.train import checkpoint


def test_there_and_back(tmp_path: Path) -> None:
    state = {"step": 3, "weights": {"a": torch.arange(4.0)}, "states": [1, (2, "x")], "none": None}
    checkpoint.save(tmp_path / "deep" / "last.pt", state)
    back = checkpoint.load(tmp_path / "deep" / "last.pt")
    assert back["step"] == 3
    assert torch.equal(back["weights"]["a"], torch.arange(4.0))
    assert back["states"] == [1, (2, "x")]
    assert os.listdir(tmp_path / "deep") == ["last.pt"]


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"step": 1})

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    if where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    elif where == "replace":
        monkeypatch.setattr(Path, "replace", full)
    else:
        monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(path, {"step": 2})
    monkeypatch.undo()
    assert checkpoint.load(path)["step"] == 1
    assert os.listdir(tmp_path) == ["last.pt"]


def test_leftovers_of_a_kill_are_cleared(tmp_path: Path) -> None:
    (tmp_path / ".last.pt.12345.part").write_bytes(b"half")
    checkpoint.save(tmp_path / "last.pt", {"step": 1})
    assert os.listdir(tmp_path) == ["last.pt"]


@pytest.mark.parametrize("damage", ["cut", "junk", "list"])
def test_damaged_files_are_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"step": 1, "x": torch.zeros(1000)})
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:2000])
    elif damage == "junk":
        path.write_bytes(b"no checkpoint at all")
    else:
        torch.save([1], path)
    with pytest.raises(ValueError, match=r"last\.pt"):
        checkpoint.load(path)


def test_nothing_pickled_is_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "made"),))

    torch.save({"x": Evil()}, tmp_path / "last.pt")
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        checkpoint.load(tmp_path / "last.pt")
    assert not (tmp_path / "made").exists()


def test_json_is_standard(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": float("nan"), "b": [float("-inf"), 1.5], "c": {"d": "é"}})
    assert (tmp_path / "x.json").read_text().replace("\n", "").replace(
        " ", ""
    ) == '{"a":null,"b":[null,1.5],"c":{"d":"é"}}'
