"""The status a command ends with, and whether errors show where they came from.

| status | when |
|---|---|
| 0 | done |
| 1 | it ran, and failed: a check does not hold, the loss is no number |
| 2 | what was asked is wrong |
| 130, 143 | stopped by Ctrl-C or SIGTERM, after saving |
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.markup import escape

from kontrast.cli._console import err

shown = {"debug": False}


def debugging() -> bool:
    """Whether errors show where they came from: ``kontrast --debug``, or the variable KONTRAST_DEBUG."""
    return shown["debug"] or bool(os.environ.get("KONTRAST_DEBUG"))


@contextmanager
def running() -> Iterator[None]:
    """While a recipe runs: what stops it becomes a message and a status."""
    from kontrast.distributed import launched_rank
    from kontrast.train import NonFiniteLoss, Stopped

    try:
        yield
    except Stopped as stopped:
        if launched_rank() == 0:
            err.print(escape(str(stopped)), highlight=False, soft_wrap=True)
        raise typer.Exit(128 + stopped.signum) from None
    except KeyboardInterrupt:  # before the first step, while evaluating, or the second one
        err.print("stopped; the same command continues", highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None
    except NonFiniteLoss as error:
        if debugging():
            raise
        err.print(f"[bold red]failed:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
