"""The main job: train → evaluate → analyse → examine → report. ``kontrast train`` and ``kontrast.run`` both are this.

    recipe → `kontrast.train.run_recipe` (train, evaluate, analyse) → `kontrast.doctor` → `kontrast.report`

A run that fails after it has begun to learn gets its findings and its page too: they say why, and what to do. Sweeps
and the scikit-learn estimator train without this file: a page for every cell would take longer than the cell.

Findings and page must not spoil what a training has made: what goes wrong there is handed to ``failed`` (by default a
warning), and the run is returned. Stages are imported inside the functions, so that ``kontrast.run`` costs nothing
until it is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kontrast.data import DataSet
    from kontrast.recipe import Recipe
    from kontrast.runs import Run

__all__ = ["examine", "perform", "run", "write_page", "write_report"]

Failed = Callable[[str, Exception], None]
"""Told what could not be done, and why."""


def warn(what: str, error: Exception) -> None:
    """The default of ``failed``: a `RuntimeWarning`."""
    warnings.warn(f"{what}: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=4)


def run(source: str | Path | Mapping[str, Any] | Recipe, **overrides: Any) -> Run:
    """Train, evaluate, analyse, examine and report a recipe: what ``kontrast train`` does.

    The same recipe again is already done, or continues where it stopped.

    Args:
        source: A recipe's name, a YAML file, the folder of a run, a mapping, or a `kontrast.recipe.Recipe`.
        overrides: Sections or dotted keys: ``seed=1, train={"epochs": 2}, **{"optim.lr": 0.05}``. ``data`` may be
            whatever `kontrast.data.load` takes: a set's name, a path, a `DataSet`, an array or tensor,
            ``(images, labels)``, a list of image files or of PIL images, a torch ``Dataset``; with settings beside it,
            ``data={"name": images, "size": 32}``. Such data are known by their content: other data are another run
            folder, and the same again continue the run, or find it done.

    Returns:
        The run. Its folder has result.json, doctor.json (what the doctor found) and report.html.

    Raises:
        ValueError: The recipe, an override or the data are wrong; the message says what to do.
        kontrast.train.NonFiniteLoss: The loss is not a number any more.

    >>> import tempfile
    >>> done = run({
    ...     "name": "example", "method": "supcon", "augment": ["crop-flip"] * 2, "encoder": "mlp",
    ...     "data": {"name": "digits", "limit": 60, "test_limit": 20}, "train": {"steps": 2, "batch_size": 30},
    ...     "evaluate": {"protocols": ["knn20"]}, "run": {"out": tempfile.mkdtemp(), "progress": False},
    ... })
    >>> sorted(file.name for file in done.path.iterdir() if file.suffix == ".html" or file.name == "doctor.json")
    ['doctor.json', 'report.html']
    """
    from kontrast import recipes
    from kontrast.data import bound, taken
    from kontrast.train import resolve

    given, settings = taken(overrides)
    chosen = recipes.recipe(source, **settings)
    if given is None:
        return perform(chosen)[0]
    chosen, data = bound(resolve(chosen), given)  # a typo is told before the data are read
    return perform(chosen, data)[0]


def perform(recipe: Recipe, given: DataSet | None = None, *, failed: Failed = warn) -> tuple[Run, Path | None]:
    """`run` for a recipe that is made already: the run, and its page (None on other ranks, or if it was not written).

    ``given`` is the data set of a recipe whose data came from Python: both are made by `kontrast.data.bound`. A page
    that shows all there is stays as it is.
    """
    from kontrast import distributed
    from kontrast.runs import Run
    from kontrast.train import resolve, run_recipe
    from kontrast.train.micro_batch import as_begun

    first, asked = distributed.launched_rank() == 0, resolve(recipe)
    before = Run.of(as_begun(asked)).state
    try:
        done = run_recipe(asked, given)
    except Exception:
        folder = Run.of(as_begun(asked))
        failed_now = folder.status == "failed" and folder.state != before  # a run that is refused leaves it as it was
        if first and failed_now and folder.metrics_file.exists():
            write_page(folder.path, failed=failed)
        raise
    has_page = first and done.has_result
    return done, write_page(done.path, failed=failed) if has_page else None


def write_page(run: Path, *, failed: Failed = warn) -> Path | None:
    """The doctor's findings and the page of a run; a page that shows all there is stays as it is.

    Returns:
        The page; None if it could not be written.
    """
    from kontrast import report

    page = run / report.NAME
    if _is_current(page):
        return page
    examine(run, failed=failed)
    return write_report([run], failed=failed)


def _is_current(page: Path) -> bool:
    """Whether it is of a run with a result, and younger than every file that a later examination or resume writes."""
    shown = [page.parent / name for name in ("run.json", "result.json", "doctor.json")]
    if not page.exists() or not shown[1].exists():
        return False
    drawn = page.stat().st_mtime_ns
    return all(drawn > file.stat().st_mtime_ns for file in shown if file.exists())


def examine(run: Path, *, failed: Failed = warn) -> None:
    """Write doctor.json beside a run; of anything but the folder of a run with a recipe nothing is written."""
    if (run / "recipe.yaml").exists():
        from kontrast import doctor  # this loads torch: not for the page of an experiment

        _guarded("the doctor could not examine the run", lambda: doctor.write(run), failed)


def write_report(paths: Sequence[Path], out: Path | None = None, *, failed: Failed = warn) -> Path | None:
    """The page of a run, of several runs beside each other, or of an experiment; None if it could not be written."""
    from kontrast import report

    return _guarded("the report could not be written", lambda: report.write(paths, out=out), failed)


def _guarded(what: str, make: Callable[[], Path], failed: Failed) -> Path | None:
    try:
        return make()
    except Exception as error:
        failed(what, error)
        return None
