"""``kontrast embed``: a run's encoder over any data, as an array."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from kontrast.cli._console import counted, out

if TYPE_CHECKING:
    from kontrast.data import Split

SPLITS = ("train", "test", "unlabelled")


def embed(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    data: Annotated[str, typer.Argument(help="A data set by name, an image folder, an .npz or .npy file.")],
    to: Annotated[Path, typer.Option("--out", "-o", help="out.npz (features, labels) or out.npy (features).")],
    split: Annotated[str, typer.Option(help="train, test or unlabelled.")] = "train",
    batch_size: Annotated[int, typer.Option(min=1, help="Rows at once.")] = 512,
    workers: Annotated[int, typer.Option(min=0, help="Processes that decode files.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda …")] = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows, classes even.")] = None,
) -> None:
    """Embed data with a trained encoder, normalised as in its training."""
    import json

    import numpy as np

    from kontrast.evaluate import extract
    from kontrast.train import load as load_encoder
    from kontrast.train import pick_device

    if to.suffix not in (".npz", ".npy"):
        raise ValueError(f"{to} ends in {to.suffix or 'nothing'}; expected .npz or .npy")
    if not to.parent.is_dir():
        raise ValueError(f"there is no folder {to.parent} to write {to.name} into")
    encoder = load_encoder(run)
    given = json.loads((run.expanduser() / "model.json").read_text(encoding="utf-8"))["input"]
    rows = _rows(data, split, given)
    rows = rows if limit is None else rows.limited(limit)
    with counted("embedding") as told:
        features = extract(
            encoder,
            rows,
            mean=given["mean"],
            std=given["std"],
            batch_size=batch_size,
            workers=workers,
            device=pick_device(device),
            size=given["shape"][1] if given["kind"] == "image" else None,
            progress=told,
        ).numpy()
    if to.suffix == ".npy":
        np.save(to, features)
    elif rows.labels is None:
        np.savez(to, features=features)
    else:
        np.savez(to, features=features, labels=rows.labels.numpy())
    out.print(f"written: {escape(str(to))}, {features.shape[0]:,} rows of {features.shape[1]}", soft_wrap=True)


def _rows(data: str, split: str, given: dict[str, Any]) -> Split:
    """A split of the data as the encoder takes them: its channels, its size where all images have one, its length."""
    from kontrast.data import load

    image = given["kind"] == "image"
    options = {"channels": given["shape"][0]} if image else {}
    found = load(data, **options)
    have = [name for name in SPLITS if getattr(found, name) is not None]
    if split not in have:
        raise ValueError(f"{data} has no split {split!r}; it has {', '.join(have)}")
    rows: Split = getattr(found, split)
    shape, wanted = rows.inputs.shape, tuple(given["shape"])
    if found.kind != given["kind"] or (not image and shape != wanted):
        what = f"{found.kind}s {'of several sizes' if shape is None else shape}"
        raise ValueError(f"{data} holds {what}; this encoder takes {given['kind']}s {wanted}")
    if image and shape is not None and shape[1:] != wanted[1:]:
        rows = getattr(load(data, size=wanted[1], **options), split)
    return rows
