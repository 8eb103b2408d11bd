"""``kontrast embed``: the features of any data, by a run's encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kontrast.cli._arguments import FinishedRun
from kontrast.cli._completion import complete_part
from kontrast.cli._console import print_path, progress_bar, say_loading


def embed(
    run: FinishedRun,
    data: Annotated[
        list[str],
        typer.Argument(
            help="A data set by name, an image folder, an .npz or .npy file, or one or more image files.",
            autocompletion=complete_part("data set"),
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="out.npz (features, labels, class_names, paths), out.npy (features) or out.parquet."
        ),
    ],
    split: Annotated[str | None, typer.Option(help="The split: train, test or unlabelled; train if left out.")] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Rows that are encoded at once; by the memory of one row if left out."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that decode files.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    limit: Annotated[
        int | None, typer.Option(min=1, help="The largest number of rows, balanced over the classes.")
    ] = None,
) -> None:
    """Write the features of any data, computed by a run's encoder, into a file."""
    say_loading(run)
    from kontrast.train import embedding

    with progress_bar("embedding") as progress:
        rows, columns = embedding.embed(
            run,
            data[0] if len(data) == 1 else data,
            to,
            split=split,
            batch_size=batch_size,
            workers=workers,
            device=device,
            limit=limit,
            progress=progress,
        )
    print_path("written", to, f", {rows:,} rows of {columns}")
