"""Cells that somebody else ran: are they what this version would have run at their places?"""

from __future__ import annotations

from collections.abc import Sequence

import kontrast
from kontrast import experiments
from kontrast.experiments.baselines import baselines_of
from kontrast.experiments.cell import Cell, Value
from kontrast.experiments.experiment import CENSORED, ERROR, Experiment
from kontrast.experiments.ledger._collect import recipe_hash
from kontrast.experiments.ledger._design import Design
from kontrast.experiments.ledger._entry import Entry
from kontrast.experiments.plan import find_preset, plan
from kontrast.recipe import parse


def check_import(entries: Sequence[tuple[Entry, str]], settings: Sequence[str] = ()) -> None:
    """Raise unless every cell was made by this version, with the recipe that this version has at its place.

    Args:
        entries: Cells, each with where it stands ("cells.jsonl, line 3"), for errors.
        settings: Values of axes whose names in a table are not what a plan takes, such as ``data=photos.npz``.

    Raises:
        ValueError: The experiment, preset, place or measures are not this version's, or version or recipe differ; of
            a baseline, what decides it (encoder, data, protocols).
    """
    for design in dict.fromkeys(entry.design for entry, _ in entries):
        here = [(entry, where) for entry, where in entries if entry.design == design]
        _check_design(here, settings)


def _check_design(entries: Sequence[tuple[Entry, str]], settings: Sequence[str]) -> None:
    first, first_place = entries[0]
    try:
        experiment = experiments.find(first.experiment)
        find_preset(experiment, first.preset)
        planned = _plan(experiment, [entry for entry, _ in entries], settings)
    except ValueError as error:
        raise ValueError(f"{first_place}: {error}") from None
    for entry, where in entries:
        if entry.origin.version != kontrast.__version__:
            raise ValueError(
                f"{where}: origin.version is {entry.origin.version}, this is {kontrast.__version__}: results of two "
                "versions do not go into one table. Import it with that version, or have it run by this one"
            )
        if entry.baseline is None:
            _check_cell(experiment, entry, where, planned)
        else:
            _check_baseline(experiment, entry, where, list(planned.values()))


def _check_cell(
    experiment: Experiment, entry: Entry, where: str, planned: dict[frozenset[tuple[str, Value]], Cell]
) -> None:
    cell = planned.get(frozenset({**entry.at, "seed": entry.seed}.items()))
    if cell is None:
        raise _no_place(experiment, entry, where)
    _check_recipe(entry, where, {recipe_hash(cell)})
    _check_names(entry, where, {measure.name for measure in experiment.measures}, "measure of the experiment")
    _check_percent(entry, where, {measure.name for measure in experiment.measures if measure.error is not None})


def _check_baseline(experiment: Experiment, entry: Entry, where: str, planned: Sequence[Cell]) -> None:
    """Its place is that of cells, and what decides it is what decides a baseline of one of them."""
    here = [
        baseline
        for cell in planned
        for baseline in baselines_of([cell])
        if baseline.name == entry.baseline and entry.at.items() <= {**cell.at, **baseline.at}.items()
    ]
    if not here:
        raise _no_place(experiment, entry, where)
    _check_recipe(entry, where, {baseline.hash for baseline in here})
    [same, *_] = [baseline for baseline in here if baseline.hash == entry.origin.recipe]
    if entry.values:  # raw pixels of large images have none
        protocols = {protocol["name"] for protocol in same.task.options["recipe"]["evaluate"]["protocols"]}
        _check_names(entry, where, protocols, "protocol of the runs")
        _check_percent(entry, where, protocols)


def _no_place(experiment: Experiment, entry: Entry, where: str) -> ValueError:
    axes = "; ".join(f"{axis}: {', '.join(map(str, values))}" for axis, values in experiment.axes.items())
    kind = "cell" if entry.baseline is None else "baseline"
    return ValueError(f"{where}: at: {entry.name} is no {kind} of {experiment.name}; its axes are {axes}")


def _check_recipe(entry: Entry, where: str, expected: set[str]) -> None:
    if entry.origin.recipe not in expected:
        raise ValueError(
            f"{where}: origin.recipe is {entry.origin.recipe}, and this version runs {' or '.join(sorted(expected))} "
            f"at {entry.name}: the settings differ. Have it run by this version"
        )


def _check_names(entry: Entry, where: str, names: set[str], kind: str) -> None:
    """Every name has a value; beside them there are only their marks (``error:knn``)."""
    marks = {f"{mark}:{name}" for name in names for mark in (CENSORED, ERROR)}
    missing, unknown = names - entry.values.keys(), entry.values.keys() - names - marks
    if missing or unknown:
        name = min(missing or unknown)
        what = "is missing" if missing else f"is no {kind}"
        raise ValueError(f"{where}: values.{name}: {what}; expected {', '.join(sorted(names))}")


def _check_percent(entry: Entry, where: str, names: set[str]) -> None:
    for name in sorted(names & entry.values.keys()):
        value = entry.values[name]
        if value is not None and not 0 <= value <= 100:
            raise ValueError(f"{where}: values.{name} is {value:g}; expected a percentage, 0 to 100")


def _plan(
    experiment: Experiment, entries: Sequence[Entry], settings: Sequence[str]
) -> dict[frozenset[tuple[str, Value]], Cell]:
    """The cells of this version at the places of these entries, by place and seed."""
    first = entries[0]
    given = {key for key, _ in map(parse, settings)}
    axes = {**experiment.axes, **experiment.presets[first.preset].axes}
    words = [*Design.of_entry(first).words, *settings]
    for axis, known in axes.items():
        seen = dict.fromkeys(entry.at[axis] for entry in entries if axis in entry.at)
        if axis not in given and any(value not in known for value in seen):
            words += Design(experiment.name, first.preset, {axis: [*known, *(v for v in seen if v not in known)]}).words
    cells = plan(experiment, first.preset, words, seeds=1 + max(entry.seed for entry in entries))
    return {frozenset(cell.at.items()): cell for cell in cells}
