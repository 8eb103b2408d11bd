r"""Signs of label noise: rows whose neighbours agree on another label than theirs.

For each row the 20 nearest others by cosine vote (leave-one-out; fewer in small classes). Rows are sorted by the share
of votes that the winning label has. The *clear* rows are the first fifth, the *clearest* the first tenth: the cores of
the classes, where neighbours do not mix. Of the n clearest the share d has another label than the one voted for:

    least = d − 2·√(d(1−d)/n)        by two standard errors

Problem: least above 0.11; or, in a file, neighbours are mixed although the features lie in clusters.
Warning: above 0.05; the recipe replaces more than 0.12 of the labels; or neighbours are mixed although the loss has
fitted the training labels.
Why: wrong labels are as frequent in the core of a class as elsewhere, confusion of classes is not: d is nearly the
noise itself, whether labels are redrawn or moved to one other class. Measured on 2,000 rows of each of 42 finished runs
with labels replaced afterwards, `least` is at most 0.02 without noise, 0.04 to 0.16 at 0.1, 0.12 to 0.22 at 0.2 (moved:
0.11 to 0.20), 0.32 to 0.46 at 0.4. Neighbours are mixed, and the finding unknown, if the winning share of the clear
rows is less than 0.42 of the way from its value with shuffled labels to 1 (24 runs on CIFAR-10, where kNN is right for
half: 0.36 to 0.38; at a noise of 0.4 above 0.46). Clusters: Sarle's (skewness² + 1)/kurtosis of the cosines above 0.7
(two values: 1, uniform: 0.56, normal: 0.33). A run is judged by its analysed rows, those of the test split: labels that
are wrong in the training rows alone show here if the encoder has learned them, and as a train/test gap. Collapsed
features say nothing.
Reads: features and labels (of a run those of analysis.npz), metrics.jsonl (loss, chance, bound), recipe (data.noise).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kontrast.doctor.rule import Finding, Missing, Record, Rule, above, percent
from kontrast.doctor.rules._learned import draw_rows, is_clustered, label_shares, nearest_others, standing_of
from kontrast.doctor.rules.complete_collapse import CompleteCollapse
from kontrast.doctor.rules.dimensional_collapse import DimensionalCollapse
from kontrast.runs.schemas import STATUSES

FEWEST = 200  # rows
LEAST, MIXED, FITTED, REPLACED = 0.11, 0.42, 0.9, 0.12
ADVICE = (
    "check these rows first (label them again, or leave them out); train without labels, or with early stopping "
    "(data.validation=0.1 train.patience=5), which learns the clean part first"
)
INTENDED = "data.noise=0, unless label noise is what you study"
ORDER = "check that the labels are in the order of the rows and belong to them; if so, find out what the clusters are"


class LabelNoise(Rule):
    """Compares each label with those of the nearest neighbours."""

    patients = ("run", "features", "recipe")
    title = "signs of label noise"
    of_learning = True

    def examine(self, record: Record) -> Finding | None:
        noise = 0.0 if record.resolved is None else record.recipe.data.noise
        if noise <= REPLACED:
            return None if record.patient == "recipe" else self._by_neighbours(record)
        replaced = f"the recipe replaces {percent(noise)} of the training labels (data.noise)"
        if record.patient == "recipe":
            return self.warning(replaced, INTENDED)
        try:
            finding = self._by_neighbours(record)
        except Missing as missing:
            return self.warning(f"{replaced}; {missing}", INTENDED)
        grade = min(finding.status, "warning", key=STATUSES.index)
        return self.graded(grade, f"{replaced}; {finding.evidence}", INTENDED)

    def _by_neighbours(self, record: Record) -> Finding:
        if record.patient == "features" and "labels" not in record.arrays:
            raise Missing("there are no labels")
        if record.patient == "run":
            collapses = CompleteCollapse()(record), DimensionalCollapse()(record)
            if any(finding is not None and finding.status in ("problem", "warning") for finding in collapses):
                raise Missing("the features have collapsed, or nearly")
        x, y = draw_rows(record.features, record.labels)
        if len(x) < FEWEST:
            raise Missing(f"{len(x)} rows are too few; {FEWEST} or more would do")
        others = nearest_others(x, int(y.max()) + 1)
        share, label = label_shares(others, y).max(1)
        clear, clearest = (share >= share.quantile(1 - part) for part in (0.2, 0.1))
        shuffled = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
        by_chance = label_shares(others, shuffled).amax(1)
        most, least = float(share[clear].mean()), float(by_chance[by_chance >= by_chance.quantile(0.8)].mean())
        if most - least <= MIXED * (1 - least):
            evidence = (
                f"in the clearest fifth of the rows {percent(most)} of the neighbours have one label, with shuffled "
                f"labels it would be {percent(least)}"
            )
            return self._of_mixed(record, evidence, x, disagreement=float((label != y)[clear].double().mean()))
        n, d = int(clearest.sum()), float((label != y)[clearest].double().mean())
        evidence = f"{percent(d)} of the {n:,} rows with the clearest neighbours have another label than these"
        return self.graded(above(d - 2 * math.sqrt(d * (1 - d) / n), problem=LEAST, warning=0.05), evidence, ADVICE)

    def _of_mixed(self, record: Record, evidence: str, x: Tensor, disagreement: float) -> Finding:
        """Mixed neighbours are the fault of the labels only if the features themselves are clear."""
        if record.patient == "features" and disagreement > LEAST and is_clustered(x):
            return self.problem(f"{evidence}: the features lie in clusters, and in these the labels are mixed", ORDER)
        if record.patient == "run" and record.method.needs_labels and standing_of(record)[0] > FITTED:
            return self.warning(f"the training labels are fitted, but {evidence}: nothing general was in them", ADVICE)
        raise Missing(f"{evidence}: the features tell too little of these labels, or the labels are shuffled")
