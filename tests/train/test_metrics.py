"""The log: appended, cut back, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.train.metrics import Metrics, read_metrics


def test_lines_after_the_checkpoint_are_cut_and_none_comes_twice(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics(path, 0)
    metrics.append({"step": 1})
    offset = metrics.sync()
    metrics.append({"step": 2})
    metrics.close()
    again = Metrics(path, offset)
    again.append({"step": 2})
    assert again.sync() > offset
    again.close()
    assert read_metrics(path) == [{"step": 1}, {"step": 2}]


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "m").write_text('{"step": 1}\n{"st')
    assert read_metrics(tmp_path / "m") == [{"step": 1}]


def test_missing_lines_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "m").write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match="lines are missing"):
        Metrics(tmp_path / "m", 100)


def test_what_is_no_number_becomes_null(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path / "m", 0)
    metrics.append({"loss": float("nan")})
    metrics.close()
    assert read_metrics(tmp_path / "m") == [{"loss": None}]
