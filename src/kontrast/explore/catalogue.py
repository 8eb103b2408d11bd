"""What is explored: the rows of all splits together, with what is known of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from kontrast.explore.thumbnails import Thumbnails
from kontrast.registry import one_line

FEWEST = 3  # rows that there is anything to say about
NO_LABEL = -1


@dataclass(frozen=True, eq=False)
class Catalogue:
    """N rows with their features.

    Args:
        features: Float ``[N, D]``.
        splits: The split of each row: train, test, unlabelled.
        names: The name of each row, its file below the data's folder; ``train 17`` without files.
        labels: int64 ``[N]``, −1 for none; None if no row has one.
        class_names: The names of the classes 0, 1, 2 …
        thumbnails: Small pictures of the rows; None for vectors.
        title: What the data are called.
        encoder: What the features are from.

    Raises:
        ValueError: The lengths differ, features are not finite, or there are fewer than three rows.

    >>> import torch
    >>> Catalogue(torch.eye(3), ["train", "train", "test"], labels=torch.tensor([0, 1, -1]))
    Catalogue(3 rows of 3: 2 train, 1 test; 2 classes)
    """

    features: Tensor
    splits: Sequence[str]
    names: Sequence[str] | None = None
    labels: Tensor | None = None
    class_names: Sequence[str] | None = None
    thumbnails: Thumbnails | None = None
    title: str = "data"
    encoder: str = "features"

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or not self.features.is_floating_point():
            raise ValueError(f"features of {self.features.dtype} {list(self.features.shape)}: must be floats [N, D]")
        if len(self.features) < FEWEST:
            raise ValueError(f"{len(self.features)} rows: must be {FEWEST} or more to find neighbours among them")
        if not bool(self.features.isfinite().all()):
            row = int((~self.features.isfinite().all(1)).nonzero()[0])
            raise ValueError(f"row {row} of the features is not finite: embed the data again, or leave the row out")
        for name in ("splits", "names", "labels", "thumbnails"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.features):
                raise ValueError(
                    f"{name} has {len(value)} entries: must have one for each of {len(self.features)} rows"
                )
        if self.labels is not None and self.class_names is not None and len(self.class_names) <= int(self.labels.max()):
            raise ValueError(f"class_names has {len(self.class_names)}, and a label is {int(self.labels.max())}")

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {split}" for split, count in self.counts.items())
        classes = f"{self.num_classes} classes" if self.num_classes else "no labels"
        return f"Catalogue({len(self):,} rows of {self.features.shape[1]:,}: {counts}; {classes})"

    @cached_property
    def counts(self) -> dict[str, int]:
        """The rows of each split, in the order in which they come."""
        return dict(Counter(self.splits))

    @property
    def num_classes(self) -> int:
        """The number of classes; 0 without labels."""
        if self.labels is None or int(self.labels.max()) < 0:
            return 0
        return max(int(self.labels.max()) + 1, len(self.class_names or ()))

    def name(self, row: int) -> str:
        """The row's file, or its split and number there."""
        if self.names is not None:
            return readable(self.names[row])
        split = self.splits[row]
        return f"{split} {row - self._first[split]}"

    def class_name(self, label: int) -> str:
        """The name of a class, its number if it has none; empty for no label."""
        if label == NO_LABEL:
            return ""
        return str(label) if self.class_names is None else readable(self.class_names[label])

    def label(self, row: int) -> int:
        """The row's label; −1 for none."""
        return NO_LABEL if self.labels is None else int(self.labels[row])

    @cached_property
    def _first(self) -> dict[str, int]:
        """The first row of each split."""
        first: dict[str, int] = {}
        for row, split in enumerate(self.splits):
            first.setdefault(split, row)
        return first


def readable(name: str) -> str:
    """A name as one line of text: bytes that are no text, and control characters, escaped.

    >>> readable("a\\nb\\udcff")
    'a\\\\nb\\\\udcff'
    """
    return one_line(name.encode(errors="backslashreplace").decode())
