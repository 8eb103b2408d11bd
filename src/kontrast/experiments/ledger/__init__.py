"""The ledger: finished cells of experiments as text, kept in the repository.

    run folders → `entries_of` → `Ledger.merge` → <experiment>-<preset>.jsonl → `Ledger.rows` → tables, claims, charts

A run folder has weights, checkpoints and features, and stays on the machine that made it. What the tables, claims and
figures of an experiment need of it is a few kilobytes: every measure, a thinned learning curve, and the small arrays
that `Experiment.keeps` names. A ledger keeps those, a line a cell, so that no result is lost with a machine and every
page can be made again without one.

    design    experiment, preset, and what was set by hand for every recipe (but for axes, and for how it is run)
    key       design, values on the axes, seed; or design, baseline, axes, seed
    file      one a design, its lines sorted by key: two branches that add cells merge line by line

The recipe's hash, version, commit and seconds of a cell are information: `Ledger.merge` and the tables read a cell
whatever they are, `check_import` compares them with what this version would run.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kontrast.experiments.experiment import Row
from kontrast.experiments.ledger._check import check_import
from kontrast.experiments.ledger._collect import entries_of, recipe_hash
from kontrast.experiments.ledger._design import Design
from kontrast.experiments.ledger._entry import FORMAT, MOST_BYTES, Entry, Key, Origin, Packed, read_line
from kontrast.files import open_regular, write_atomically

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
        """Every file there is."""
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
        done, changed = Merged(), dict[Path, dict[Key, Entry]]()
        with self._alone():
            for entry in entries:
                entry.line()  # refuses what is too large
                file = self.file(Design.of_entry(entry))
                if file not in changed:
                    there = self._read(file) if file.exists() else []
                    changed[file] = {old.key: old for old, _ in there}
                self._put(changed[file], entry, file, done, replace)
            for file, content in changed.items():
                lines = [entry.line() for entry in sorted(content.values(), key=lambda entry: entry.order)]
                write_atomically(file, "".join(f"{line}\n" for line in lines).encode())
        return done

    def _put(self, content: dict[Key, Entry], entry: Entry, file: Path, done: Merged, replace: bool) -> None:
        old = content.get(entry.key)
        if old is None:
            done.added.append(entry)
        elif old.values == entry.values and old.arrays == entry.arrays and old.curve == entry.curve:
            done.same.append(entry)
            return
        elif not replace:
            other = [name for name in ("values", "arrays", "curve") if getattr(old, name) != getattr(entry, name)]
            raise ValueError(
                f"{entry.name} is in {file} already, with other {' and '.join(other)}: there {_origin(old)}, here "
                f"{_origin(entry)}. Keep the one there, or put the new one in its place: kontrast ledger add --replace"
            )
        else:
            done.replaced.append(entry)
        content[entry.key] = entry

    def _read(self, file: Path) -> list[tuple[Entry, int]]:
        found = read_file(file)
        for entry, number in found:
            if self.file(Design.of_entry(entry)).name != file.name:
                raise ValueError(
                    f"{file}, line {number}: is of {self.file(Design.of_entry(entry)).name}; import it, which puts it "
                    "there, and remove the line here"
                )
        return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes into the folder meanwhile."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise ValueError(
                f"the ledger {self.path} cannot be made: {error.strerror}; choose another --ledger"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def read_file(path: Path) -> list[tuple[Entry, int]]:
    """The cells of a file with their line numbers.

    Raises:
        ValueError: A line is no cell, too long, or its key stands twice; the message names file, line and field.
        OSError: The file cannot be read.
    """
    found: list[tuple[Entry, int]] = []
    seen: dict[Key, int] = {}
    with open_regular(path) as file:
        while content := file.readline(MOST_BYTES + 2):
            number = len(found) + 1
            where = f"{path}, line {number}"
            if len(content) > MOST_BYTES + 1:
                raise ValueError(f"{where}: is longer than {MOST_BYTES:,} bytes; expected one cell")
            if number > MOST_LINES:
                raise ValueError(f"{path} has more than {MOST_LINES:,} lines; expected the cells of one design")
            try:
                entry = read_line(content)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
            if (first := seen.setdefault(entry.key, number)) != number:
                raise ValueError(f"{where}: {entry.name} stands in line {first} already; remove one of them")
            found.append((entry, number))
    return found


def _origin(entry: Entry) -> str:
    origin = entry.origin
    when = "" if origin.finished is None else f", finished {origin.finished}"
    return f"recipe {origin.recipe}, kontrast {origin.version}, commit {origin.commit or 'unknown'}{when}"
