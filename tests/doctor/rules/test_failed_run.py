"""A failed run is told first, with its error; an interrupted one is to be continued."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast import doctor
from tests.doctor import patients


def test_a_loss_that_is_no_number() -> None:
    found = patients.findings("diverged")["failed-run"]
    assert found.status == "problem"
    assert "NonFiniteLoss" in found.evidence
    assert "optim.lr" in found.advice


def test_a_run_that_ended() -> None:
    assert patients.findings("healthy")["failed-run"].status == "ok"


@pytest.mark.parametrize(
    ("status", "error", "grade", "cure"),
    [
        ("failed", "OutOfMemoryError: CUDA out of memory", "problem", "micro_batch"),
        ("failed", "KeyError: 'x'", "problem", "read the error"),
        ("failed", None, "problem", "read the error"),
        ("interrupted", None, "warning", "kontrast train"),
        ("training", None, "warning", "kontrast train"),
    ],
)
def test_each_status_has_its_cure(status: str, error: str | None, grade: str, cure: str, tmp_path: Path) -> None:
    # Edited: what runs out of memory or is killed cannot be made to order here.
    run = patients.edited("healthy", tmp_path / "run", run=lambda about: {**about, "status": status, "error": error})
    found = next(f for f in doctor.examine_run(run) if f.rule == "failed-run")
    assert found.status == grade
    assert cure in found.advice
    assert error is None or error in found.evidence


def test_what_failed_before_a_checkpoint_is_started_anew(tmp_path: Path) -> None:
    run = patients.edited("healthy", tmp_path / "run", run=lambda about: {**about, "status": "failed", "error": "V: x"})

    def cure() -> str:
        return next(f for f in doctor.examine_run(run) if f.rule == "failed-run").advice

    assert "start again" in cure()
    assert "checkpoint" not in cure()
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "last.pt").touch()
    assert "continues from the last checkpoint" in cure()


def test_a_folder_where_nothing_has_begun(tmp_path: Path) -> None:
    run = patients.edited("healthy", tmp_path / "run")
    (run / "run.json").unlink()
    assert next(f for f in doctor.examine_run(run) if f.rule == "failed-run").status == "unknown"
