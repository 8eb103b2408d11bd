"""Standard streams that are closed, full, unread, or lack letters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kontrast.cli._console import UNREAD, guard_streams
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train import resolve
from tests.cli.asking import START, one_paragraph, written

pytestmark = pytest.mark.skipif(os.name == "nt", reason="asks a POSIX shell for its streams")


def shell(words: str, redirected: str, **env: str) -> subprocess.CompletedProcess[str]:
    """``kontrast words`` in a shell, its streams as the shell makes them."""
    command = f'"$PYTHON" -c "$START" {words} {redirected}'
    told = {**os.environ, "PYTHON": sys.executable, "START": START, **env}
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=told)


def folder(recipe: Recipe) -> Run:
    return Run.of(resolve(recipe))


@pytest.mark.slow
@pytest.mark.parametrize("redirected", ["2>&-", "2> >(head -c 1 >/dev/null)", "2>/dev/full"])
def test_progress_that_nobody_reads_ends_nothing(tmp_path: Path, redirected: str) -> None:
    changes: dict[str, Any] = {"run.progress": True}
    path, recipe = written(tmp_path, **changes)
    done = shell(f"train '{path}'", redirected)
    assert done.returncode == 0
    assert "run folder:" in done.stdout
    assert folder(recipe).status == "done"


@pytest.mark.parametrize(
    ("redirected", "progress"), [pytest.param("2>&1", False, marks=pytest.mark.slow), ("2>&-", True)]
)
def test_results_that_nobody_reads_are_saved(tmp_path: Path, redirected: str, progress: bool) -> None:
    """Nor need anybody read the progress, which has ended nothing before."""
    changes: dict[str, Any] = {"run.progress": progress}
    path, recipe = written(tmp_path, **changes)
    done = shell(f"train '{path}'", f"{redirected} | true; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == UNREAD
    assert not done.stderr
    assert folder(recipe).status == "done"


@pytest.mark.parametrize("words", ["list recipes", "--help"])
def test_an_unread_pipe_is_no_error(words: str) -> None:
    done = shell(words, "| true; exit ${PIPESTATUS[0]}")
    assert done.returncode == UNREAD
    assert not done.stderr


@pytest.mark.parametrize("words", ["list recipes", "--version"])
def test_a_full_disk_is_named(words: str) -> None:
    done = shell(words, ">/dev/full")
    assert done.returncode == 2
    assert one_paragraph(done.stderr)
    assert "standard output could not be written: no space left on device" in done.stderr


def test_standard_output_may_be_closed() -> None:
    done = shell("list recipes", ">&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_keeps_its_status() -> None:
    assert shell("show nothing", "2>/dev/full").returncode == 2


def test_letters_that_the_encoding_lacks_are_written_out() -> None:
    done = shell("list recipes", "", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "supcon-fashion-mini" in done.stdout


def test_streams_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    before = sys.stderr
    with guard_streams():
        print("nobody")
        assert sys.stderr is not before
    assert sys.stdout is None
    assert sys.stderr is before
