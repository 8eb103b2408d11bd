"""The plan of the long runs: docs/experiments/plan.toml, read and checked. Needs the standard library only.

An entry of the plan is one `kontrast reproduce` (or one `kontrast tune`):

    [[entry]]
    name = "wl-table-1"               # unique; experiment's name if left out
    experiment = "wl-table-1"         # or: tune = "tcl-fashion-mini", a recipe
    data = "10k/cifar10.npz"          # a file in the data folder; left out, the preset's own data
    settings = ["temperature=0.1"]    # as for `kontrast reproduce`
    preset = "cpu"
    seeds = 3                         # left out, the preset's own number
    whole = true                      # false: as far as it comes
    pilot = ["temperature=0.2"]       # settings that choose the cells of the pilot
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

PLAN = Path("docs/experiments/plan.toml")  # in a checkout
PILOTS = Path("docs/experiments/pilots")  # what the pilots measured (scripts/pilots.py), a file an entry
PRESETS = ("paper", "cpu", "smoke")
TYPES = {
    "name": str, "experiment": str, "tune": str, "data": str, "settings": list, "preset": str, "seeds": int,
    "whole": bool, "pilot": list,
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One line of the plan; the fields are those of the module's docstring."""

    name: str
    experiment: str = ""
    tune: str = ""
    data: str = ""
    settings: tuple[str, ...] = ()
    preset: str = "cpu"
    seeds: int | None = None
    whole: bool = True
    pilot: tuple[str, ...] = ()

    @property
    def all_settings(self) -> list[str]:
        """The settings with the data file, whose folder is always called ``data`` (`link_data`).

        A recipe's hash contains the path of its data as it was given. With a relative one it is the same everywhere.
        """
        return [*([f"data=data/{self.data}"] if self.data else []), *self.settings]

    @property
    def words(self) -> list[str]:
        """Experiment (or recipe), settings, preset, seeds: as kontrast's reproduce, tune and ledger add take them."""
        seeds = [] if self.seeds is None else ["--seeds", str(self.seeds)]
        preset = [] if self.tune else ["--preset", self.preset]
        return [self.tune or self.experiment, *self.all_settings, *preset, *seeds]

    def command(self, jobs: int, ledger: Path | None = None) -> list[str]:
        """The words after ``kontrast`` that run the entry; a search runs one trial at a time.

        Cells that the ledger has are left out, so that a new machine goes on where another one ended.

        >>> " ".join(Entry("a", experiment="graf-toy", settings=("dim=3",), seeds=5).command(jobs=2))
        'reproduce graf-toy dim=3 --preset cpu --seeds 5 --out runs --jobs 2 --threads 1'
        """
        if self.tune:
            return ["tune", *self.words, "--out", "runs"]
        kept = [] if ledger is None or not ledger.is_dir() else ["--ledger", str(ledger)]
        return ["reproduce", *self.words, "--out", "runs", "--jobs", str(jobs), "--threads", "1", *kept]


def read_plan(path: Path) -> list[Entry]:
    """The entries in their order.

    Raises:
        ValueError: The file is no plan; the message names the entry and the field.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}); a tagged commit needs this file") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: is not TOML ({error})") from error
    tables = content.get("entry")
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"{path}: has no entry; expected tables [[entry]]")
    entries = [_entry(table, f"{path}, entry {number}") for number, table in enumerate(tables, 1)]
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path}: name={name!r}: stands {names.count(name)} times. Give each entry its own name")
    return entries


def _entry(table: dict[str, Any], where: str) -> Entry:
    known = [field.name for field in fields(Entry)]
    for key, value in table.items():
        if key not in TYPES:
            raise ValueError(f"{where}: {key}={value!r}: unknown. Use {', '.join(known)}")
        if type(value) is not TYPES[key]:
            raise ValueError(f"{where}: {key}={value!r}: must be a {TYPES[key].__name__}")
    if bool(table.get("experiment")) == bool(table.get("tune")):
        raise ValueError(f"{where}: must have either experiment= (a name) or tune= (a recipe)")
    for key in ("settings", "pilot"):
        for setting in table.get(key, []):
            if not isinstance(setting, str) or "=" not in setting:
                raise ValueError(f"{where}: {key}: {setting!r} must be a string such as 'temperature=0.1'")
    if table.get("preset", "cpu") not in PRESETS:
        raise ValueError(f"{where}: preset={table['preset']!r}: must be one of {', '.join(PRESETS)}")
    if table.get("seeds", 1) < 1:
        raise ValueError(f"{where}: seeds={table['seeds']}: must be 1 or more")
    values: dict[str, Any] = {"name": table.get("experiment") or table.get("tune"), **table}
    values |= {key: tuple(values[key]) for key in ("settings", "pilot") if key in values}
    return Entry(**values)


def core_seconds(pilot: dict[str, Any]) -> float | None:
    """Core-seconds a cell, the mean of a pilot's cells; None if no cell was measured.

    >>> core_seconds({"cells": [{"core_seconds": 50}, {"core_seconds": 70}]}), core_seconds({"cells": []})
    (60.0, None)
    """
    measured = [cell["core_seconds"] for cell in pilot["cells"]]
    return sum(measured) / len(measured) if measured else None


def link_data(folder: Path, data: str | None, entries: list[Entry]) -> None:
    """Make ``folder/data`` a link to the data folder, and check that every file of the plan is in it.

    Args:
        folder: Where the commands run.
        data: The data folder; None or empty keeps the link that is there.
        entries: The plan.

    Raises:
        ValueError: A file is missing, or no data folder is known.
    """
    link = folder / "data"
    files = sorted({entry.data for entry in entries if entry.data})
    if data:
        link.unlink(missing_ok=True)
        link.symlink_to(Path(data).resolve(), target_is_directory=True)
    if files and not link.exists():
        raise ValueError("KONTRAST_DATA: is not set; set it, or --data, to the folder that has " + ", ".join(files))
    missing = [file for file in files if not (link / file).exists()]
    if missing:
        raise ValueError(
            f"{link.resolve()}: has no {', '.join(missing)}; docs/experiments/background.md says how to get them"
        )
