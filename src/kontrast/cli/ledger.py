"""``kontrast ledger``: finished cells of experiments as text files in the repository."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kontrast.cli._arguments import AsJson, Out
from kontrast.cli._completion import choices, complete_experiment
from kontrast.cli._console import print_err, print_out, say_loading, table
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.experiments.ledger import Entry, Merged
    from kontrast.experiments.sweep import Sweep

app = typer.Typer(help="Keep finished cells of experiments as text: add, import, list.", no_args_is_help=True)

Folder = Annotated[Path | None, typer.Option("--ledger", help="The ledger's folder; docs/results/ledger if left out.")]


@app.command()
def add(
    what: Annotated[
        list[str],
        typer.Argument(
            help="Experiments, or their folders in --out; then settings as `kontrast reproduce` was given them.",
            autocompletion=complete_experiment,
        ),
    ],
    preset: Annotated[
        str,
        typer.Option(
            "--preset", help="The preset of experiments given by name.", autocompletion=choices("paper", "cpu", "smoke")
        ),
    ] = "cpu",
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds; the preset's own number if left out.")
    ] = None,
    to: Out = Path("runs"),
    folder: Folder = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace cells of the ledger that have other content.")
    ] = False,
) -> None:
    """Put the finished cells of experiments, and their baselines, into the ledger."""
    from kontrast.experiments.ledger import Ledger

    names = [word for word in what if "=" not in word]
    settings = [word for word in what if "=" in word]
    if not names:
        raise ValueError(f"WHAT={' '.join(what)}: must begin with an experiment, such as wl-table-1")
    say_loading("ledger")
    from kontrast.experiments.ledger import entries_of

    ledger = Ledger(_folder(folder))
    entries: list[Entry] = []
    for name in names:
        sweep = _sweep(name, preset, settings, seeds, to)
        new = entries_of(sweep)
        entries += new
        cells = sum(entry.baseline is None for entry in new)
        print_err(f"{sweep.design.name}: {cells} of {len(sweep.cells)} runs are done")
    _print_changes(ledger.merge(entries, replace=replace), ledger.path)


@app.command("import")
def import_(
    what: Annotated[
        list[str],
        typer.Argument(help="Files of a ledger; then values of axes that are paths, such as data=photos.npz."),
    ],
    folder: Folder = None,
) -> None:
    """Merge cells that somebody else ran, after a check: same version, same recipes, no cell twice."""
    from kontrast.experiments.ledger import Ledger, read_file

    files = [Path(word) for word in what if "=" not in word]
    settings = [word for word in what if "=" in word]
    entries, places = [], dict[object, str]()
    for file in files:
        for entry, number in read_file(file):
            where = f"{file}, line {number}"
            if (first := places.setdefault(entry.key, where)) != where:
                raise ValueError(f"{where}: {entry.name} is also in {first}. Import one of them")
            entries.append((entry, where))
    if not entries:
        raise ValueError(f"WHAT={' '.join(what)}: must name files of a ledger with cells; there is no cell in them")
    say_loading("ledger")
    from kontrast.experiments.ledger import check_import

    check_import(entries, settings)
    ledger = Ledger(_folder(folder))
    _print_changes(ledger.merge([entry for entry, _ in entries]), ledger.path)


@app.command("list")
def list_(
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """List the ledger: each design with its cells, seeds and hours."""
    from kontrast.experiments.ledger import Ledger, read_file

    ledger = Ledger(_folder(folder))
    lines = []
    for file in ledger.files():
        entries = [entry for entry, _ in read_file(file)]
        cells = [entry for entry in entries if entry.baseline is None]
        first = entries[0] if entries else None
        lines.append(
            {
                "file": file.name,
                "experiment": first.experiment if first else "",
                "preset": first.preset if first else "",
                "settings": first.settings if first else {},
                "cells": len(cells),
                "places": len({frozenset(entry.at.items()) for entry in cells}),
                "seeds": len({entry.seed for entry in cells}),
                "baselines": len(entries) - len(cells),
                "hours": round(sum(entry.origin.seconds or 0.0 for entry in entries) / 3600, 3),
                "bytes": file.stat().st_size,
            }
        )
    if as_json:
        print(dump({"ledger": str(ledger.path), "designs": lines}))
        return
    right = ("cells", "places", "seeds", "baselines", "hours", "kB")
    designs = table("experiment", "preset", "settings", *right, right=right)
    for line in lines:
        words = " ".join(f"{key}={value}" for key, value in line["settings"].items())  # type: ignore[attr-defined]
        counts = [str(line[name]) for name in ("cells", "places", "seeds", "baselines")]
        sizes = [f"{line['hours']:.1f}", f"{line['bytes'] / 1000:.0f}"]  # type: ignore[operator]
        designs.add_row(*(escape(str(line[name])) for name in ("experiment", "preset")), escape(words), *counts, *sizes)
    print_out(designs if lines else f"{ledger.path} has no cell yet; kontrast ledger add adds some", markup=False)


def _sweep(name: str, preset: str, settings: list[str], seeds: int | None, to: Path) -> Sweep:
    """The sweep of an experiment by its name, or by the folder that `kontrast reproduce` wrote."""
    from kontrast import experiments
    from kontrast.experiments.sweep import Sweep
    from kontrast.runs import ExperimentFolder

    folder = Path(name)
    if not ExperimentFolder(folder).summary_file.is_file():
        return Sweep.of(experiments.find(name), preset, settings, seeds=seeds, out=to)
    summary = ExperimentFolder(folder).summary
    number = seeds or 1 + max(map(int, summary.seeds), default=0)
    words = [*(summary.settings or []), *settings]
    return Sweep.of(experiments.find(summary.experiment), summary.preset, words, seeds=number, out=folder.parent)


def _folder(option: Path | None) -> Path:
    from kontrast.experiments.ledger import DEFAULT

    return DEFAULT if option is None else option


def _print_changes(changes: Merged, path: Path) -> None:
    words = [f"{len(changes.added)} cells added"]
    words += [f"{len(changes.replaced)} replaced"] if changes.replaced else []
    words += [f"{len(changes.same)} were there already"] if changes.same else []
    print_out(f"{path}: {', '.join(words)}", markup=False)
