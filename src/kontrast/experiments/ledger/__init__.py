"""The ledger: finished cells of experiments as text, kept in the repository.

    run folders → `entries_of` → `Ledger.merge` → <experiment>-<preset>.jsonl → `Ledger.rows` → tables, claims, charts

A run folder has weights, checkpoints and features, and stays on the machine that made it. The tables, claims and
figures of an experiment need a few kilobytes of it: every measure, a thinned learning curve, and the small arrays that
`Experiment.keeps` names. A ledger keeps those, one line for each cell, so that no result is lost with a machine and
every page can be made again without one.

    design    experiment, preset, and the user's settings for every recipe (without axes, and without how it is run)
    key       design, values on the axes, seed; or design, baseline, axes, seed
    file      one for each design, its lines sorted by key: two branches that add cells merge line by line

The recipe's hash, version, commit and seconds of a cell are information: `Ledger.merge` and the tables read a cell
whatever they are, `check_import` compares them with what this version would run.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kontrast
from kontrast import experiments
from kontrast.experiments.baselines import Baseline, baselines_of
from kontrast.experiments.cell import Cell, Value
from kontrast.experiments.experiment import CENSORED, ERROR, Experiment, Row
from kontrast.experiments.ledger.entry import (
    FORMAT,
    MOST_BYTES,
    Entry,
    Key,
    Origin,
    Packed,
    columns,
    read_line,
    settings_hash,
)
from kontrast.experiments.plan import find_preset, plan
from kontrast.files import finite, open_regular, write_atomically
from kontrast.recipe import parse

if TYPE_CHECKING:
    from kontrast.experiments.sweep import Sweep


@dataclass(frozen=True)
class Design:
    """An experiment at a preset, with what was set by hand for every recipe.

    The same experiment at ``cpu`` and at ``paper``, or with other settings, is another design. A setting of an axis
    (``temperature=[0.1,0.2]``) chooses cells, and ``run.…`` says how they are run: neither is part of it.

    >>> Design("wl-table-1", "cpu", {"train.epochs": 20}).name
    'wl-table-1-cpu-002f99c3'
    """

    experiment: str
    preset: str
    settings: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(experiment: Experiment, preset: str, settings: Iterable[str] = ()) -> Design:
        """The design of a command's words."""
        changes = dict(map(parse, settings))
        settings_of_design = {
            key: changes[key] for key in sorted(changes) if key not in experiment.axes and not key.startswith("run.")
        }
        return Design(experiment.name, preset, settings_of_design)

    @staticmethod
    def of_entry(entry: Entry) -> Design:
        """The design of a cell in the ledger."""
        return Design(entry.experiment, entry.preset, entry.settings)

    @property
    def name(self) -> str:
        """The name of its file."""
        name = f"{self.experiment}-{self.preset}"
        return f"{name}-{settings_hash(self.settings)}" if self.settings else name

    @property
    def words(self) -> list[str]:
        """The settings as a command has them."""
        return [f"{key}={json.dumps(value)}" for key, value in self.settings.items()]


# ------------------------------------------------------------------------------------------------------------ the files


__all__ = [
    "DEFAULT",
    "FORMAT",
    "Design",
    "Entry",
    "Ledger",
    "Merged",
    "Origin",
    "Packed",
    "check_import",
    "entries_of",
    "read_file",
    "recipe_hash",
]

DEFAULT = Path("docs/results/ledger")
"""Where a checkout of the project has its ledger; used where it exists."""
MOST_LINES = 100_000
SUFFIX = ".jsonl"


@dataclass(frozen=True)
class Merged:
    """What `Ledger.merge` did: keys that were new, there already with the same content, and replaced."""

    added: list[Entry] = field(default_factory=list)
    same: list[Entry] = field(default_factory=list)
    replaced: list[Entry] = field(default_factory=list)


