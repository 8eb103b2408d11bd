"""``kontrast export``: a run's encoder for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from kontrast.cli._arguments import FinishedRun
from kontrast.cli._completion import complete_part
from kontrast.cli._console import print_path, say_loading


def export(
    run: FinishedRun,
    to: Annotated[
        str,
        typer.Option("--to", help="safetensors, onnx, timm or torchvision.", autocompletion=complete_part("export")),
    ] = "safetensors",
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="A new or empty folder; RUN/exports/<to> if left out.")
    ] = None,
    normalise: Annotated[
        str | None, typer.Option(help="For onnx: inside (the default: the file normalises its inputs) or outside.")
    ] = None,
    opset: Annotated[int | None, typer.Option(help="For onnx: the version of the operators; 18 if left out.")] = None,
) -> None:
    """Export a run's encoder for another tool, with a model card. That tool loads it, and the features are compared."""
    say_loading(run)
    from kontrast.train.exports import export_run

    options: dict[str, Any] = {"normalise": normalise, "opset": opset}
    place = export_run(run, to, folder, **{key: value for key, value in options.items() if value is not None})
    files = ", ".join(sorted(file.name for file in place.iterdir() if not file.name.startswith(".")))
    print_path("written", place, f" ({escape(files)})")
