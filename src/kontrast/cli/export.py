"""``kontrast export``: a run's encoder for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from kontrast.cli._arguments import FinishedRun
from kontrast.cli._completion import complete_part
from kontrast.cli._console import print_path, progress_bar, say_loading


def export(
    run: FinishedRun,
    to: Annotated[
        str,
        typer.Option("--to", help="safetensors, onnx, timm or torchvision.", autocompletion=complete_part("export")),
    ] = "safetensors",
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="A new or empty folder; RUN/exports/<to> if left out.")
    ] = None,
    with_classifier: Annotated[
        bool,
        typer.Option(
            "--with-classifier", help="Fit the linear probe on the run's data and export it with the encoder."
        ),
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(
            help="Labelled data for the classifier; the run's own if left out.",
            autocompletion=complete_part("data set"),
        ),
    ] = None,
    normalise: Annotated[
        str | None, typer.Option(help="For onnx: inside (the default: the file normalises its inputs) or outside.")
    ] = None,
    opset: Annotated[int | None, typer.Option(help="For onnx: the version of the operators; 18 if left out.")] = None,
    device: Annotated[
        str, typer.Option(help="Where the classifier's features are computed: auto, cpu, cuda …")
    ] = "auto",
) -> None:
    """Export a run's encoder for another tool, with a model card. That tool loads it, and its answers are compared."""
    say_loading(run)
    from kontrast.train.exports import export_run

    options: dict[str, Any] = {"normalise": normalise, "opset": opset}
    given = {key: value for key, value in options.items() if value is not None}
    if data is not None and not with_classifier:
        raise ValueError(f"--data={data}: must be left out without --with-classifier, which it is for")
    if with_classifier:
        with progress_bar("classifier") as progress:
            given |= {"with_classifier": True, "data": data, "device": device, "progress": progress}
            place = export_run(run, to, folder, **given)
    else:
        place = export_run(run, to, folder, **given)
    files = ", ".join(sorted(file.name for file in place.iterdir() if not file.name.startswith(".")))
    print_path("written", place, f" ({escape(files)})")