@dataclass(frozen=True)
class Ledger:
    """The files of a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder))
    ...     made = Entry(format=1, experiment="mine", preset="cpu", at={"lr": 0.1}, seed=0, values={"knn": 80.0},
    ...                  origin=Origin(run="a-12345678", recipe="12345678", version="0.1.0"))
    ...     _ = ledger.merge([made])
    ...     [row] = ledger.rows(Design("mine", "cpu"))
    ...     os.listdir(folder), row.at, row.values
    (['mine-cpu.jsonl'], {'lr': 0.1, 'seed': 0}, {'knn': 80.0})
    """

    path: Path

    def file(self, design: Design) -> Path:
        """The file of a design, whether it is there or not."""
        return self.path / f"{design.name}{SUFFIX}"

    def files(self) -> list[Path]:
        """The files that exist, sorted by name."""
        return sorted(file for file in self.path.glob(f"*{SUFFIX}") if not file.name.startswith("."))

    def entries(self, design: Design) -> list[Entry]:
        """The cells of a design; none if it has no file.

        Raises:
            ValueError: A line is damaged, stands twice, or is of another design than the file's name says.
        """
        file = self.file(design)
        return [entry for entry, _ in self._read(file)] if file.exists() else []

    def rows(self, design: Design) -> list[Row]:
        """The cells of a design as rows, without the baselines."""
        return [entry.row() for entry in self.entries(design) if entry.baseline is None]

    def merge(self, entries: Iterable[Entry], *, replace: bool = False) -> Merged:
        """Add cells, and write the files that change; all files are checked before the first is written.

        Args:
            entries: Cells of any designs.
            replace: A cell whose key is there with another content takes its place.

        Raises:
            ValueError: A key is there with another content (and ``replace`` is False), or a file is damaged. Nothing is
                written then.
        """
        result, contents = Merged(), dict[Path, dict[Key, Entry]]()
        with self._lock():
            for entry in entries:
                entry.line()  # refuses what is too large
                file = self.file(Design.of_entry(entry))
                if file not in contents:
                    there = self._read(file) if file.exists() else []
                    contents[file] = {old.key: old for old, _ in there}
                self._add_entry(contents[file], entry, file, result, replace)
            for file, content in contents.items():
                lines = [entry.line() for entry in sorted(content.values(), key=lambda entry: entry.order)]
                write_atomically(file, "".join(f"{line}\n" for line in lines).encode())
        return result

    def _add_entry(self, content: dict[Key, Entry], entry: Entry, file: Path, result: Merged, replace: bool) -> None:
        old = content.get(entry.key)
        if old is None:
            result.added.append(entry)
        elif old.values == entry.values and old.arrays == entry.arrays and old.curve == entry.curve:
            result.same.append(entry)
            return
        elif not replace:
            other = [name for name in ("values", "arrays", "curve") if getattr(old, name) != getattr(entry, name)]
            raise ValueError(
                f"{entry.name} is in {file} already, with other {' and '.join(other)}: there "
                f"{_describe_origin(old)}, here {_describe_origin(entry)}. Keep the one there, or put the new one in "
                "its place: kontrast ledger add --replace"
            )
        else:
            result.replaced.append(entry)
        content[entry.key] = entry

    def _read(self, file: Path) -> list[tuple[Entry, int]]:
        entries = read_file(file)
        for entry, number in entries:
            if self.file(Design.of_entry(entry)).name != file.name:
                raise ValueError(
                    f"{file}, line {number}: is of {self.file(Design.of_entry(entry)).name}; import it, which puts it "
                    "there, and remove the line here"
                )
        return entries

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the folder: no other process writes into it meanwhile."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            folder = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise ValueError(
                f"the ledger {self.path} cannot be made: {error.strerror}; choose another --ledger"
            ) from error
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def read_file(path: Path) -> list[tuple[Entry, int]]:
    """The cells of a file with their line numbers.

    Raises:
        ValueError: A line is no cell, too long, or its key stands twice; the message names file, line and field.
        OSError: The file cannot be read.
    """
    entries: list[tuple[Entry, int]] = []
    numbers: dict[Key, int] = {}
    with open_regular(path) as file:
        while content := file.readline(MOST_BYTES + 2):
            number = len(entries) + 1
            where = f"{path}, line {number}"
            if len(content) > MOST_BYTES + 1:
                raise ValueError(f"{where}: is longer than {MOST_BYTES:,} bytes; expected one cell")
            if number > MOST_LINES:
                raise ValueError(f"{path} has more than {MOST_LINES:,} lines; expected the cells of one design")
            try:
                entry = read_line(content)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
            if (first := numbers.setdefault(entry.key, number)) != number:
                raise ValueError(f"{where}: {entry.name} stands in line {first} already; remove one of them")
            entries.append((entry, number))
    return entries


def _describe_origin(entry: Entry) -> str:
    origin = entry.origin
    when = "" if origin.finished is None else f", finished {origin.finished}"
    return f"recipe {origin.recipe}, kontrast {origin.version}, commit {origin.commit or 'unknown'}{when}"


# ----------------------------------------------------------------------------------------------------- from run folders


