"""``kontrast adapt``: a pretrained encoder, adapted to your data, shipped only if it is better than the frozen one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from kontrast.cli._arguments import AsJson, Settings
from kontrast.cli._completion import choices, complete_encoder_or_run, complete_part
from kontrast.cli._console import (
    handle_signals,
    print_err,
    print_failure,
    print_out,
    print_path,
    printable,
    say_loading,
    table,
)
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.runs import Verdict


def adapt(
    encoder: Annotated[
        str,
        typer.Argument(
            help="timm/NAME, resnet50 … (`kontrast list encoders`), or the folder of a finished run.",
            autocompletion=complete_encoder_or_run,
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            help="A folder of images, a data set by name, or an .npz file.", autocompletion=complete_part("data set")
        ),
    ],
    settings: Settings = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Pretrained weights of a named encoder: a file, or the name of the library's weights."),
    ] = None,
    minutes: Annotated[float, typer.Option(help="The time for everything.")] = 20.0,
    method: Annotated[
        str | None,
        typer.Option(
            help="supcon, tcl (with labels), sce, simclr (without); by the labels if left out.",
            autocompletion=choices("supcon", "tcl", "sce", "simclr"),
        ),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Ship the adapted encoder where there are no labels to judge it by.")
    ] = False,
    to: Annotated[Path, typer.Option("--out", help="The folder of the run folders.")] = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Adapt a pretrained encoder to your images; keep the frozen one unless the adapted one is better. Also resumes."""
    from kontrast.recipe import parse

    changes = {**dict(map(parse, settings or [])), "run.out": str(to)}
    say_loading(encoder)
    from kontrast import pipeline
    from kontrast.adaptation import Adaptation, plan
    from kontrast.recipe import from_yaml

    source = from_yaml(weights) if weights in ("true", "false") else weights
    with handle_signals():
        planned = plan(
            encoder,
            data,
            weights=source,
            minutes=minutes,
            method=method,
            accept=accept,
            settings=changes,
            say=lambda line: print_err(escape(line)),
        )
        session = Adaptation(planned.recipe, planned.data, request=planned.request)
        if not session.has_work:
            print_err(f"already done: {printable(session.run.path)}")
        elif session.run.has_checkpoint:
            print_err(f"resumes at step {session.run.state.step or 0}: {printable(session.run.path)}")
        page = pipeline.perform(session, on_error=print_failure)
    run = session.run
    verdict = run.verdict
    assert verdict is not None
    if as_json:
        print(dump(run.result))
        return
    if verdict.measures:
        print_out(_table(verdict))
    print_out(escape(verdict.sentence), wrap=True)
    print_path("run folder", run.path)
    print_path("report", page)


def _table(verdict: Verdict) -> Table:
    """The frozen and the adapted encoder by each measure."""
    numbers = ("frozen %", "adapted %", "difference", "± 95 %")
    measures = table("measure", *numbers, right=numbers)
    for measure in verdict.measures:
        measures.add_row(
            escape(measure.title),
            f"{100 * measure.frozen:.1f}",
            f"{100 * measure.adapted:.1f}",
            f"{100 * measure.difference:+.1f}",
            f"{50 * (measure.high - measure.low):.1f}",
        )
    return measures
