"""The tasks of `graf-toy` and `graf-label-configurations`: points without an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kontrast.files import whole_file
from kontrast.theory.free_points import free_points
from kontrast.theory.label_configurations import Minimiser, minimise_all_batches, minimise_configuration

# The authors' two settings, SC beside cross-entropy, and TCL with the temperature of SC.
SETTINGS: dict[str, dict[str, Any]] = {
    "sc": {"loss": "sc", "temperature": 0.3, "steps": 500, "learning_rate": 7.5},
    "ce-l2": {"loss": "ce-l2", "weight_penalty": 0.05, "steps": 500, "learning_rate": 7.5},
    "ce-l2-long": {"loss": "ce-l2", "weight_penalty": 0.005, "steps": 1000, "learning_rate": 10.0},
    "tcl": {"loss": "tcl", "temperature": 0.3, "k1": 5.0, "k2": 1.0, "steps": 1000},
}
CLASSES, EACH, SPACE = 4, 100, 3


def toy(folder: Path, *, setting: str, seed: int) -> dict[str, Any]:
    """Four classes of a hundred points on S²; the whole way is kept for drawing."""
    found = free_points(num_classes=CLASSES, per_class=EACH, dim=SPACE, seed=seed, **SETTINGS[setting])
    arrays = {
        "labels": found.labels.numpy(),
        "steps": found.steps.numpy(),
        "path": found.path.float().numpy(),
        "values": found.values.numpy(),
        "bounds": found.bounds.numpy(),
    }
    if found.weight_path is not None:
        arrays["weight_path"] = found.weight_path.float().numpy()
    with whole_file(folder / "points.npz") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    length, best = found.weight_radius, found.optimal_weight_radius
    return {
        "loss": found.loss,
        "bound": found.bound,
        "excess": found.excess,
        "cosine": found.deviation.cosine,
        "collapse": found.deviation.collapse,
        "weight_radius": length,
        "optimal_weight_radius": best,
        "radius": None if length is None or best is None else abs(length - best),
        **SETTINGS[setting],
    }


def configuration(folder: Path, *, labels: str, seed: int) -> dict[str, Any]:
    """The minimiser of a batch of nine with so many of each of three classes, or of the sum over all batches."""
    if labels == "all batches":
        found: Minimiser = minimise_all_batches(3, per_class=3, batch_size=9, dim=2, seed=seed)
    else:
        found = minimise_configuration([int(count) for count in labels.split("-")], seed=seed)
    with whole_file(folder / "points.npz") as file:
        np.savez_compressed(file, points=found.points.numpy(), labels=found.labels.numpy())
    cosines = found.cosines.nan_to_num(nan=0.0)
    return {
        "value": found.value,
        "gap": found.simplex_gap,
        "slope": found.slope,
        "collapse": found.collapse,
        "cosines": cosines.tolist(),
    }
