"""``kontrast explore``: a page to look at data with an encoder, and lists of what is wrong with them."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from kontrast.cli._arguments import AsJson, Seed
from kontrast.cli._completion import complete_part, complete_run
from kontrast.cli._console import print_err, print_out, print_path, progress_bar, say_loading, table
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.explore import Exploration


def explore(
    encoder: Annotated[
        str,
        typer.Argument(
            help="The folder of a finished run, an encoder's name with --weights (timm/resnet50), or an .npz file of "
            "kontrast embed.",
            autocompletion=complete_run,
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="A data set by name, an image folder, an .npz or .npy file, or one or more image files. May be left "
            "out with a file of features.",
            autocompletion=complete_part("data set"),
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="The weights of an encoder by name: true (of its library), a name of theirs, or a file."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page's file, or a folder.")] = Path("explore"),
    split: Annotated[str | None, typer.Option(help="One split alone: train, test or unlabelled.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=3, help="The largest number of rows, of each split its share.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="Write a faiss index of the features to this file (kontrast[index]).")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Rows that are encoded at once; by the memory of one row if left out."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that decode files.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    seed: Seed = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at data with an encoder: map, search, near-duplicates and leaks, label errors, outliers, overlaps."""
    say_loading(encoder)
    from kontrast import explore as stage
    from kontrast.explore import writing
    from kontrast.files import expanded

    file = writing.check(expanded(out, "--out"))
    with progress_bar("exploring") as bar:
        seen = ""

        def progress(what: str, done: int, of: int) -> None:
            nonlocal seen
            if what != seen:
                print_err(f"{what} …")
                seen = what
            bar(what, done, of)

        found = stage.explore(
            encoder,
            None if not data else data[0] if len(data) == 1 else data,
            file,
            pretrained=True if weights == "true" else weights,
            split=split,
            limit=limit,
            index=index,
            batch_size=batch_size,
            workers=workers,
            device=device,
            seed=seed,
            progress=progress,
        )
    if as_json:
        print(dump({**found.summary(), "page": str(file)}))
    else:
        print_out(_table(found))
        print_path("written", file, f", and its lists beside it: {file.stem}.*")
        print_path("index", index)
    if open_page:
        webbrowser.open(file.resolve().as_uri())


def _table(found: Exploration) -> Table:
    n = len(found.catalogue)
    lines = table("found", "number", "", right=("number",), title=f"{found.catalogue.title}: {n:,} rows")
    copies = sum(len(group.rows) for group in found.groups)
    lines.add_row("near-duplicates", f"{len(found.groups):,}", f"groups, {copies:,} rows")
    lines.add_row("leaks", f"{found.leaks:,}", "of these groups have test rows and others")
    if found.errors is not None:
        lines.add_row(
            "label errors", f"{len(found.errors.rows):,}", f"likely, about {found.errors.expected:.0f} of them wrong"
        )
        lines.add_row("overlaps", f"{len(found.overlapping):,}", "pairs of classes")
    lines.add_row("outliers", f"{len(found.outliers.rows):,}", "far from all other rows")
    return lines
