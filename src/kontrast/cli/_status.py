"""The status a command ends with, and whether errors show where they came from.

| status | when |
|---|---|
| 0 | done |
| 1 | it ran, and failed: a check does not hold, the loss is no number |
| 2 | what was asked is wrong |
| 129, 130, 143 | stopped by SIGHUP (its terminal was closed), Ctrl-C or SIGTERM, after saving |
| 138, 140 | stopped by SIGUSR1 or SIGUSR2 (as Slurm sends before a time limit), after saving |
| 141 | nobody reads what it prints |
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from kontrast.cli._console import err, paragraph
from kontrast.registry import quoted

shown = {"debug": False}


def debugging() -> bool:
    """Whether errors show where they came from: ``kontrast --debug``, or the variable KONTRAST_DEBUG."""
    return shown["debug"] or bool(os.environ.get("KONTRAST_DEBUG"))


def tell_failure(what: str, error: Exception) -> None:
    """Say on standard error what could not be done beside a run; the command goes on."""
    if debugging():
        traceback.print_exception(error)
    err.print(f"{what}: {paragraph(f'{type(error).__name__}: {error}')}", highlight=False, soft_wrap=True)


@contextmanager
def running() -> Iterator[None]:
    """While a recipe runs: what stops it becomes a message and a status."""
    from kontrast.distributed import launched_rank
    from kontrast.train import NonFiniteLoss, Stopped

    try:
        yield
    except Stopped as stopped:
        if launched_rank() == 0:
            err.print(paragraph(stopped), highlight=False, soft_wrap=True)
        raise typer.Exit(128 + stopped.signum) from None
    except KeyboardInterrupt:  # before the first step, while evaluating, or the second one
        err.print("stopped; the same command continues", highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None
    except NonFiniteLoss as error:
        if debugging():
            raise
        err.print(f"[bold red]failed:[/] {paragraph(error)}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None


def told(error: BaseException) -> str | None:
    """An error in words that say what to do; None if it is a defect of ours, whose origin must be shown.

    >>> told(FileNotFoundError(2, "No such file or directory", "x.npy"))
    'x.npy cannot be used: no such file or directory; check its name and who may read or write it'
    >>> told(MemoryError()).partition(";")[0], told(RuntimeError("a defect")) is None
    ('there is not enough memory (MemoryError)', True)
    """
    said = str(error)
    if isinstance(error, MemoryError | RuntimeError) and _full(error):
        return (
            f"there is not enough memory ({said.partition(chr(10))[0] or type(error).__name__}); take a smaller batch "
            "(train.batch_size, or train.micro_batch=auto for parts of it), a smaller encoder or queue, or fewer rows "
            "(data.limit)"
        )
    if isinstance(error, OSError) and error.strerror and error.filename is not None and said.startswith("[Errno"):
        name = quoted(os.fspath(error.filename)) if len(os.fspath(error.filename)) > 300 else error.filename
        return f"{name} cannot be used: {error.strerror.lower()}; check its name and who may read or write it"
    return said if isinstance(error, ValueError | OSError | ImportError) else None


def _full(error: BaseException) -> bool:
    from kontrast.train.memory import out_of_memory  # with torch: only when something is wrong

    return out_of_memory(error)
