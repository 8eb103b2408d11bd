"""The terminal: results to standard output; progress, warnings and errors to standard error; the exit status.

| status | when |
|---|---|
| 0 | done |
| 1 | it ran, and failed: a check does not hold, the loss is no number |
| 2 | an argument is wrong, or a file cannot be used |
| 129, 130, 143 | stopped by SIGHUP (its terminal was closed), Ctrl-C or SIGTERM, after saving |
| 138, 140 | stopped by SIGUSR1 or SIGUSR2 (as Slurm sends before a time limit), after saving |
| 141 | nobody reads what it prints |

A message that cannot be written to standard error does not end a command. Results that cannot be written to standard
output do: with status 141 and without a message if nobody reads them (``kontrast list | head -1``), as other programs
do; with an error if the disk is full. Letters that the encoding lacks are escaped.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import typer
from rich import progress
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from kontrast.registry import one_line, quoted

LONGEST = 1200  # characters of a message: a value of a megabyte is not printed whole
PAUSE = 10.0  # seconds between two progress lines of a job, without a terminal
WIDTH = 120  # of output into a file or a pipe
UNREAD = 141  # 128 + SIGPIPE

out = Console() if sys.stdout is not None and sys.stdout.isatty() else Console(width=WIDTH)
err = Console(stderr=True)
ProgressCallback = Callable[[str, int, int], None]
"""``(name, done, of)``: what is being done, how many parts are done, and how many there are."""

# -------------------------------------------------------------------------------------------------------- messages


def paragraph(message: object) -> str:
    """A message for `err.print` as one paragraph: without line breaks, control characters and markup, and cut short.

    >>> print(paragraph("two\\nlines [bold]"), len(paragraph("x" * 10**6)) < 1300)
    two lines \\[bold] True
    """
    text = one_line(" ".join(str(message).split()))
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … ({len(text):,} characters) … {text[-LONGEST // 2 :]}"
    return escape(text)


def printable(path: object) -> str:
    """A path for `out.print`: on one line, without control characters and markup.

    >>> print(printable("runs/two\\nlines [bold]"))
    runs/two\\nlines \\[bold]
    """
    return escape(one_line(str(path)))


def print_out(what: RenderableType, *, markup: bool = True, wrap: bool = False) -> None:
    """Print results: a line, with ``wrap`` a paragraph, or a table."""
    out.print(what, highlight=False, markup=markup, soft_wrap=isinstance(what, str) and not wrap)


def print_err(line: str, *, markup: bool = True) -> None:
    """Print a line on standard error: progress, a warning or an error."""
    err.print(line, highlight=False, markup=markup, soft_wrap=True)


def print_path(what: str, path: Path | None, more: str = "") -> None:
    """Print the path of a file or folder; nothing if there is none."""
    if path is not None:
        print_out(f"{what}: {printable(path)}{more}")


def say_loading(what: object) -> None:
    """Print a line at once: importing torch and reading data take seconds. Only on the first rank."""
    if os.environ.get("RANK") in (None, "", "0"):
        print_err(f"loading {paragraph(what)} …")


def table(*columns: str, right: Sequence[str] = (), title: str = "") -> Table:
    """An empty table of these columns; those of ``right`` hold numbers, and are aligned there."""
    empty = Table(box=SIMPLE_HEAD, title=escape(title) or None, title_justify="left")
    for column in columns:
        empty.add_column(column, justify="right" if column in right else "left")
    return empty


def number(x: float) -> str:
    """Format a number: whole numbers without decimals, others with four; very small and large ones with an exponent."""
    if not math.isfinite(x) or x == int(x):
        return f"{x:.0f}"
    return f"{x:.4f}" if 1e-3 <= abs(x) < 1e5 else f"{x:.2e}"


# -------------------------------------------------------------------------------------------------------- progress


@contextmanager
def progress_bar(what: str, *, each_part: bool = False) -> Iterator[ProgressCallback]:
    """A callback for the parts of a job: on a terminal a bar, else a line now and then.

    Args:
        what: The job.
        each_part: For a few long parts: the bar names the part, and without a terminal each has its line.
    """
    if err.is_terminal:
        time_column = progress.TimeElapsedColumn() if each_part else progress.TimeRemainingColumn()
        columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn())
        with progress.Progress(*columns, time_column, console=err, transient=True) as bar:
            task = bar.add_task(what)
            yield lambda name, done, of: bar.update(
                task, description=f"{what} {name}" if each_part else what, completed=done, total=of
            )
        return
    next_line = time.monotonic() + PAUSE

    def print_line(name: str, done: int, of: int) -> None:
        nonlocal next_line
        if each_part:
            print_err(f"{what} {done + 1}/{of}: {name}")
        elif time.monotonic() >= next_line:
            next_line = time.monotonic() + PAUSE
            print_err(f"{what}: {done:,} of {of:,}")

    yield print_line


# -------------------------------------------------------------------------------------------------- errors and warnings

options = {"debug": False}
"""Options of ``kontrast`` itself, before the command."""


def debugging() -> bool:
    """Whether errors show a traceback: ``kontrast --debug``, or the variable KONTRAST_DEBUG."""
    return options["debug"] or bool(os.environ.get("KONTRAST_DEBUG"))


def print_failure(what: str, error: Exception) -> None:
    """Print that a part of the job failed, such as the report of a run; the command goes on."""
    if debugging():
        traceback.print_exception(error)
    print_err(f"{what}: {paragraph(f'{type(error).__name__}: {error}')}")


@contextmanager
def handle_signals() -> Iterator[None]:
    """Turn signals, Ctrl-C and a loss that is not finite into a message and an exit status."""
    from kontrast.distributed import launched_rank
    from kontrast.train import NonFiniteLoss, Stopped

    try:
        yield
    except Stopped as stopped:
        if launched_rank() == 0:
            print_err(paragraph(stopped))
        raise typer.Exit(128 + stopped.signum) from None
    except KeyboardInterrupt:  # before the first step, while evaluating, or the second one
        print_err("stopped; the same command continues")
        raise typer.Exit(130) from None
    except NonFiniteLoss as error:
        if debugging():
            raise
        print_err(f"[bold red]failed:[/] {paragraph(error)}")
        raise typer.Exit(1) from None


def format_error(error: BaseException) -> str | None:
    """An error as a message that says what to do; None for a defect of kontrast, which needs its traceback.

    >>> format_error(FileNotFoundError(2, "No such file or directory", "x.npy"))
    'x.npy cannot be used: no such file or directory; check its name and who may read or write it'
    >>> format_error(MemoryError()).partition(";")[0], format_error(RuntimeError("a defect")) is None
    ('there is not enough memory (MemoryError)', True)
    """
    text = str(error)
    if isinstance(error, MemoryError | RuntimeError) and _is_out_of_memory(error):
        return (
            f"there is not enough memory ({text.partition(chr(10))[0] or type(error).__name__}); take a smaller batch "
            "(train.batch_size, or train.micro_batch=auto for parts of it), a smaller encoder or queue, or fewer rows "
            "(data.limit)"
        )
    if isinstance(error, OSError) and error.strerror and error.filename is not None and text.startswith("[Errno"):
        name = quoted(os.fspath(error.filename)) if len(os.fspath(error.filename)) > 300 else error.filename
        return f"{name} cannot be used: {error.strerror.lower()}; check its name and who may read or write it"
    return text if isinstance(error, ValueError | OSError | ImportError) else None


def _is_out_of_memory(error: BaseException) -> bool:
    from kontrast.train.memory import out_of_memory  # loads torch: only after an error

    return out_of_memory(error)


warning_texts: set[str] = set()  # printed so far


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as lines on standard error, each text once; with ``--debug`` as Python does."""
    show_warning = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if debugging():
            show_warning(message, category, *where, **more)
            return
        text = str(message)
        if text not in warning_texts:
            warning_texts.add(text)
            print_err(f"[yellow]warning:[/] {paragraph(text)}")

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = show_warning


