"""Pages that commands leave behind: the doctor looks first, then the report is written.

Neither may spoil what a training has made: whatever goes wrong here is told on standard error, and that is all.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from kontrast.cli._console import err, paragraph
from kontrast.cli._status import debugging


def run_page(run: Path, *, again: bool = True) -> Path | None:
    """The page of a finished run with the doctor's findings; one that shows all of it stays, unless ``again``."""
    from kontrast import report

    page = run / report.NAME
    if not again and _shows_all(page):
        return page
    examine(run, again=True)
    return written([run])


def _shows_all(page: Path) -> bool:
    """Whether it is younger than what it shows: one of an interrupted run says so still when the run has ended."""
    shown = [page.parent / name for name in ("result.json", "doctor.json")]
    if not page.exists() or not shown[0].exists():
        return False
    drawn = page.stat().st_mtime_ns
    return all(drawn > file.stat().st_mtime_ns for file in shown if file.exists())


def examine(run: Path, *, again: bool = False) -> None:
    """The doctor's findings, beside the run; of anything but a run with a recipe there are none."""
    if (run / "recipe.yaml").exists() and (again or not (run / "doctor.json").exists()):
        _guarded("the doctor could not examine the run", lambda: _examined(run))


def written(paths: Sequence[Path], out: Path | None = None) -> Path | None:
    """The page of what lies at the paths; None if it could not be written."""
    from kontrast import report

    return _guarded("the report could not be written", lambda: report.write(paths, out=out))


def _examined(run: Path) -> Path:
    from kontrast import doctor

    return doctor.write(run)


def _guarded(what: str, make: Callable[[], Path]) -> Path | None:
    try:
        return make()
    except Exception as error:
        if debugging():
            traceback.print_exc()
        err.print(f"{what}: {paragraph(f'{type(error).__name__}: {error}')}", highlight=False, soft_wrap=True)
        return None
