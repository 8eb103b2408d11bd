"""Reports: a page of a run, of several runs beside each other, of an experiment. One file each, complete in itself.

Three steps: *collect* reads a folder's files into a record, *charts* turn a record into Vega-Lite specifications, a
*page* has sections made of them (`kontrast.report.page`). Reads files only and never imports torch.

`write` looks at what it is given:

| paths | page | goes to |
|---|---|---|
| a run's folder | did it work, is it good, what is wrong, what next | the folder |
| several runs' folders | the runs beside each other | here |
| an experiment's folder | the paper's table with ours, figures, claims | the folder |

Charts as files (``figures``) go beside the page. An experiment's go into ``figures/`` there: its folder has the sweep's
own drawings, by the same names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kontrast.files import expanded, read_regular, write_atomically

__all__ = ["NAME", "write"]

NAME = "report.html"


def write(paths: Sequence[Path], *, out: Path | None = None, figures: str | None = None) -> Path:
    """Writes the page of a run, of runs, or of an experiment; with ``figures`` also each chart as a file.

    >>> write([Path("runs/no-such-run")])
    Traceback (most recent call last):
        ...
    ValueError: there is no folder runs/no-such-run; a report is made of run folders, or of an experiment's folder
    """
    from kontrast.report.figures import KINDS, drawn
    from kontrast.report.page import figures as figures_of
    from kontrast.report.page import render

    if figures is not None and figures not in KINDS:
        raise ValueError(f"figures can be {', '.join(KINDS)}; got {figures!r}")
    paths = [expanded(path) for path in paths]
    if not paths:
        raise ValueError("a report needs at least one run's folder, or an experiment's")
    kinds = [_kind(path) for path in paths]
    if len(paths) == 1 and kinds[0] == "experiment":
        from kontrast.report import experiment

        page, place = experiment.page(paths[0]), paths[0] / NAME
    elif "experiment" in kinds:
        strange = paths[kinds.index("experiment")]
        raise ValueError(
            f"{strange} is an experiment's folder: it has a report of its own, runs are compared with runs"
        )
    elif len(paths) == 1:
        from kontrast.report import run

        page, place = run.page(paths[0]), paths[0] / NAME
    else:
        from kontrast.report import comparison

        page, place = comparison.page(paths), Path(NAME)
    place = place if out is None else expanded(out)
    beside = place.parent / "figures" if kinds == ["experiment"] else place.parent
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Names of files need not be text (a lone surrogate stands for a byte that is none): a page says "?" for those.
        write_atomically(place, render(page).encode(errors="replace"))
        for figure in figures_of(page) if figures is not None else []:
            beside.mkdir(exist_ok=True)
            write_atomically(beside / f"{figure.name}.{figures}", drawn(figure.spec, str(figures)))
    except OSError as error:
        raise ValueError(f"the report cannot be written to {place}: {error.strerror}; choose another --out") from error
    return place


def _kind(path: Path) -> str:
    """run, task or experiment; an error if it is none."""
    if not path.is_dir():
        raise ValueError(f"there is no folder {path}; a report is made of run folders, or of an experiment's folder")
    if (path / "recipe.yaml").exists():
        return "run"
    if "experiment" in _read(path / "result.json"):
        return "experiment"
    if (path / "task.json").exists():
        return "task"
    found = ", ".join(sorted(entry.name for entry in path.iterdir())[:6]) or "nothing"
    raise ValueError(
        f"{path} is neither a run's folder (recipe.yaml) nor an experiment's (result.json); it has {found}. "
        "Give the folder that `kontrast train` or `kontrast reproduce` printed"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_regular(path).decode())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
