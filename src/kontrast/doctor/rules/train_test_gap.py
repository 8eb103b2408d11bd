r"""Train/test gap: classes are much tighter in the training rows than in the test rows.

c = mean cosine of a feature to its class mean, plain rows in eval mode, of training rows and of test rows:

    gap = (1 − c_test)/(1 − c_train)

Problem: gap above 1.35.
Warning: above 1.12.
Why: both are measured alike, so an encoder that treats new images like the training images has 1: 152 runs with views
have 0.98 to 1.05. Runs of Graf et al.'s losses that fit every training label without augmentation, and are right on 80
% of the test rows, have 1.4 to 19; the 45 with random labels 1.6 to 27.
Reads: analysis.json (simplex of the training rows' features, geometry of the test rows').
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, above
from kontrast.runs import Geometry

ADVICE = (
    "stronger views (augment=strong), more images, early stopping (data.validation=0.1 train.patience=5), more weight "
    "decay, a smaller encoder; check that the test rows come from the same source"
)
TIGHT = 1e-6  # float32 does not resolve less


class TrainTestGap(Rule):
    """Compares the classes in training and test rows."""

    patients = ("run", "features")
    title = "train/test gap"

    def examine(self, record: Record) -> Finding | None:
        if record.patient == "features":
            raise Missing("a file of features has no training and test rows to compare; `kontrast evaluate` takes both")
        geometry = record.analysis.geometry or Geometry()
        if geometry.protocol.split != "test":
            raise Missing("analysis.json has no test rows: the data have no test split, or the run has not ended")
        train = geometry.simplex.get("features", {}).get("within")
        if not isinstance(train, int | float):
            raise Missing("analysis.json has no class means of the training rows: they have no labels")
        test = record.measure("features", "cosine to the class mean")
        gap = (1 - test + TIGHT) / (1 - train + TIGHT)
        evidence = f"cosine to the class mean {train:.3f} in training rows, {test:.3f} in test rows: gap {gap:.2f}"
        return self.graded(above(gap, problem=1.35, warning=1.12), evidence, ADVICE)
