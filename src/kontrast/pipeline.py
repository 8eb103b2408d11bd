"""The main job: train → evaluate → analyse → examine → report. ``kontrast train`` and ``kontrast.run`` both are this.

`perform` is the whole job of a session. Sweeps, tuning and the demo call it too; sweeps and tuning without findings and
page, which would take longer than a cell. A run that fails after its first step gets its findings and page too: they
say why, and what to do.

An error in findings or page goes to ``on_error`` (by default a warning): the run itself is complete. Stages are
imported inside the functions, so that ``kontrast.run`` costs nothing until it is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kontrast.runs import Run

if TYPE_CHECKING:
    from kontrast.data import DataSet
    from kontrast.recipe import Recipe
    from kontrast.recipes.for_data import Request
    from kontrast.report.written import Written
    from kontrast.train import Session

__all__ = ["examine", "perform", "report", "run", "run_recipe", "session_for", "write_page", "write_report"]

OnError = Callable[[str, Exception], None]
"""Called with what could not be done, and the error."""


def warn(what: str, error: Exception) -> None:
    """The default of ``on_error``: a `RuntimeWarning`."""
    warnings.warn(f"{what}: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=4)


def run(
    source: str | Path | Mapping[str, Any] | Recipe | Any = None, *, minutes: float | None = None, **overrides: Any
) -> Run:
    """Train, evaluate, analyse, examine and report a recipe, or data without one: what ``kontrast train`` does.

    The same call again is already done, or resumes where it stopped.

    Args:
        source: A recipe's name, a YAML file, the folder of a run, a mapping, or a `kontrast.recipe.Recipe`. Or a
            method's name, or nothing: then a recipe is chosen for ``data`` (`kontrast.recipes.for_data`). Data may
            stand here too.
        minutes: About how long a run on data without a recipe may take; 10 if left out.
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
    >>> small = {"train.steps": 2, "data.limit": 300, "data.test_limit": 20, "evaluate.protocols": ["knn20"]}
    >>> result = run(data="digits", **small, run={"out": tempfile.mkdtemp(), "progress": False})
    >>> result.recipe.name, result.recipe.method.name, result.recipe.encoder.name
    ('supcon-digits', 'supcon', 'small-resnet')
    >>> sorted(file.name for file in result.path.iterdir() if file.suffix == ".html" or file.name == "doctor.json")
    ['doctor.json', 'report.html']
    """
    from kontrast import recipes
    from kontrast.data import bind, separate_data
    from kontrast.recipes.for_data import request_of
    from kontrast.train import Session, resolve

    data, settings = separate_data(overrides)
    request = request_of(source, settings, data=data, minutes=minutes)
    if request is not None:
        session = session_for(request)
    else:
        recipe = resolve(recipes.recipe(source, **settings))  # before the data are read: a typing error costs nothing
        session = Session(recipe) if data is None else Session(*bind(recipe, data))
    perform(session)
    return session.run


def session_for(request: Request) -> Session:
    """The session of a recipe that is chosen for data; the choices are printed with their reasons.

    Args:
        request: What `kontrast.recipes.for_data.request_of` gives.

    Returns:
        The session, for `perform`.

    Raises:
        ValueError: A setting or the data are wrong.
    """
    from kontrast.recipes.for_data import announce, prepare
    from kontrast.train import Session, resolve

    request.check()
    prepared = prepare(request)
    announce(prepared)
    return Session(resolve(prepared.recipe), prepared.data, origin=prepared.origin)


def run_recipe(recipe: Recipe, data: DataSet | None = None) -> Run:
    """`run` for a recipe, without findings and page.

    Args:
        recipe: The recipe; it need not be resolved.
        data: The data set of a recipe whose data came from Python; both come from `kontrast.data.bind`.

    Returns:
        The run.

    Raises:
        ValueError: The recipe does not fit the data, or the folder holds another run.
        kontrast.train.NonFiniteLoss: The loss is infinite or not a number.
    """
    from kontrast.train import Session, resolve

    session = Session(resolve(recipe), data)
    perform(session, page=False)
    return session.run


def perform(session: Session, *, page: bool = True, on_error: OnError = warn) -> Path | None:
    """Train, evaluate, analyse, examine and report: the steps of the main job in their order.

    Args:
        session: A new `kontrast.train.Session`, or one of a subclass that changes a step.
        page: Whether findings and page are written. A page that is up to date stays as it is.
        on_error: Called if they could not be written.

    Returns:
        The page; None if there is none.

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
            write_page(session.run, recipe=session.recipe, on_error=on_error)
        raise
    return write_page(session.run, recipe=session.recipe, on_error=on_error) if page else None


def write_page(run: Run, *, recipe: Recipe | None = None, on_error: OnError = warn) -> Path | None:
    """Write the doctor's findings and the page of a run, on the first of several processes.

    Args:
        run: The run. A page that is up to date stays as it is.
        recipe: Its resolved recipe, if it is at hand.
        on_error: Called if the findings or the page could not be written.

    Returns:
        The page; None if there is nothing to show, or it could not be written.
    """
    from kontrast import distributed

    if distributed.launched_rank() != 0 or not run.metrics_file.exists():
        return None
    if run.has_current_report:
        return run.report_file
    examine(run, recipe=recipe, on_error=on_error)
    return write_report([run.path], on_error=on_error)


def examine(run: Run, *, recipe: Recipe | None = None, on_error: OnError = warn) -> None:
    """Write doctor.json into the folder of a run; nothing is written into another folder.

    Args:
        run: The run.
        recipe: Its resolved recipe, if it is at hand.
        on_error: Called if the run could not be examined.
    """
    if run.has_recipe:
        from kontrast import doctor  # this loads torch: not for the page of an experiment

        _try("the doctor could not examine the run", lambda: doctor.write(run.path, recipe), on_error)


def write_report(paths: Sequence[Path], out: Path | None = None, *, on_error: OnError = warn) -> Path | None:
    """Write the page of a run, of several runs beside each other, or of an experiment.

    Args:
        paths: The folder of a run or of an experiment, or the folders of several runs.
        out: The page's file; report.html in the folder by default.
        on_error: Called if the page could not be written.

    Returns:
        The page; None if it could not be written.
    """
    from kontrast import report

    return _try("the report could not be written", lambda: report.write(paths, out=out), on_error)


def report(
    paths: Sequence[Path], out: Path | None = None, *, figures: str | None = None, on_error: OnError = warn
) -> Written:
    """Write the page that was asked for: what ``kontrast report`` and `kontrast.Run.report` both are.

    A run that was never examined is, first.

    Args:
        paths: The folder of a run or of an experiment, or the folders of several runs.
        out: The page's file; report.html in the folder by default.
        figures: svg, pdf or png: write every chart as a file too.
        on_error: Called if the run could not be examined.

    Returns:
        The page.

    Raises:
        ValueError: A folder is not a run's or an experiment's, or the page cannot be written.
    """
    from kontrast import report
    from kontrast.report.written import Written

    if len(paths) == 1 and not Run(paths[0]).findings_file.exists():
        examine(Run(paths[0]), on_error=on_error)
    return Written(report.write(paths, out=out, figures=figures))


def _try(problem: str, write: Callable[[], Path], on_error: OnError) -> Path | None:
    try:
        return write()
    except Exception as error:
        on_error(problem, error)
        return None
