"""Old names of `kontrast.runs`."""

from __future__ import annotations

from pathlib import Path

from kontrast.train.metrics import Metrics, read_metrics


def test_old_names_are_those_of_runs(tmp_path: Path) -> None:
    log = Metrics(tmp_path / "metrics.jsonl", 0)
    log.append({"step": 1})
    log.close()
    assert read_metrics(log.path) == [{"step": 1}]
