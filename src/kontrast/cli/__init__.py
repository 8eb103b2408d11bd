"""The command line: parse, call, print. ``kontrast COMMAND``, or ``python -m kontrast COMMAND``; a command a file.

Results go to standard output, progress and errors to standard error; ``--json`` prints what a program can read.
An error in the arguments ends with status 2 and one paragraph that says what to do. A warning is a line, printed once.
``kontrast --debug COMMAND`` (or the variable KONTRAST_DEBUG) prints tracebacks. Modules that a command needs are
imported when it runs, so ``--help`` is quick.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import Annotated

import typer

import kontrast
from kontrast.cli._console import debugging, format_error, guard_streams, options, paragraph, plain_warnings, print_err
from kontrast.openmp import set_wait_policy

app = typer.Typer(
    name="kontrast",
    help="Contrastive representation learning: train encoders, evaluate and measure them, and check the theory.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
COMMANDS = (
    "demo", "train", "adapt", "evaluate", "embed", "explore", "export", "geometry", "doctor", "verify", "reproduce",
    "ledger", "report", "tune", "list", "show", "bench",
)  # fmt: skip
"""In the order of ``kontrast --help``. Each has a module with a function of its name, or an app of further commands."""
for name in COMMANDS:
    module = importlib.import_module(f"kontrast.cli.{name}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name)(getattr(module, name, None) or getattr(module, f"{name}_"))  # list_: `list` is Python's


def main() -> None:
    """Run the command line; input errors become a message and status 2."""
    set_wait_policy()  # before a command loads torch
    with guard_streams():
        _run_command()


def _run_command() -> None:
    try:
        with plain_warnings():
            try:
                app()
            finally:
                sys.stdout.flush()  # here its errors can still be printed
    except (ValueError, OSError, ImportError, MemoryError, RuntimeError) as error:
        text = format_error(error)
        if text is None:
            raise
        if debugging():
            traceback.print_exc()
        print_err(f"[bold red]error:[/] {paragraph(text)}")
        sys.exit(2)
    except KeyboardInterrupt:
        print_err("stopped")
        sys.exit(130)


def _version(value: bool) -> None:
    if value:
        print(f"kontrast {kontrast.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print tracebacks of errors and warnings.")] = False,
) -> None:
    options["debug"] = debug
