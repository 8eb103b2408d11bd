"""The command line as a user meets it: what it prints, and the status it ends with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from kontrast.cli import main
from kontrast.cli._console import options
from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Event, attempt
from kontrast.experiments.engines.local import Local
from kontrast.recipe import Recipe
from tests.train.small import recipe

START = "import sys; sys.argv[0] = 'kontrast'; from kontrast.cli import main; main()"


class Answer(NamedTuple):
    status: int
    out: str
    err: str


def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> Answer:
    """`main` in this process, errors turned into a status as for a user."""
    monkeypatch.setitem(options, "debug", False)
    monkeypatch.setattr("sys.argv", ["kontrast", *map(str, words)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main()
    out, err = capsys.readouterr()
    return Answer(int(stop.value.code or 0), out, err)


def process(*words: object, python: str = START, env: Mapping[str, str] | None = None) -> Answer:
    """A process of its own."""
    call = [sys.executable, "-c", python, *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
    return Answer(done.returncode, done.stdout, done.stderr)


def run_cells_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the local engine run its cells in this process: one that trains takes seconds to start."""

    def run(self: Local, cells: Sequence[Cell], notify: Callable[[Event], None]) -> None:
        for cell in cells:
            outcome = attempt(cell)
            notify(Event(outcome.what, cell, outcome.seconds, outcome.error))

    monkeypatch.setattr(Local, "run", run)


def written(folder: Path, method: str = "supcon", **changes: object) -> tuple[Path, Recipe]:
    """A recipe of about a second as a file; its runs go to ``folder/runs``."""
    made = recipe(method, folder / "runs", **{"train.epochs": 1, **changes})
    path = folder / "small.yaml"
    path.write_text(made.to_yaml())
    return path, made


def one_paragraph(text: str) -> bool:
    """Neither a traceback nor more than a line, which the terminal wraps, behind what is said of loading."""
    lines = text.strip().splitlines()
    if lines and lines[0].startswith("loading ") and lines[0].endswith(" …"):
        lines = lines[1:]
    return len(lines) == 1 and "Traceback" not in text
