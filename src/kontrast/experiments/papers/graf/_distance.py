r"""How far trained class means are from a regular simplex: what the tables show, and what decides the claims.

S1 (mean off the origin), S2 (lengths differ) and S3 (distances differ) are all shown; each alone is 0 for points that
form no simplex. What decides is `kontrast.geometry.simplex`'s (4), all three together,

    (1)  off = √(S1² + S2² + S3²)

and for "close to the simplex" how far that is above the least that the features' sign and dimension allow, in units
that do not depend on the number of classes:

    (2)  excess = √K (off − least)        least = 0, or 1/√K for features ≥ 0 (an orthogonal frame is their best)

K random directions, or an orthogonal frame, have off ≈ 1/√K; so, of features that can take both signs, an excess of 1
is no structure, and 0 the simplex. `CLOSE` = 1/2, chosen before any run was judged by it, asks for the nearer half.
Features ≥ 0 start with nearly equal class means, off ≈ 1, which is √K − 1 (2.2 for ten classes, 9 for a hundred) above
their best. Behind too few dimensions the least is not known, and there is no excess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.experiments import outcome
from kontrast.experiments.experiment import Measure
from kontrast.files import RUN_AGAIN, read_npz

CLOSE = 0.5  # an excess below it counts as close to the simplex
QUANTILES = 101  # of each kind of cosine that the box plots draw


def simplex_record(folder: Path, of: str = "embeddings") -> Mapping[str, Any]:
    """What the run's analysis has on the simplex: at the head's output (embeddings) or the encoder's (features)."""
    found: Mapping[str, Any] = outcome.result(folder)["geometry"].get("simplex", {}).get(of, {})
    return found


def deviation(folder: Path, of: str = "embeddings") -> float | None:
    """(1)."""
    found = simplex_record(folder, of)
    return math.hypot(found["origin"], found["norm"], found["distance"]) if found else None


def excess(folder: Path, of: str = "embeddings") -> float | None:
    """(2)."""
    found, off = simplex_record(folder, of), deviation(folder, of)
    if off is None or found.get("least") is None:
        return None
    return math.sqrt(found["num_classes"]) * (off - float(found["least"]))


S1 = outcome.simplex("s1", "origin", "S1: class means off the origin, training rows")
S2 = outcome.simplex("s2", "norm", "S2: lengths of class means differ, training rows")
S3 = outcome.simplex("s3", "distance", "S3: distances of class means differ, training rows")
OFF = Measure("off", "√(S1² + S2² + S3²) of class means, training rows; 0 at the simplex", deviation, 3)
EXCESS = Measure("excess", "√K × (that − the least that the features' sign allows)", excess, 2)
BEFORE = Measure(
    "before", "√(S1² + S2² + S3²) at the encoder's output", lambda folder: deviation(folder, "features"), 3
)
WITHIN_CLASS = outcome.simplex("within", "within", "mean cosine of samples to their class mean, training rows")
ACROSS = outcome.simplex("across", "across_means", "mean cosine of class means, training rows")


ARRAYS = ("between_means", "between_weights", "within")  # arrays of analysis.npz


def keep_cosines(folder: Path) -> dict[str, np.ndarray]:
    """Quantiles of the cosines of class means, of weights, and of samples to their mean; and the number of classes."""
    arrays = read_npz(folder / "analysis.npz", RUN_AGAIN, names=ARRAYS)
    levels = np.linspace(0, 1, QUANTILES)
    found: dict[str, np.ndarray] = {
        key: np.quantile(arrays[key].astype(np.float64), levels).astype(np.float32)
        for key in ARRAYS
        if key in arrays and arrays[key].size
    }
    classes = simplex_record(folder).get("num_classes")
    return found if classes is None else {**found, "num_classes": np.array([classes])}
