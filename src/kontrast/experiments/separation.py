"""Local separation: how near an anchor's positive is, and its ten nearest negatives (Wang & Liu, Figure 8).

For a run with a memory bank analysis.npz has ``bank_positive [n]`` and ``bank_nearest [n, 10]``: views of training
rows, through the network in train mode, against the bank, as the paper draws it. For any other it has ``positive`` and
``nearest``: two views of test rows. A ledger keeps histograms over fixed bins, from which the figure is drawn:

    separation         [11, 200] whole numbers: the positive, then the nearest negatives, over bins of 0.01 from −1 to 1
    separation_bank    1 if they are of the memory bank, else 0
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.experiments import outcome
from kontrast.experiments.charts import spread
from kontrast.experiments.experiment import Row
from kontrast.files import RUN_AGAIN, read_npz

EDGES = np.linspace(-1.0, 1.0, 201)
FEW = 12  # runs that are drawn in bins of 0.02; more in bins of 0.04, else 48 of them would be megabytes
NAMES = ("bank_positive", "bank_nearest", "positive", "nearest")


def similarities(folder: Path) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """The cosines of a run: positive ``[n]``, nearest negatives ``[n, k]``, whether they are of the memory bank.

    Returns:
        None for a run whose analysis has neither.
    """
    arrays = read_npz(folder / "analysis.npz", RUN_AGAIN, names=NAMES)
    for before in ("bank_", ""):
        if f"{before}positive" in arrays and f"{before}nearest" in arrays:
            return arrays[f"{before}positive"], arrays[f"{before}nearest"], bool(before)
    return None


def keeps(folder: Path) -> dict[str, np.ndarray]:
    """The histograms of a run, for `kontrast.experiments.experiment.Experiment.keeps`."""
    found = similarities(folder)
    if found is None:
        return {}
    positive, nearest, of_bank = found
    columns = np.concatenate([positive[:, None], nearest], axis=1).astype(np.float64)
    inside = np.clip(columns, EDGES[0], EDGES[-1])  # cosines in float32 exceed 1 by a rounding
    counts = np.stack([np.histogram(column, EDGES)[0] for column in inside.T])
    return {"separation": counts.astype(np.uint16), "separation_bank": np.array([of_bank], np.uint8)}


def gap(folder: Path) -> float | None:
    """The mean similarity of the positive minus that of the nearest negative."""
    found = similarities(folder)
    return None if found is None else float((found[0] - found[1][:, 0]).mean())


def positive(folder: Path) -> float | None:
    """The mean similarity of the positive."""
    found = similarities(folder)
    return None if found is None else float(found[0].mean())


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The records of a chart of the kind ``violin``, of the first seed's runs: a panel a temperature (and data set).

    Keys: the row's axes, ``panel``, ``neighbour`` (pos, n1 … n10), ``similarity`` (the middle of a bin), ``share``.

    >>> kept = {"separation": np.eye(2, 200, 150, dtype=np.uint16)}
    >>> row = Row({"data": "svhn", "temperature": 0.1, "seed": 0}, "run", "done", arrays=kept)
    >>> [(r["panel"], r["neighbour"], round(r["similarity"], 3)) for r in records([row]) if r["share"] == 1.0]
    [('τ = 0.1', 'pos', 0.51), ('τ = 0.1', 'n1', 0.51)]
    """
    several = len({row.at.get("data") for row in rows}) > 1
    drawn = [(row, arrays) for row, arrays in outcome.analyses(rows) if "separation" in arrays]
    merged = 2 if len(drawn) <= FEW else 4
    found = []
    for row, arrays in drawn:
        panel = (f"{row.at['data']}, " if several else "") + f"τ = {row.at['temperature']}"
        for k, counts in enumerate(arrays["separation"]):
            name = "pos" if k == 0 else f"n{k}"
            coarse = counts.astype(np.int64).reshape(-1, merged).sum(1)
            parts = spread(coarse, EDGES[::merged], "similarity")
            found += [{**row.at, "panel": panel, "neighbour": name, **part} for part in parts]
    return found