def entries_of(sweep: Sweep) -> list[Entry]:
    """The finished cells of a sweep, and its baselines; only what lies in run folders, nothing from a ledger.

    Raises:
        ValueError: An array that the experiment keeps cannot be packed; the message names cell and array.
    """
    cells = zip(sweep.cells, sweep.folder_rows(), strict=True)
    cells_of_sweep = [_entry(sweep.design, cell, row) for cell, row in cells if row.status == "done"]
    baselines = zip(sweep.baselines, sweep.baseline_rows(), strict=True)
    return cells_of_sweep + [
        _entry(sweep.design, baseline.cell, row, baseline) for baseline, row in baselines if row.status == "done"
    ]


def recipe_hash(cell: Cell) -> str:
    """Eight digits over everything that decides a cell, be it a recipe or a task.

    >>> from kontrast.experiments.cell import Task
    >>> len(recipe_hash(Cell({"seed": 0}, Task("a:b"))))
    8
    """
    return cell.does.folder.rpartition("-")[2]


def _entry(design: Design, cell: Cell, row: Row, baseline: Baseline | None = None) -> Entry:
    at = {axis: value for axis, value in row.at.items() if axis != "seed"}
    return Entry(
        format=FORMAT,
        experiment=design.experiment,
        preset=design.preset,
        settings=design.settings,
        baseline=None if baseline is None else baseline.name,
        at=at,
        seed=int(row.at["seed"] or 0),
        values=finite(dict(row.values)),
        curve=columns(row.curve),
        arrays={name: _packed(cell, name, x) for name, x in row.arrays.items()},
        origin=_origin(cell, row, recipe_hash(cell) if baseline is None else baseline.hash),
    )


def _packed(cell: Cell, name: str, x: Any) -> Packed:
    try:
        return Packed.of(x)
    except ValueError as error:
        reason = str(error).partition("Value error, ")[2].partition(" [type=")[0] or str(error)
        raise ValueError(f"{cell.path}: the array {name!r} cannot be kept: {reason}") from None


def _origin(cell: Cell, row: Row, decided_by: str) -> Origin:
    state = cell.state
    return Origin(
        run=cell.path.name,
        recipe=decided_by,
        version=str(state.versions.get("kontrast") or "unknown"),
        commit=_word(state.versions.get("commit")),
        torch=_word(state.versions.get("torch")),
        device=_word(state.machine.get("device")),
        finished=state.finished,
        seconds=row.seconds,
        data=state.data_file,
    )


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


# --------------------------------------------------------------------------------------------------------------- import


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
        cells = _plan(experiment, [entry for entry, _ in entries], settings)
    except ValueError as error:
        raise ValueError(f"{first_place}: {error}") from None
    for entry, where in entries:
        if entry.origin.version != kontrast.__version__:
            raise ValueError(
                f"{where}: origin.version is {entry.origin.version}, this is {kontrast.__version__}: results of two "
                "versions do not go into one table. Import it with that version, or have it run by this one"
            )
        if entry.baseline is None:
            _check_cell(experiment, entry, where, cells)
        else:
            _check_baseline(experiment, entry, where, list(cells.values()))


def _check_cell(
    experiment: Experiment, entry: Entry, where: str, cells: dict[frozenset[tuple[str, Value]], Cell]
) -> None:
    cell = cells.get(frozenset({**entry.at, "seed": entry.seed}.items()))
    if cell is None:
        raise _no_place(experiment, entry, where)
    _check_recipe(entry, where, {recipe_hash(cell)})
    _check_names(entry, where, {measure.name for measure in experiment.measures}, "measure of the experiment")
    _check_percent(entry, where, {measure.name for measure in experiment.measures if measure.error is not None})


def _check_baseline(experiment: Experiment, entry: Entry, where: str, cells: Sequence[Cell]) -> None:
    """Its place is that of cells, and what decides it is what decides a baseline of one of them."""
    here = [
        baseline
        for cell in cells
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
    absent, unknown = names - entry.values.keys(), entry.values.keys() - names - marks
    if absent or unknown:
        name = min(absent or unknown)
        what = "is missing" if absent else f"is no {kind}"
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
    set_axes = {key for key, _ in map(parse, settings)}
    axes = {**experiment.axes, **experiment.presets[first.preset].axes}
    words = [*Design.of_entry(first).words, *settings]
    for axis, values in axes.items():
        others = dict.fromkeys(entry.at[axis] for entry in entries if axis in entry.at)
        if axis not in set_axes and any(value not in values for value in others):
            words += Design(
                experiment.name, first.preset, {axis: [*values, *(v for v in others if v not in values)]}
            ).words
    cells = plan(experiment, first.preset, words, seeds=1 + max(entry.seed for entry in entries))
    return {frozenset(cell.at.items()): cell for cell in cells}
