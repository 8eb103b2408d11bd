"""Complete collapse: every image gets the same embedding. The spread, 1 − ‖mean of the unit rows‖², falls to 0.

Ill: spread of a run's embeddings below 0.01 (two images have cosine 0.99 on average), or of features below 0.001.
Watch: embeddings below 0.1, a file's features below 0.01.
Why: `geometry.collapse` calls features below 0.001 collapsed. Of 254 finished runs the lowest spread of embeddings is
0.22, but for ReSSL with its target as warm as itself, which SCE's paper reports to collapse: 0.04.
An encoder's output is not centred, so its spread is lower: 0.2 in healthy runs, less with a large common offset.
Reads: analysis.json (spread); before a run's end its log (uniformity, −4·spread near collapse); features themselves.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, below
from kontrast.doctor.rules._cures import spreading
from kontrast.doctor.rules._few import ignoring_few
from kontrast.geometry import collapse

EQUAL = (
    "look whether the right layer was taken and the model was in eval mode: what gives one row for all is no encoder"
)
OFFSET = "the rows share a large common part: subtract their mean before comparing them by cosine"


class CompleteCollapse(Rule):
    """Looks at the spread."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features")
    disease: ClassVar[str] = "complete collapse"
    of_learning: ClassVar[bool] = True

    def examine(self, record: Record) -> Finding | None:
        """Of embeddings, and of features."""
        if record.patient == "features":
            with ignoring_few():  # a spread needs no more rows than there are
                spread, n = collapse(record.features).spread, len(record.features)
            equal = bool((record.features == record.features[0]).all())
            seen = f"features: spread {spread:.2e}, " + (f"all {n} rows are equal" if equal else f"{n} rows")
            return self.by(below(spread, ill=1e-3, watch=0.01), seen, EQUAL if equal else OFFSET)
        try:
            embeddings, features = (record.measured(where, "spread") for where in ("embeddings", "features"))
        except Missing:
            u = record.last("monitor/uniformity")
            seen = f"uniformity of the embeddings {u:.3f} (0: all in one point)"
            return self.by(below(-u, ill=0.04, watch=0.4), seen, spreading(record))
        seen = f"spread of the embeddings {embeddings:.3g}, of the features {features:.3g} (0: all rows equal)"
        grade = "ill" if features < 1e-3 else below(embeddings, ill=0.01, watch=0.1)
        return self.by(grade, seen, spreading(record))
