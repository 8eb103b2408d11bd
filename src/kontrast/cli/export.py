"""``kontrast export``: a run's encoder for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from kontrast.cli._completion import complete_part, complete_run
from kontrast.cli._console import out, printable, say_loading


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.", autocompletion=complete_run)],
    to: Annotated[
        str,
        typer.Option("--to", help="safetensors, onnx, timm or torchvision.", autocompletion=complete_part("export")),
    ] = "safetensors",
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", help="A new or empty folder; RUN/exports/<to> if left out.")
    ] = None,
    normalise: Annotated[
        str | None, typer.Option(help="onnx: inside (the file normalises its inputs; the default) or outside.")
    ] = None,
    opset: Annotated[int | None, typer.Option(help="onnx: the operator set; 18 if left out.")] = None,
) -> None:
    """Write a trained encoder for another tool, with a model card; the export is checked with that tool."""
    say_loading(run)
    from kontrast.train.exports import export_run

    options: dict[str, Any] = {"normalise": normalise, "opset": opset}
    place = export_run(run, to, folder, **{key: value for key, value in options.items() if value is not None})
    files = ", ".join(sorted(file.name for file in place.iterdir() if not file.name.startswith(".")))
    out.print(f"written: {printable(place)} ({escape(files)})", soft_wrap=True, highlight=False)
