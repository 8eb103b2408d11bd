r"""Signs of label noise: rows whose neighbours agree on another label, and hardly one has theirs.

Of each row the 20 nearest others by cosine are asked (leave-one-out; fewer in small classes). A row is *clear* if half
of them or more have one label; it *disagrees* if that is not its own, and a tenth at most have its own.

Ill: of the clear rows more than 0.2 disagree.
Watch: more than 0.12; or hardly a row is clear although the loss has fitted the training labels.
Why: classes that are easily confused have mixed neighbours, wrong labels have none of their own. Measured on features
of 6 finished runs with labels replaced afterwards: 0.05 to 0.09 at no noise, 0.14 to 0.18 at 0.1, 0.23 to 0.28 at 0.2,
0.43 to 0.46 at 0.4: it counts nearly the noise itself. If fewer than 0.3 of the rows are clear, nothing is said, unless
the labels are learned by heart (0.9 of the way to the loss's bound). A run is judged by its analysed rows, which are
the test split's: labels that are wrong in training alone show here if the encoder has learned them, and as a gap.
Reads: features and labels (of a run those of analysis.npz), metrics.jsonl (loss, chance, bound).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, above
from kontrast.doctor.rules._neighbours import sampled, votes_of_others
from kontrast.doctor.rules._standing import standing_of

FEWEST = 200  # rows
CLEAR, OWN, ENOUGH, BY_HEART = 0.5, 0.1, 0.3, 0.9
CURE = (
    "look at these rows first (label them again, or leave them out); train without labels, or with early stopping "
    "(data.validation=0.1 train.patience=5), which learns the clean part first"
)


class LabelNoise(Rule):
    """Asks the neighbours."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features")
    disease: ClassVar[str] = "signs of label noise"

    def examine(self, record: Record) -> Finding | None:
        """Of the rows with labels."""
        if record.patient == "features" and "labels" not in record.arrays:
            raise Missing("labels of the rows")
        x, y = sampled(record.features, record.labels)
        if len(x) < FEWEST:
            raise Missing(f"{len(x)} rows are too few; {FEWEST} or more would do")
        votes = votes_of_others(x, y)
        most, label = votes.max(1)
        clear = most >= CLEAR
        share = float(clear.double().mean())
        if share < ENOUGH:
            seen = f"only {100 * share:.0f} % of the rows have neighbours half of which agree"
            if record.patient == "run" and record.method.needs_labels and standing_of(record)[0] > BY_HEART:
                return self.watch(f"the training labels are fitted, but {seen}: nothing general was in them", CURE)
            raise Missing(f"clear neighbours: {seen}")
        own = votes[range(len(y)), y]
        wrong = clear & (label != y) & (own <= OWN)
        found = float(wrong.double().sum() / clear.double().sum())
        seen = f"{100 * found:.0f} % of {int(clear.sum()):,} rows with clear neighbours have none of their label near"
        noise = 0.0 if record.written is None else record.recipe.data.noise
        seen += f"; the recipe replaces {100 * noise:g} % of the training labels" if noise else ""
        return self.by(above(found, ill=0.2, watch=0.12), seen, CURE)
