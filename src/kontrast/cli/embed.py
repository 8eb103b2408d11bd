"""``kontrast embed``: the features of any data, by any encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kontrast.cli._completion import complete_part
from kontrast.cli._console import print_path, progress_bar
from kontrast.cli._encoder import AnyEncoder, Size, Weights, open_encoder


def embed(
    encoder: AnyEncoder,
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
    weights: Weights = None,
    size: Size = None,
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
    """Write the features of any data, computed by a run's encoder or any other, into a file."""
    source = open_encoder(encoder, weights, size)
    from kontrast.train import embedding

    with progress_bar("embedding") as progress:
        rows, columns = embedding.embed(
            source,
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
