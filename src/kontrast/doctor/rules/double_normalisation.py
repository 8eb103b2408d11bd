"""Double normalisation: values that were normalised before go into a pipeline that normalises them again.

Problem: images in a file that are floats outside 0…1 (normalised already: kontrast subtracts the mean itself); images
whose std is below 0.01 of the range (divided by 255 twice); features whose rows are probabilities (a softmax).
Warning: training vectors of length 1: standardising each feature takes them off the sphere again.
Why: pixels divided twice lie within one grey level, and rounding leaves nothing of them; natural images have a std of
0.15 to 0.35. A softmax leaves cosines between a few directions. Unit rows that a loss or a measure normalises again do
not change, so they are ok.
Reads: model.json (mean, std) or the data, the file that the recipe names; features themselves.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kontrast.data.arrays import ALIASES
from kontrast.doctor.rule import Finding, Record, Rule
from kontrast.files import expanded

SAMPLE = 1000  # rows that are looked at
UNIT = 1e-3  # how far from 1 a length may be: of half precision


class DoubleNormalisation(Rule):
    """Looks at the values."""

    patients = ("run", "features", "recipe")
    title = "normalised twice"

    def examine(self, record: Record) -> Finding | None:
        if record.patient == "features":
            return self._of_features(record.features)
        if (raw := _float_images(record.recipe.data.name)) is not None:
            least, most, mean, std = raw
            if least < -0.01:
                evidence = f"the images are floats from {least:.3g} to {most:.3g}, mean {mean:.2f}, std {std:.2f}"
                advice = "pass the images as they were: uint8 0…255 or floats 0…1; kontrast normalises them itself"
                return self.problem(f"{evidence}: normalised already", advice)
        source = record.data[0] if record.card is None else record.card.input
        kind, means, stds = source.kind, source.mean, source.std
        if kind == "vector":
            return self._of_vectors(record)
        evidence = f"pixels of 0…1 are normalised by mean {_few(means)}, std {_few(stds)}"
        if max(stds) < 0.01:
            advice = "divide by 255 once: uint8 0…255 needs no division at all, floats are to fill 0…1"
            return self.problem(f"{evidence}: divided by 255 twice", advice)
        return self.ok(evidence)

    def _of_features(self, x: Tensor) -> Finding:
        lengths = x.double().norm(dim=1)
        if x.shape[1] > 1 and float(x.min()) >= 0 and bool(((x.double().sum(1) - 1).abs() < UNIT).all()):
            advice = "take the features before the softmax (logits, or the layer below them)"
            return self.problem("every row is non-negative and sums to 1: probabilities", advice)
        if _unit(lengths):
            return self.ok("rows have length 1; normalising them again changes nothing")
        return self.ok(f"rows have lengths {float(lengths.min()):.3g} to {float(lengths.max()):.3g}: not normalised")

    def _of_vectors(self, record: Record) -> Finding:
        split = record.data[1]
        x = split.limited(SAMPLE).inputs.read(torch.arange(min(SAMPLE, len(split))))
        if _unit(x.double().norm(dim=1)):
            advice = "pass the vectors as they were before; or accept that cosines between the inputs are not kept"
            return self.warning("the vectors have length 1, and each feature is standardised once more", advice)
        return self.ok("the vectors are not on a sphere; each feature is standardised once")


def _unit(lengths: Tensor) -> bool:
    return bool(((lengths - 1).abs() < UNIT).all())


def _few(values: list[float] | tuple[float, ...]) -> str:
    return ", ".join(f"{value:.3g}" for value in values[:3])


def _float_images(name: str) -> tuple[float, float, float, float] | None:
    """Least, most, mean and std of the images in an array file, if they are floats."""
    path = expanded(name)
    if path.suffix not in (".npy", ".npz") or not path.is_file():
        return None
    content = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(content, np.ndarray):
        key = next((key for key in content.files if ALIASES.get(key, key) == "x_train"), None)
        content = np.empty(0) if key is None else content[key]
    if content.ndim < 3 or content.dtype.kind != "f" or not content.size:
        return None
    x = np.asarray(content[:SAMPLE], dtype=np.float64)
    return float(x.min()), float(x.max()), float(x.mean()), float(x.std())
