"""Dimensional collapse: the features use few of their directions. r is the centred effective rank (RankMe).

Ill: learned without labels: r below 0.05·min(D, N−1), or below 2; with labels: r below min(K−1, D, N−1)/2.
Watch: without labels, r below 0.1·min(D, N−1); a file of features without labels, whatever its rank.
Why: K class means at the optimum of a supervised loss span K−1 directions (Graf et al.), so such a rank is health there
and less means that classes share directions. Without labels nothing asks for it (Jing et al.). Of a file of features
nobody knows how it was learned: with labels, a rank of K−1 is taken for supervised if the neighbours agree with the
label more than half of the way from chance (the largest class) to always.
Reads: features (of a run those of analysis.npz), labels, the recipe's method.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, below
from kontrast.doctor.rules._few import ignoring_few
from kontrast.doctor.rules._neighbours import votes_of_others
from kontrast.geometry import collapse, spectrum

FEWEST = 50  # rows, for a rank to mean something
CURE = (
    "more or stronger negatives (a larger batch or queue), a higher temperature, stronger views, less weight decay; a "
    "head between encoder and loss (head=tcl-ssl) keeps the collapse out of the encoder"
)


class DimensionalCollapse(Rule):
    """Looks at the rank."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features")
    disease: ClassVar[str] = "dimensional collapse"
    of_learning: ClassVar[bool] = True

    def examine(self, record: Record) -> Finding | None:
        """Of the features."""
        x = record.features
        n, d = x.shape
        if n < FEWEST:
            raise Missing(f"{n} rows are too few for a rank; {FEWEST} or more would do")
        with ignoring_few():  # that the rows are fewer than the directions is said below
            r, possible, dead = spectrum(x, center=True).effective_rank, min(d, n - 1), collapse(x).dead
        seen = f"about their mean the features have effective rank {r:.1f} of {possible}, {dead} directions are dead"
        seen += f" ({n} rows have no more than {possible} of the {d})" if n <= d else ""
        classes = self._supervised_classes(record)
        if classes is not None and classes > 1 and (record.patient == "run" or r >= min(classes - 1, possible) / 2):
            taken = min(classes - 1, possible)
            seen += f"; {classes} classes learned by their labels take {taken}"
            return self.by("ill" if r < taken / 2 else "healthy", seen, CURE)
        grade = "ill" if r < 2 else below(r / possible, ill=0.05, watch=0.1)
        if possible < 4:
            return self.healthy(seen)
        if record.patient == "features" and "labels" not in record.arrays and grade == "ill":
            return self.watch(seen, f"pass the labels too, if it was learned with them; if not, {CURE}")
        return self.by(grade, seen, CURE)

    def _supervised_classes(self, record: Record) -> int | None:
        """How many classes the features were trained to tell apart; None if that is not what they were trained for."""
        if record.patient == "run":
            if not record.method.needs_labels:
                return None
            return len(record.analysis.get("class_names") or ()) or int(record.labels.max()) + 1
        if "labels" not in record.arrays:
            return None
        votes = votes_of_others(record.features, record.labels)
        agree = float((votes.argmax(1) == record.labels).double().mean())
        chance = max(record.class_sizes) / len(votes)
        return votes.shape[1] if agree - chance > 0.5 * (1 - chance) else None
