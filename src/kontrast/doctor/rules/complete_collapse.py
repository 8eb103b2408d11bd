"""Complete collapse: every image gets the same embedding. The spread, 1 − ‖mean of the unit rows‖², falls to 0.

Problem: spread of a run's embeddings below 0.01 (two images have cosine 0.99 on average), or of features below 0.001.
Warning: embeddings below 0.1, features in a file below 0.01.
Why: `geometry.collapse` calls features below 0.001 collapsed. In 254 finished runs the lowest spread of embeddings is
0.22, except ReSSL with a target as warm as the online network, which collapses in SCE's paper too: 0.04. The output of
an encoder is not centred, so its spread is lower: 0.2 in good runs, less with a large common offset.
Reads: analysis.json (spread); before a run's end its log (uniformity, −4·spread near collapse); features themselves.
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, below
from kontrast.doctor.rules._learned import ignore_few_rows
from kontrast.doctor.rules._setup import advise_more_spread
from kontrast.geometry import collapse

EQUAL = (
    "check that the right layer was taken and that the model was in eval mode: an encoder must not give one row for all"
)
OFFSET = "the rows share a large common part: subtract their mean before comparing them by cosine"


class CompleteCollapse(Rule):
    """Looks at the spread of embeddings and features."""

    patients = ("run", "features")
    title = "complete collapse"
    of_learning = True

    def examine(self, record: Record) -> Finding | None:
        if record.patient == "features":
            with ignore_few_rows():  # a spread needs no more rows than there are
                spread, n = collapse(record.features).spread, len(record.features)
            equal = bool((record.features == record.features[0]).all())
            evidence = f"features: spread {spread:.2e}, " + (f"all {n} rows are equal" if equal else f"{n} rows")
            return self.graded(below(spread, problem=1e-3, warning=0.01), evidence, EQUAL if equal else OFFSET)
        try:
            embeddings, features = (record.measure(where, "spread") for where in ("embeddings", "features"))
        except Missing:
            u = record.last("monitor/uniformity")
            evidence = f"uniformity of the embeddings {u:.3f} (0: all in one point)"
            return self.graded(below(-u, problem=0.04, warning=0.4), evidence, advise_more_spread(record))
        evidence = f"spread of the embeddings {embeddings:.3g}, of the features {features:.3g} (0: all rows equal)"
        grade = "problem" if features < 1e-3 else below(embeddings, problem=0.01, warning=0.1)
        return self.graded(grade, evidence, advise_more_spread(record))
