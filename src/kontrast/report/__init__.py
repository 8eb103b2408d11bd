"""Reports: a page of a run, of several runs, or of an experiment. Each is one file that needs nothing else.

    read the folder → record → charts (Altair) → sections → page

`kontrast.report.page` has the parts of a page and writes the file. Reports read files only, through `kontrast.runs`,
and never import torch. `write` decides by the paths:

| paths | page | written to |
|---|---|---|
| a run's folder | did it work, is it good, what is wrong, what next | the folder |
| several runs' folders | the runs beside each other | the current folder |
| an experiment's folder | the paper's table with ours, figures, claims | the folder |

Charts as files (``figures``) go beside the page. Those of an experiment go into ``figures/`` there: its folder already
has drawings by the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kontrast.files import expanded, write_atomically
from kontrast.runs import ExperimentFolder, Run, kind_of_folder

__all__ = ["NAME", "write"]

NAME = "report.html"


def write(paths: Sequence[Path], *, out: Path | None = None, figures: str | None = None) -> Path:
    """Write the page of a run, of several runs, or of an experiment.

    Args:
        paths: The folder of a run or an experiment, or those of several runs.
        out: The page's file; by default report.html in the folder (several runs: in the current folder).
        figures: svg, pdf or png: write each chart as a file too.

    Returns:
        The page's file.

    Raises:
        ValueError: A folder is not a run's or an experiment's, they do not go together, or the page cannot be written.

    >>> write([Path("runs/no-such-run")])
    Traceback (most recent call last):
        ...
    ValueError: there is no folder runs/no-such-run; a report is made of run folders, or of an experiment's folder
    """
    from kontrast.report import comparison, experiment, run
    from kontrast.report.figures import KINDS, draw
    from kontrast.report.page import figures as figures_of
    from kontrast.report.page import render

    if figures is not None and figures not in KINDS:
        raise ValueError(f"figures={figures!r}: must be one of {', '.join(KINDS)}")
    paths = [expanded(path) for path in paths]
    if not paths:
        raise ValueError("a report needs the folder of at least one run, or of an experiment")
    kinds = [kind_of_folder(path) for path in paths]
    if kinds == ["experiment"]:
        page, file = experiment.page(paths[0]), ExperimentFolder(paths[0]).report_file
    elif "experiment" in kinds:
        path = paths[kinds.index("experiment")]
        raise ValueError(f"{path} is an experiment's folder: it has its own report. Compare runs with runs")
    elif len(paths) == 1:
        page, file = run.page(paths[0]), Run(paths[0]).report_file
    else:
        page, file = comparison.page(paths), Path(NAME)
    file = file if out is None else expanded(out)
    folder = file.parent / "figures" if kinds == ["experiment"] else file.parent
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Names of files need not be text (a lone surrogate stands for another byte): the page has "?" for those.
        write_atomically(file, render(page).encode(errors="replace"))
        for figure in figures_of(page) if figures is not None else []:
            folder.mkdir(exist_ok=True)
            write_atomically(folder / f"{figure.name}.{figures}", draw(figure.spec, str(figures)))
    except OSError as error:
        raise ValueError(f"the report cannot be written to {file}: {error.strerror}; choose another --out") from error
    return file
