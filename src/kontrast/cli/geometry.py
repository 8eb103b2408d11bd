"""``kontrast geometry``: the geometry of embeddings."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

import kontrast
from kontrast.cli._arguments import Features, Labels, Seed
from kontrast.cli._console import number, print_out, print_path, progress_bar, say_loading, table
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.geometry import Line


def geometry(
    features: Features,
    labels: Labels = None,
    weights: Annotated[Path | None, typer.Option(help="A classifier's weights.npy [K, D].")] = None,
    temperature: Annotated[
        float, typer.Option(help="The temperature of the loss, for penalty entropy and gradient response.")
    ] = 0.1,
    k1: Annotated[float, typer.Option(help="TCL's k1, for the gradient response.")] = 5000.0,
    k2: Annotated[float, typer.Option(help="TCL's k2, for the gradient response.")] = 1.0,
    t: Annotated[float, typer.Option(help="The scale t of the uniformity.")] = 2.0,
    anchors: Annotated[int, typer.Option(min=1, help="Rows sampled for measures that each anchor has.")] = 5000,
    seed: Seed = 0,
    raw: Annotated[bool, typer.Option("--raw", help="Do not normalise the rows to length 1.")] = False,
    write: Annotated[
        Path | None, typer.Option(help="The JSON file to write; FEATURES.geometry.json if left out.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the JSON instead of a table, and write no file.")
    ] = False,
) -> None:
    """Measure embeddings: uniformity, rank, entropy; with labels also tolerance, simplex, collapse and gradients."""
    say_loading(features)
    from kontrast.cli._files import load_array, load_features
    from kontrast.geometry import TooFewSamples, summary

    x, y = load_features(features, labels)
    w = None if weights is None else load_array(weights, "weights")
    target = write or (features / "geometry.json" if features.is_dir() else Path(f"{features}.geometry.json"))
    if not as_json and not target.parent.is_dir():
        raise ValueError(f"--write={target}: must be in a folder that exists. Create {target.parent} first")
    with progress_bar("measuring", each_part=True) as progress, warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always", TooFewSamples)
        lines = summary(
            x,
            y,
            w,
            temperature=temperature,
            k1=k1,
            k2=k2,
            t=t,
            anchors=anchors,
            seed=seed,
            normalize=not raw,
            progress=progress,
        )
    notes = list(dict.fromkeys(str(warning.message) for warning in messages))
    sample = min(anchors, len(x))
    record = {
        "features": str(features),
        "labels": None if y is None else str(labels or features),
        "rows": len(x),
        "dim": x.shape[1],
        "weights": None if weights is None else str(weights),
        "normalised": not raw,
        "t": t,
        "temperature": temperature,
        "k1": k1,
        "k2": k2,
        "anchors": sample,
        "seed": seed,
        "kontrast": kontrast.__version__,
        "notes": notes,
        "measures": [dataclasses.asdict(line) for line in lines],
    }
    if as_json:
        print(dump(record))
        return
    print_out(_geometry_table(lines, f"{features.name}: {len(x):,} rows of {x.shape[1]}"))
    if sample < len(x):
        print_out(f"Entropy, neighbours and gradient responses: {sample:,} rows sampled (seed {seed}).")
    for note in notes:
        print_out(f"note: {note}")
    target.write_text(dump(record) + "\n")
    print_path("written", target)


def _geometry_table(lines: Sequence[Line], title: str) -> Table:
    right = ("value", "± error", "theory")
    measures = table("measure", *right, "reached when", right=right, title=title)
    for line in lines:
        numbers = (line.value, line.error, line.theory)
        measures.add_row(line.name, *("–" if x is None else number(x) for x in numbers), line.meaning)
    return measures
