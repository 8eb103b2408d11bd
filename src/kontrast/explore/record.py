"""Everything that is found in a catalogue: what the page draws, what the files hold.

`collect` measures, `Exploration` holds what came out as tensors, and as plain tables for people and programs: a list of
dictionaries for each list, with the names of files and classes in place of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from kontrast.evaluate.neighbours import nearest_others
from kontrast.explore.catalogue import NO_LABEL, Catalogue
from kontrast.explore.duplicates import Group, duplicates
from kontrast.explore.label_errors import LabelErrors, label_errors
from kontrast.explore.outliers import Outliers, outliers
from kontrast.explore.overlaps import Overlap, overlaps
from kontrast.explore.projection import project, trustworthiness

NEIGHBOURS = 24  # of each row: what a search by example shows
Rows = list[dict[str, Any]]
Progress = Callable[[str, int, int], object]


@dataclass(frozen=True, eq=False)
class Exploration:
    """What was found.

    Args:
        catalogue: The rows.
        cosines: Of the nearest other rows, by cosine of the features, float32 ``[N, k]``.
        neighbours: These rows, int64 ``[N, k]``.
        places: On the map, float32 ``[N, 2]``.
        trust: The map's trustworthiness (`kontrast.explore.projection`).
        groups: Near-duplicates, leaks first.
        outliers: How far each row is from the others.
        errors: What classifiers think of the labels; None without labels.
        overlapping: Pairs of classes that overlap.
    """

    catalogue: Catalogue
    cosines: Tensor
    neighbours: Tensor
    places: Tensor
    trust: float
    groups: Sequence[Group]
    outliers: Outliers
    errors: LabelErrors | None
    overlapping: Sequence[Overlap]

    @cached_property
    def group_of(self) -> list[int]:
        """The number of each row's group of near-duplicates from 1 on; 0 for none."""
        numbers = [0] * len(self.catalogue)
        for number, group in enumerate(self.groups, start=1):
            for row in group.rows:
                numbers[row] = number
        return numbers

    @property
    def leaks(self) -> int:
        """How many groups have rows of the test split and of another one."""
        return sum(group.leak for group in self.groups)

    @cached_property
    def near_duplicates(self) -> Rows:
        """A line for each row of each group, leaks first."""
        return [
            {
                "group": number,
                "leak": "yes" if group.leak else "no",
                "labels_differ": "yes" if group.differ else "no",
                "similarity": round(group.similarity, 4),
                **self._row(row),
            }
            for number, group in enumerate(self.groups, start=1)
            for row in group.rows
        ]

    @cached_property
    def label_errors(self) -> Rows:
        """The likely label errors, the most probable first."""
        if self.errors is None:
            return []
        return [
            {
                **self._row(row),
                "probability": round(float(self.errors.probability[row]), 4),
                "suggested": self.catalogue.class_name(int(self.errors.suggested[row])),
                "suggested_probability": round(float(self.errors.classes[row, self.errors.suggested[row]]), 4),
            }
            for row in self.errors.rows
        ]

    @cached_property
    def far_rows(self) -> Rows:
        """The outliers, the farthest first."""
        return [{**self._row(row), "score": round(float(self.outliers.score[row]), 3)} for row in self.outliers.rows]

    @cached_property
    def overlaps(self) -> Rows:
        """The pairs of classes that overlap, the most first."""
        return [
            {
                "class": self.catalogue.class_name(pair.classes[0]),
                "other_class": self.catalogue.class_name(pair.classes[1]),
                "overlap": round(pair.overlap, 4),
                "mixed_neighbours": round(pair.mixed, 4),
                "confused": pair.confused,
                "rows": pair.count,
            }
            for pair in self.overlapping
        ]

    @cached_property
    def images(self) -> Rows:
        """A line for each row: where it is on the map, and what was found."""
        labelled = self.catalogue.num_classes > 0
        rows: Rows = []
        for row, (x, y) in enumerate(self.places.tolist()):
            line = self._row(row) | {
                "x": round(x, 4),
                "y": round(y, 4),
                "nearest": self.catalogue.name(int(self.neighbours[row, 0])),
                "cosine": round(float(self.cosines[row, 0]), 4),
                "duplicate_group": self.group_of[row] or None,
                "outlier_score": round(float(self.outliers.score[row]), 3),
            }
            if labelled:
                errors = self.errors
                line["label_error"] = None if errors is None else round(float(errors.probability[row]), 4)
                line["suggested"] = (
                    None if errors is None else self.catalogue.class_name(int(errors.suggested[row])) or None
                )
            rows.append(line)
        return rows

    @property
    def tables(self) -> dict[str, Rows]:
        """The lists by the names of their files, those that can have lines."""
        tables = {"duplicates": self.near_duplicates, "outliers": self.far_rows}
        if self.catalogue.num_classes:
            tables |= {"label-errors": self.label_errors, "overlaps": self.overlaps}
        return tables

    def summary(self) -> dict[str, Any]:
        """The numbers, as plain values."""
        catalogue = self.catalogue
        return {
            "data": catalogue.title,
            "encoder": catalogue.encoder,
            "rows": len(catalogue),
            "splits": catalogue.counts,
            "features": catalogue.features.shape[1],
            "classes": catalogue.num_classes,
            "duplicate_groups": len(self.groups),
            "duplicate_rows": sum(len(group.rows) for group in self.groups),
            "leaks": self.leaks,
            "outliers": len(self.outliers.rows),
            "label_errors": None if self.errors is None else len(self.errors.rows),
            "label_errors_expected": None if self.errors is None else round(self.errors.expected, 1),
            "judged_labels": 0 if self.errors is None else self.errors.judged,
            "overlaps": len(self.overlapping) if self.errors is not None else None,
            "trustworthiness": round(self.trust, 4),
        }

    def _row(self, row: int) -> dict[str, Any]:
        line: dict[str, Any] = {"name": self.catalogue.name(row), "split": self.catalogue.splits[row], "row": row}
        if self.catalogue.num_classes:
            line["label"] = self.catalogue.class_name(self.catalogue.label(row))
        return line


