"""Every lemma, theorem and identity of the papers as a check, and losses minimised over free points.

>>> from kontrast import theory
>>> [outcome.holds for outcome in theory.verify(["gradient-balance"])]
[True]
>>> theory.free_points("sc", num_classes=3, per_class=4, dim=2).deviation.largest < 1e-6
True
"""

from kontrast.theory.check import Check, Outcome, checks, verify
from kontrast.theory.free_points import FreePoints, free_points
from kontrast.theory.label_configurations import (
    LabelConfigurations,
    Minimiser,
    all_batches_loss,
    label_configurations,
    minimise_all_batches,
    minimise_configuration,
)

__all__ = [
    "Check",
    "FreePoints",
    "LabelConfigurations",
    "Minimiser",
    "Outcome",
    "all_batches_loss",
    "checks",
    "free_points",
    "label_configurations",
    "minimise_all_batches",
    "minimise_configuration",
    "verify",
]
