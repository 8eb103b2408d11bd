r"""Signs of label noise: rows whose neighbours agree on another label than theirs.

Of each row the 20 nearest others by cosine vote (leave-one-out; fewer in small classes). Rows are ordered by how many
votes the winning label has: the *clear* are the first fifth, the *clearest* the first tenth, the cores of the classes,
where neighbours are not mixed by nature. Of the n clearest the share d has another label than the one voted for:

    least = d − 2·√(d(1−d)/n)        by two standard errors

Ill: least above 0.11; or, of a file, neighbours are mixed although the features lie in clusters.
Watch: above 0.05; the recipe replaces more than 0.12 of the labels; or neighbours are mixed although the loss has
fitted the training labels.
Why: wrong labels are as frequent in the core of a class as elsewhere, confusion of classes is not: d is nearly the
noise itself, whether labels are redrawn or moved to one other class. Measured on 2,000 rows of each of 42 finished runs
with labels replaced afterwards, `least` is 0.02 at most at no noise, 0.04 to 0.16 at 0.1, 0.12 to 0.22 at 0.2 (moved:
0.11 to 0.20), 0.32 to 0.46 at 0.4. Mixed, and so unknown: the winning share of the clear is less than 0.42 of the way
from where shuffled labels would have it to 1 (24 runs on CIFAR-10, where kNN is right on half: 0.36 to 0.38; at a noise
of 0.4 above 0.46). Clusters: Sarle's (skewness² + 1)/kurtosis of the cosines above 0.7 (two values: 1, uniform: 0.56,
normal: 0.33). A run is judged by its analysed rows, the test split's: labels that are wrong in training alone show here
if the encoder has learned them, and as a gap. Features that have collapsed say nothing.
Reads: features and labels (of a run those of analysis.npz), metrics.jsonl (loss, chance, bound), recipe (data.noise).
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from kontrast.doctor.finding import STATUSES, Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, above
from kontrast.doctor.rules._neighbours import clustered, nearest_others, sampled, votes_of
from kontrast.doctor.rules._standing import standing_of
from kontrast.doctor.rules._words import percent
from kontrast.doctor.rules.complete_collapse import CompleteCollapse
from kontrast.doctor.rules.dimensional_collapse import DimensionalCollapse

FEWEST = 200  # rows
ILL, MIXED, BY_HEART, REPLACED = 0.11, 0.42, 0.9, 0.12
CURE = (
    "look at these rows first (label them again, or leave them out); train without labels, or with early stopping "
    "(data.validation=0.1 train.patience=5), which learns the clean part first"
)
MEANT = "data.noise=0, unless label noise is what is looked at"
ORDER = "look whether the labels are in the order of the rows, and of these rows; if they are, of what the clusters are"


class LabelNoise(Rule):
    """Asks the neighbours."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "features", "recipe")
    disease: ClassVar[str] = "signs of label noise"
    of_learning: ClassVar[bool] = True

    def examine(self, record: Record) -> Finding | None:
        """By the neighbours; labels that the recipe itself replaces are told whatever they say."""
        noise = 0.0 if record.written is None else record.recipe.data.noise
        if noise <= REPLACED:
            return None if record.patient == "recipe" else self._by_neighbours(record)
        told = f"the recipe replaces {percent(noise)} of the training labels (data.noise)"
        if record.patient == "recipe":
            return self.watch(told, MEANT)
        try:
            found = self._by_neighbours(record)
        except Missing as missing:
            return self.watch(f"{told}; {missing}", MEANT)
        grade = min(found.status, "watch", key=STATUSES.index)
        return self.by(grade, f"{told}; {found.evidence}", MEANT)

    def _by_neighbours(self, record: Record) -> Finding:
        if record.patient == "features" and "labels" not in record.arrays:
            raise Missing("labels of the rows")
        if record.patient == "run":
            collapses = CompleteCollapse()(record), DimensionalCollapse()(record)
            if any(found is not None and found.status in ("ill", "watch") for found in collapses):
                raise Missing("features that tell images apart: these have collapsed, or nearly")
        x, y = sampled(record.features, record.labels)
        if len(x) < FEWEST:
            raise Missing(f"{len(x)} rows are too few; {FEWEST} or more would do")
        others = nearest_others(x, int(y.max()) + 1)
        share, label = votes_of(others, y).max(1)
        clear, clearest = (share >= share.quantile(1 - part) for part in (0.2, 0.1))
        shuffled = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
        by_chance = votes_of(others, shuffled).amax(1)
        most, least = float(share[clear].mean()), float(by_chance[by_chance >= by_chance.quantile(0.8)].mean())
        if most - least <= MIXED * (1 - least):
            seen = (
                f"the clearest fifth of the rows have {percent(most)} of their neighbours of one label, with shuffled "
            )
            seen += f"labels it would be {percent(least)}"
            return self._of_mixed(record, seen, x, wrong=float((label != y)[clear].double().mean()))
        n, d = int(clearest.sum()), float((label != y)[clearest].double().mean())
        seen = f"{percent(d)} of the {n:,} rows with the clearest neighbours have another label than these"
        return self.by(above(d - 2 * math.sqrt(d * (1 - d) / n), ill=ILL, watch=0.05), seen, CURE)

    def _of_mixed(self, record: Record, seen: str, x: Tensor, wrong: float) -> Finding:
        """Neighbours that say little: the labels' doing only if the features themselves are clear."""
        if record.patient == "features" and wrong > ILL and clustered(x):
            return self.ill(f"{seen}: the features lie in clusters, and in these the labels are mixed", ORDER)
        if record.patient == "run" and record.method.needs_labels and standing_of(record)[0] > BY_HEART:
            return self.watch(f"the training labels are fitted, but {seen}: nothing general was in them", CURE)
        raise Missing(f"{seen}: the features tell too little of these labels, or the labels are shuffled")
