"""``kontrast embed``: a run's encoder over any data, as a file of features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kontrast.cli._completion import complete_part, complete_run
from kontrast.cli._console import out, printable, progress_bar, say_loading


def embed(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.", autocompletion=complete_run)],
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
        int | None, typer.Option(min=1, help="Rows at once; chosen by the memory of one row if left out.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that decode files.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    limit: Annotated[
        int | None, typer.Option(min=1, help="The largest number of rows, balanced over the classes.")
    ] = None,
) -> None:
    """Embed data with a trained encoder, normalised as in its training."""
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
    out.print(f"written: {printable(to)}, {rows:,} rows of {columns}", soft_wrap=True)
