"""Dimensional collapse: the features use few of their directions. r is the centred effective rank (RankMe).

Problem: learned without labels: r below 0.05·min(D, N−1), or below 2; with labels: r below min(K−1, D, N−1)/2.
Warning: without labels, r below 0.1·min(D, N−1); a file of features without labels, whatever its rank.
Why: at the optimum of a supervised loss K class means span K−1 directions (Graf et al.), so that rank is good there,
and less means that classes share directions. Without labels nothing asks for a low rank (Jing et al.). How a file of
features was learned is unknown: with labels, a rank of K−1 counts as supervised if the neighbours agree with the label
more than half of the way from chance (the largest class) to always.
Reads: features (of a run those of analysis.npz), labels, the recipe's method.
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, below
from kontrast.doctor.rules._learned import ignore_few_rows, neighbour_votes
from kontrast.geometry import collapse, spectrum

FEWEST = 50  # rows, for a rank to mean something
ADVICE = (
    "more or stronger negatives (a larger batch or queue), a higher temperature, stronger views, less weight decay; a "
    "head between encoder and loss (head=tcl-ssl) keeps the collapse out of the encoder"
)


class DimensionalCollapse(Rule):
    """Looks at the effective rank."""

    patients = ("run", "features")
    title = "dimensional collapse"
    of_learning = True

    def examine(self, record: Record) -> Finding | None:
        x = record.features
        n, d = x.shape
        if n < FEWEST:
            raise Missing(f"{n} rows are too few for a rank; {FEWEST} or more would do")
        with ignore_few_rows():  # that the rows are fewer than the directions is said below
            r, possible, dead = spectrum(x, center=True).effective_rank, min(d, n - 1), collapse(x).dead
        evidence = (
            f"about their mean the features have effective rank {r:.1f} of {possible}, {dead} directions are dead"
        )
        evidence += f" ({n} rows have no more than {possible} of the {d})" if n <= d else ""
        classes = self._supervised_classes(record)
        if classes is not None and classes > 1 and (record.patient == "run" or r >= min(classes - 1, possible) / 2):
            directions = min(classes - 1, possible)
            evidence += f"; {classes} classes learned by their labels take {directions}"
            return self.graded("problem" if r < directions / 2 else "ok", evidence, ADVICE)
        grade = "problem" if r < 2 else below(r / possible, problem=0.05, warning=0.1)
        if possible < 4:
            return self.ok(evidence)
        if record.patient == "features" and "labels" not in record.arrays and grade == "problem":
            return self.warning(evidence, f"pass the labels too, if it was learned with them; if not, {ADVICE}")
        return self.graded(grade, evidence, ADVICE)

    def _supervised_classes(self, record: Record) -> int | None:
        """How many classes the features were trained to tell apart; None if that is not what they were trained for."""
        if record.patient == "run":
            if not record.method.needs_labels:
                return None
            return len(record.analysis.class_names or ()) or int(record.labels.max()) + 1
        if "labels" not in record.arrays:
            return None
        votes = neighbour_votes(record.features, record.labels)
        agree = float((votes.argmax(1) == record.labels).double().mean())
        chance = max(record.class_sizes) / len(votes)
        return votes.shape[1] if agree - chance > 0.5 * (1 - chance) else None
