"""Measures of embeddings: features in, numbers out, computed a block at a time.

Rows are normalised inside unless ``normalize=False``. Features may be tensors or NumPy arrays. Scalar measures return
an `Estimate(value, error)` with ``with_error=True``; records fill their ``errors``.

>>> import torch
>>> from kontrast import geometry
>>> features = torch.randn(300, 32, generator=torch.Generator().manual_seed(0))
>>> print(geometry.uniformity(features, with_error=True), "limit", round(geometry.uniformity_limit(32), 4))
-3.7... ± 0.0... limit -3.7518
"""

from kontrast.geometry import bounds
from kontrast.geometry._rows import TooFewSamples
from kontrast.geometry.alignment import alignment
from kontrast.geometry.entropy import penalty_curve, penalty_entropy, relative_penalty
from kontrast.geometry.estimate import Estimate, Record, anchor_mean, jackknife, mean
from kontrast.geometry.gradients import (
    GradientMagnitudes,
    GradientResponse,
    gradient_magnitudes,
    gradient_response,
)
from kontrast.geometry.neural_collapse import NeuralCollapse, neural_collapse
from kontrast.geometry.separation import LocalSeparation, SeparationSummary, local_separation
from kontrast.geometry.simplex import Simplex, angular, deviations, optimum, pairwise_cosines, simplex
from kontrast.geometry.spectrum import Collapse, Spectrum, collapse, spectrum
from kontrast.geometry.summary import Line, summary
from kontrast.geometry.tolerance import tolerance, tolerance_per_class
from kontrast.geometry.uniformity import uniformity, uniformity_limit

__all__ = [
    "Collapse",
    "Estimate",
    "GradientMagnitudes",
    "GradientResponse",
    "Line",
    "LocalSeparation",
    "NeuralCollapse",
    "Record",
    "SeparationSummary",
    "Simplex",
    "Spectrum",
    "TooFewSamples",
    "alignment",
    "anchor_mean",
    "angular",
    "bounds",
    "collapse",
    "deviations",
    "gradient_magnitudes",
    "gradient_response",
    "jackknife",
    "local_separation",
    "mean",
    "neural_collapse",
    "optimum",
    "pairwise_cosines",
    "penalty_curve",
    "penalty_entropy",
    "relative_penalty",
    "simplex",
    "spectrum",
    "summary",
    "tolerance",
    "tolerance_per_class",
    "uniformity",
    "uniformity_limit",
]
