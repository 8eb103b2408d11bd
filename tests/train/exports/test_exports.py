"""Where an export goes, and what is asked for wrongly."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from kontrast.train import exports
from tests.train.exports.made import made


def test_other_peoples_files_are_left_alone(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("mine")
    for folder, says in ((tmp_path / "mine", "holds other files"), (run, "holds other files")):
        with pytest.raises(ValueError, match=says):
            exports.export_run(run, "safetensors", folder)
    assert (tmp_path / "mine" / "README.md").read_text() == "mine"
    with pytest.raises(ValueError, match="is a file: must be a folder"):
        exports.export_run(run, "safetensors", tmp_path / "mine" / "README.md")


def test_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    first = exports.export_run(made(tmp_path / "one", "mlp", (5,)), "safetensors", tmp_path / "out")
    size = (first / "encoder.safetensors").stat().st_size
    again = exports.export_run(made(tmp_path / "two", "mlp", (9,)), "safetensors", tmp_path / "out")
    assert first == again
    assert (first / "encoder.safetensors").stat().st_size > size
    assert sorted(file.name for file in again.iterdir()) == ["README.md", "encoder.safetensors", "model.json"]


def test_what_a_killed_export_left_is_cleared_away_and_one_at_work_is_not(tmp_path: Path) -> None:
    run, out = made(tmp_path / "run", "mlp", (5,)), tmp_path / "out"
    for name in (".out.killed.part", ".out.at-work.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "encoder.safetensors").write_bytes(b"half")
    lock = os.open(tmp_path / ".out.at-work.part", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    exports.export_run(run, "safetensors", out)
    os.close(lock)
    assert sorted(file.name for file in out.iterdir()) == ["README.md", "encoder.safetensors", "model.json"]
    assert sorted(file.name for file in tmp_path.iterdir()) == [".out.at-work.part", "out", "run"]


def test_mistakes(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    with pytest.raises(ValueError, match=r"no export 'torchvison'; did you mean 'torchvision'\?"):
        exports.export_run(run, "torchvison")
    with pytest.raises(ValueError, match=r"export 'safetensors' has no option 'opset'\. It has none"):
        exports.export_run(run, "safetensors", opset=18)
    with pytest.raises(ValueError, match=r"has no model\.json; expected the folder of a finished run"):
        exports.export_run(tmp_path / "nowhere", "safetensors")
    (run / "model.json").write_text("{")
    with pytest.raises(ValueError, match=r"model\.json is damaged"):
        exports.export_run(run, "safetensors")
