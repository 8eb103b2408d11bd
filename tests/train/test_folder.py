"""Old names of `kontrast.runs.Run`."""

from __future__ import annotations

from pathlib import Path

from kontrast.train.folder import RunFolder


def test_old_names_are_those_of_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.read() == {}
    with folder.alone():
        folder.note("training", step=3)
    assert (folder.status, folder.read()["step"]) == ("training", 3)
    assert folder.last == folder.last_checkpoint
    assert folder.metrics == tmp_path / "metrics.jsonl"
