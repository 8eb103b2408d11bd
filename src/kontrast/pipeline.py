"""The main job: train → evaluate → analyse → examine → report. ``kontrast train`` and ``kontrast.run`` both are this.

`perform` is the whole job of a resolved recipe, `perform_session` its steps. Sweeps and the demo call it too, sweeps
without findings and page: these would take longer than a cell. Tuning has sessions of its own, which see no test rows.
A run that fails after its first step gets its findings and page too: they say why, and what to do.

Findings and page must not spoil what was trained: an error in them goes to ``failed`` (by default a warning), and the
run is returned. Stages are imported inside the functions, so that ``kontrast.run`` costs nothing until it is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kontrast.runs import Run

if TYPE_CHECKING:
    from kontrast.data import DataSet
    from kontrast.recipe import Recipe
    from kontrast.train.running import Session

__all__ = ["Outcome", "examine", "perform", "perform_session", "run", "run_recipe", "write_page", "write_report"]

Failed = Callable[[str, Exception], None]
"""Receives what could not be done, and why."""


def warn(what: str, error: Exception) -> None:
    """The default of ``failed``: a `RuntimeWarning`."""
    warnings.warn(f"{what}: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=4)


@dataclass(frozen=True)
class Outcome:
    """What `perform` gives: the run, its page (None if none was written), and whether there was anything to do."""

    run: Run
    page: Path | None
    had_work: bool


def run(source: str | Path | Mapping[str, Any] | Recipe, **overrides: Any) -> Run:
    """Train, evaluate, analyse, examine and report a recipe: what ``kontrast train`` does.

    The same recipe again is already done, or resumes where it stopped.

    Args:
        source: A recipe's name, a YAML file, the folder of a run, a mapping, or a `kontrast.recipe.Recipe`.
        overrides: Sections or dotted keys: ``seed=1, train={"epochs": 2}, **{"optim.lr": 0.05}``. ``data`` may be
            whatever `kontrast.data.load` takes: a set's name, a path, a `DataSet`, an array or tensor,
            ``(images, labels)``, a list of image files or of PIL images, a torch ``Dataset``; with settings beside it,
            ``data={"name": images, "size": 32}``. Such data are known by their content: other data are another run
            folder, and the same again resume the run, or find it done.

    Returns:
        The run. Its folder has result.json, doctor.json (the doctor's findings) and report.html.

    Raises:
        ValueError: The recipe, an override or the data are wrong; the message says what to do.
        kontrast.train.NonFiniteLoss: The loss is infinite or not a number.

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
    from kontrast.data import bind, separate_data
    from kontrast.train import resolve

    data, settings = separate_data(overrides)
    recipe = resolve(recipes.recipe(source, **settings))  # before the data are read: a typing error costs nothing
    return perform(*((recipe,) if data is None else bind(recipe, data))).run


def run_recipe(recipe: Recipe, data: DataSet | None = None) -> Run:
    """`run` for a recipe, without findings and page.

    Args:
        recipe: The recipe; it need not be resolved.
        data: The data set of a recipe whose data came from Python; both come from `kontrast.data.bind`.
    """
    from kontrast.train import resolve

    return perform(resolve(recipe), data, page=False).run


def perform(
    recipe: Recipe,
    data: DataSet | None = None,
    *,
    page: bool = True,
    failed: Failed = warn,
) -> Outcome:
    """Train, evaluate, analyse, examine and report a resolved recipe.

    Args:
        recipe: The recipe, resolved by `kontrast.train.resolve`.
        data: The data set of a recipe whose data came from Python; both come from `kontrast.data.bind`.
        page: Whether findings and page are written. A page that shows all there is stays as it is.
        failed: Called if they could not be written.

    Raises:
        ValueError: The recipe does not fit the data, or the folder holds another run.
        kontrast.train.NonFiniteLoss: The loss is infinite or not a number.
        kontrast.train.Stopped: A signal asked to stop; everything is saved.
    """
    from kontrast.train.running import Session

    return perform_session(Session(recipe, data), page=page, failed=failed)


def perform_session(session: Session, *, page: bool = True, failed: Failed = warn) -> Outcome:
    """`perform` for a session: the steps of the main job in their order.

    Args:
        session: A new `kontrast.train.Session`, or a subclass that changes a step.
        page: Whether findings and page are written.
        failed: Called if they could not be written.

    Raises:
        ValueError: The recipe does not fit the data.
        kontrast.train.NonFiniteLoss: The loss is infinite or not a number.
        kontrast.train.Stopped: A signal asked to stop; everything is saved.
    """
    try:
        with session.open():
            if session.has_work:
                session.train()
                session.evaluate()
                session.analyse()
                session.finish()
    except Exception:
        if page and session.has_failed:
            write_page(session.run, recipe=session.recipe, failed=failed)
        raise
    return Outcome(
        session.run, write_page(session.run, recipe=session.recipe, failed=failed) if page else None, session.has_work
    )


def write_page(run: Run, *, recipe: Recipe | None = None, failed: Failed = warn) -> Path | None:
    """Write the doctor's findings and the page of a run, on the first of several processes.

    Args:
        run: The run. A page that shows all there is stays as it is.
        recipe: Its resolved recipe, if it is at hand.
        failed: Called if the findings or the page could not be written.

    Returns:
        The page; None if there is nothing to show, or it could not be written.
    """
    from kontrast import distributed

    if distributed.launched_rank() != 0 or not run.metrics_file.exists():
        return None
    if run.has_current_report:
        return run.report_file
    examine(run, recipe=recipe, failed=failed)
    return write_report([run.path], failed=failed)


def examine(run: Run, *, recipe: Recipe | None = None, failed: Failed = warn) -> None:
    """Write doctor.json into the folder of a run; nothing is written into another folder."""
    if run.has_recipe:
        from kontrast import doctor  # this loads torch: not for the page of an experiment

        _try("the doctor could not examine the run", lambda: doctor.write(run.path, recipe), failed)


def write_report(paths: Sequence[Path], out: Path | None = None, *, failed: Failed = warn) -> Path | None:
    """Write the page of a run, of several runs beside each other, or of an experiment; None if that failed."""
    from kontrast import report

    return _try("the report could not be written", lambda: report.write(paths, out=out), failed)


def _try(what: str, make: Callable[[], Path], failed: Failed) -> Path | None:
    try:
        return make()
    except Exception as error:
        failed(what, error)
        return None
