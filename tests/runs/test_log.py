"""metrics.jsonl: appended, cut back on resume, read."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from kontrast.files import NotWritten
from kontrast.runs.log import MetricsLog
from kontrast.runs.reading import read_metrics_file


def test_lines_after_the_checkpoint_are_cut_and_none_comes_twice(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsLog(path, 0)
    metrics.append({"step": 1})
    offset = metrics.sync()
    metrics.append({"step": 2})
    metrics.close()
    again = MetricsLog(path, offset)
    again.append({"step": 2})
    assert again.sync() > offset
    again.close()
    assert read_metrics_file(path) == [{"step": 1}, {"step": 2}]


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "m").write_text('{"step": 1}\n{"st')
    assert read_metrics_file(tmp_path / "m") == [{"step": 1}]


def test_missing_lines_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "m").write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match="lines are missing"):
        MetricsLog(tmp_path / "m", 100)


def test_what_is_no_number_becomes_null(tmp_path: Path) -> None:
    metrics = MetricsLog(tmp_path / "m", 0)
    metrics.append({"loss": float("nan")})
    metrics.close()
    assert read_metrics_file(tmp_path / "m") == [{"loss": None}]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b'{"step": 1}\n{"step"\xff: 2}\n{"step": 3}\n')
    with pytest.raises(ValueError, match=r"line 2 of .*m is damaged"):
        read_metrics_file(tmp_path / "m")


@pytest.mark.parametrize("harm", ["none", "flipped", "cut", "gone"])
def test_lines_that_are_not_as_they_were_are_put_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    path = tmp_path / "m"
    metrics = MetricsLog(path, 0)
    for step in (1, 2):
        metrics.append({"step": step})
    offset, lines = metrics.sync(), zlib.decompress(metrics.packed())
    metrics.append({"step": 3})
    metrics.close()
    if harm == "gone":
        path.unlink()
    elif harm != "none":
        content = path.read_bytes()
        path.write_bytes(content[:7] if harm == "cut" else content.replace(b'"step": 1', b'"step": 5'))
    again = MetricsLog(path, offset, lines)
    again.append({"step": 3})
    again.close()
    assert read_metrics_file(path) == [{"step": 1}, {"step": 2}, {"step": 3}]
    told = capsys.readouterr().err
    assert ("restored from the checkpoint" in told) == (harm != "none")


def test_of_a_line_without_room_nothing_stays(tmp_path: Path) -> None:
    path = tmp_path / "m"
    metrics = MetricsLog(path, 0)
    metrics.append({"step": 1})

    class Full:
        """Takes 3 bytes more."""

        def __init__(self, file: Any) -> None:
            self.file, self.room = file, 3

        def write(self, content: Any) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            taken, self.room = self.file.write(content[: self.room]), 0
            return int(taken)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    metrics._file = Full(metrics._file)  # type: ignore[assignment]
    with pytest.raises(NotWritten, match=r"m cannot be written: No space left on device. Make room"):
        metrics.append({"step": 2})
    metrics.close()
    assert path.read_text() == '{"step": 1}\n'
