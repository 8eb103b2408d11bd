"""``kontrast bench`` runs the script of the source tree; what it measures, tests/benchmarks/test_losses.py holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.cli import bench
from tests.cli.asking import ask


def test_runs_the_script_and_passes_its_status_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (bench.SCRIPTS / "losses.py").exists()
    (tmp_path / "losses.py").write_text("import sys; print('asked', sys.argv[1:]); sys.exit(3)", encoding="utf-8")
    monkeypatch.setattr(bench, "SCRIPTS", tmp_path)
    assert ask(monkeypatch, capfd, "bench").status == 3
    answer = ask(monkeypatch, capfd, "bench", "--whole", "--threads", "1")
    assert "asked ['--threads', '1']" in answer.out


def test_says_where_the_benchmarks_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "SCRIPTS", tmp_path)
    answer = ask(monkeypatch, capsys, "bench")
    assert answer.status == 2
    assert "source tree" in answer.err