# -------------------------------------------------------------------------------------------------------------- streams


class _Stream(ABC):
    """A stream of text that passes errors in writing to `_handle`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        with contextlib.suppress(AttributeError, ValueError, OSError):  # a test's replacement has no encoding
            stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._handle(error)
            return len(text)

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._handle(error)

    @abstractmethod
    def _handle(self, error: OSError) -> None:
        """Handle an error in writing."""

    def _discard(self) -> None:
        """Discard the rest of the output, also what Python would write at its end."""
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)


class _Error(_Stream):
    def _handle(self, error: OSError) -> None:
        if not isinstance(error, BlockingIOError):  # a slow reader may continue later
            self._discard()


class _Output(_Stream):
    def _handle(self, error: OSError) -> NoReturn:
        self._discard()
        if isinstance(error, BrokenPipeError):
            raise SystemExit(UNREAD) from None
        why = (error.strerror or str(error)).lower()
        raise OSError(f"standard output could not be written: {why}; what the command saved is in its files") from None


@contextlib.contextmanager
def guard_streams() -> Iterator[None]:
    """Inside, errors in writing to the standard streams are handled as the module says."""
    streams = sys.stdout, sys.stderr
    for fd in (0, 1, 2):  # the number of a closed stream would go to the next file that is opened
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    with contextlib.ExitStack() as stack:
        output, error = (s or stack.enter_context(open(os.devnull, "w", encoding="utf-8")) for s in streams)
        sys.stdout, sys.stderr = cast(TextIO, _Output(output)), cast(TextIO, _Error(error))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams
