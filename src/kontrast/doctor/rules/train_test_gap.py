r"""Train/test gap: classes are much tighter in the training rows than in the test rows.

c = mean cosine of a feature to its class mean, plain rows in eval mode, of training rows and of test rows:

    gap = (1 − c_test)/(1 − c_train)

Ill: gap above 1.35.
Watch: above 1.12.
Why: both are measured alike, so an encoder that treats new images as those it knows has 1: 152 runs with views have
0.98 to 1.05. Those of Graf et al.'s that, without augmentation, fit every training label and are right on 80 % of the
test rows have 1.4 to 19; the 45 with random labels 1.6 to 27.
Reads: analysis.json (simplex of the training rows' features, geometry of the test rows').
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, above

CURE = (
    "stronger views (augment=strong), more images, early stopping (data.validation=0.1 train.patience=5), more weight "
    "decay, a smaller encoder; look whether the test rows come from elsewhere"
)
TIGHT = 1e-6  # no closer to 1 is told apart in float32


class TrainTestGap(Rule):
    """Compares the two."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features")
    disease: ClassVar[str] = "train/test gap"

    def examine(self, record: Record) -> Finding | None:
        """Of a run with labels and a test split."""
        if record.patient == "features":
            raise Missing("a file of features has no training and test rows to compare; `kontrast evaluate` takes both")
        geometry = record.analysis.get("geometry", {})
        if geometry.get("protocol", {}).get("split") != "test":
            raise Missing("analysis.json has no test rows: the data have no test split, or the run has not ended")
        train = geometry.get("simplex", {}).get("features", {}).get("within")
        if train is None:
            raise Missing("analysis.json has no class means of the training rows: they have no labels")
        test = record.measured("features", "cosine to the class mean")
        gap = (1 - test + TIGHT) / (1 - float(train) + TIGHT)
        seen = f"cosine to the class mean {float(train):.3f} in training rows, {test:.3f} in test rows: gap {gap:.2f}"
        return self.by(above(gap, ill=1.35, watch=1.12), seen, CURE)
