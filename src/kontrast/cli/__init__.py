"""The command line: parse, call, print. ``kontrast COMMAND``, or ``python -m kontrast COMMAND``; a command a file.

Results go to standard output, progress and errors to standard error; ``--json`` prints what a program can read.
An error in the arguments ends with status 2 and one paragraph that says what to do. A warning is a line, printed once.
``kontrast --debug COMMAND`` (or the variable KONTRAST_DEBUG) prints tracebacks. Modules that a command needs are
imported when it runs, so ``--help`` is quick.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

import kontrast
from kontrast.cli import (
    bench,
    demo,
    doctor,
    embed,
    evaluate,
    export,
    geometry,
    ledger,
    list,
    report,
    reproduce,
    show,
    train,
    tune,
    verify,
)
from kontrast.cli._console import debugging, err, format_error, guard_streams, options, paragraph, plain_warnings
from kontrast.openmp import set_wait_policy

app = typer.Typer(
    name="kontrast",
    help="Contrastive representation learning: train, evaluate, measure, and see the theory hold.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(embed.embed)
app.command()(export.export)
app.command()(geometry.geometry)
app.command()(doctor.doctor)
app.command()(verify.verify)
app.command()(reproduce.reproduce)
app.add_typer(ledger.app, name="ledger")
app.command()(report.report)
app.command()(tune.tune)
app.command("list")(list.list_)
app.command()(show.show)
app.command()(bench.bench)


def main() -> None:
    """Run the command line; input errors become a message and status 2."""
    set_wait_policy()  # before a command loads torch
    with guard_streams():
        _run()


def _run() -> None:
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
        err.print(f"[bold red]error:[/] {paragraph(text)}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("stopped")
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