def collect(catalogue: Catalogue, *, seed: int = 0, progress: Progress | None = None) -> Exploration:
    """Find neighbours, near-duplicates, outliers, likely label errors and classes that overlap, and draw the map.

    Args:
        catalogue: The rows.
        seed: Of the folds in which labels are judged.
        progress: Called with ``(what, done, of)``.

    Returns:
        The record.

    >>> x = torch.randn(90, 8, generator=torch.Generator().manual_seed(0)) + 4 * torch.eye(3, 8).repeat(30, 1)
    >>> x[4] = x[1]
    >>> y = torch.arange(90) % 3
    >>> y[30] = 1
    >>> found = collect(Catalogue(x, ["train"] * 60 + ["test"] * 30, labels=y))
    >>> [row["name"] for row in found.near_duplicates], found.leaks, found.label_errors[0]["name"]
    (['train 1', 'train 4'], 0, 'train 30')
    """

    def part(what: str) -> Callable[[int, int], object] | None:
        return None if progress is None else lambda done, of: progress(what, done, of)

    def begin(what: str) -> None:
        if progress is not None:
            progress(what, 0, 1)

    n = len(catalogue)
    begin("neighbours")
    features = catalogue.features.float()
    cosines, neighbours = nearest_others(features, min(NEIGHBOURS, n - 1))
    begin("near-duplicates")
    small = catalogue.thumbnails
    labels = torch.full((n,), NO_LABEL) if catalogue.labels is None else catalogue.labels
    groups = duplicates(
        features,
        neighbours,
        signatures=None if small is None else small.signatures,
        shapes=None if small is None else small.shapes,
        splits=catalogue.splits,
        labels=labels,
    )
    group_of = torch.full((n,), -1)
    for number, group in enumerate(groups):
        group_of[list(group.rows)] = number
    far = outliers(cosines, neighbours, group_of)
    errors, pairs = None, []
    if catalogue.num_classes:
        errors = label_errors(features, labels, catalogue.num_classes, group_of, seed=seed, progress=part("labels"))
        if errors is not None:
            pairs = overlaps(labels, errors.given, neighbours)
    begin("map")
    places = project(features, neighbours, progress=part("map"))
    return Exploration(
        catalogue=catalogue,
        cosines=cosines,
        neighbours=neighbours,
        places=places,
        trust=trustworthiness(features, places),
        groups=groups,
        outliers=far,
        errors=errors,
        overlapping=pairs,
    )
