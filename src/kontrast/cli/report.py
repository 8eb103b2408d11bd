"""``kontrast report``: the page of a run, of several runs beside each other, or of an experiment."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kontrast.cli._completion import complete_run
from kontrast.cli._console import print_failure, print_path, say_loading
from kontrast.files import expanded

PRESETS = ("cpu", "paper", "smoke")


class Kind(StrEnum):
    """The format of a chart's file."""

    svg = "svg"
    pdf = "pdf"
    png = "png"


def report(
    what: Annotated[
        list[str],
        typer.Argument(
            help="A run's folder, several to compare, or an experiment: its folder or its name.",
            autocompletion=complete_run,
        ),
    ],
    to: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The page's file. If left out: report.html in the folder, for several runs in this one."
        ),
    ] = None,
    figures: Annotated[
        Kind | None,
        typer.Option(
            "--figures", help="Also write every chart as a file, beside the page (of an experiment into figures/)."
        ),
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="The folder of the experiments that are given by name.")] = Path(
        "runs"
    ),
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write one page that answers: did it work, is it good, what is wrong, what next? It can be read offline."""
    paths = [folder(name, runs) for name in what]
    say_loading(", ".join(what))
    from kontrast import pipeline

    kind = None if figures is None else figures.value
    page = pipeline.report(paths, to, figures=kind, on_error=print_failure)
    print_path("report", page.path)
    if show:
        page.open()


def folder(name: str, runs: Path) -> Path:
    """A folder by its path, or an experiment's by its name; other words stay paths, and the report raises an error."""
    path = expanded(name)
    if path.is_dir() or path.name != name:
        return path
    folders = [runs / f"{name}-{preset}" for preset in PRESETS]
    for experiment in folders:
        if experiment.is_dir():
            return experiment
    from kontrast.experiments import names

    if name in names():
        raise ValueError(
            f"there is no folder {folders[0]}: the experiment has not been run, or its folder is elsewhere. Run it "
            f"(kontrast reproduce {name}), or set its folder (--runs DIR)"
        )
    return path
