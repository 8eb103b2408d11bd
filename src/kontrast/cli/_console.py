"""What the commands print with: results to standard output, progress and errors to standard error."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from kontrast.registry import one_line

LONGEST = 1200  # characters of a message; a value of a megabyte is not printed back
PAUSE = 10.0  # seconds between two lines about one job, where there is no terminal
WIDE = 120  # of what goes into a file or a pipe, where nothing need wrap at a terminal's edge

out = Console() if sys.stdout is not None and sys.stdout.isatty() else Console(width=WIDE)
err = Console(stderr=True)


def paragraph(text: object) -> str:
    """A message for `err.print` as one paragraph: no line breaks, no terminal's commands, nothing endless, no markup.

    >>> print(paragraph("two\\nlines [bold]"), len(paragraph("x" * 10**6)) < 1300)
    two lines \\[bold] True
    """
    said = one_line(" ".join(str(text).split()))
    if len(said) > LONGEST:
        said = f"{said[: LONGEST // 2]} … ({len(said):,} characters) … {said[-LONGEST // 2 :]}"
    return escape(said)


def named(path: object) -> str:
    """A file's or folder's name for `out.print`: as it is, but on one line, without a terminal's commands or markup.

    >>> print(named("runs/two\\nlines [bold]"))
    runs/two\\nlines \\[bold]
    """
    return escape(one_line(str(path)))


def say_loading(what: object) -> None:
    """A line at once, before torch is imported and the data are read, which takes seconds; on the first rank only."""
    if os.environ.get("RANK") in (None, "", "0"):
        err.print(f"loading {paragraph(what)} …", highlight=False, soft_wrap=True)


@contextmanager
def steps(what: str) -> Iterator[Any]:
    """A callback ``(name, done, of)``: a bar on a terminal, else a line for each step."""
    if not err.is_terminal:
        yield lambda name, done, of: err.print(f"{what} {done + 1}/{of}: {name}", highlight=False)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(what)
        yield lambda name, done, of: progress.update(task, description=f"{what} {name}", completed=done, total=of)


@contextmanager
def counted(what: str) -> Iterator[Any]:
    """A callback ``(name, done, of)`` for many small parts: a bar with the time left, else a line now and then."""
    if err.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=err, transient=True) as progress:
            task = progress.add_task(what)
            yield lambda name, done, of: progress.update(task, completed=done, total=of)
        return
    next_line = time.monotonic() + PAUSE

    def told(name: str, done: int, of: int) -> None:
        nonlocal next_line
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + PAUSE
            err.print(f"{what}: {done:,} of {of:,}", highlight=False)

    yield told


def number(x: float) -> str:
    """Whole numbers as such; else four digits after the point, or an exponent where that would show none."""
    if not math.isfinite(x) or x == int(x):
        return f"{x:.0f}"
    return f"{x:.4f}" if 1e-3 <= abs(x) < 1e5 else f"{x:.2e}"
