"""How far a positive stands from the nearest negative: `geometry.local_separation` of two views.

The first view of each image against the second; the other images are the negatives. A gap above 0 means that most
images know their other view from all others; positives at 1 and negatives too is collapse.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast import geometry
from kontrast.runs import MonitorChart
from kontrast.train.monitors import Monitor, Snapshot


class Similarity(Monitor):
    """``positive_similarity``, ``negative_similarity`` (the nearest's) and ``similarity_gap``, means over the images.

    >>> import torch
    >>> x = torch.eye(3)
    >>> Similarity()(Snapshot(features=x, embeddings=torch.stack([x, x], 1)))
    {'monitor/positive_similarity': 1.0, 'monitor/negative_similarity': 0.0, 'monitor/similarity_gap': 1.0}
    """

    fewest_views: ClassVar[int] = 2
    chart = MonitorChart(
        title="Cosine of views",
        series={"positive_similarity": "same row", "negative_similarity": "hardest other row"},
        compared={"similarity_gap": ("positive − hardest negative", "cosine of embeddings")},
        order=7,
    )

    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """Of the first two views."""
        separation = geometry.local_separation(snapshot.query, snapshot.key, nearest=1)
        positive, negative = float(separation.positive.double().mean()), float(separation.nearest.double().mean())
        return {
            "positive_similarity": positive,
            "negative_similarity": negative,
            "similarity_gap": positive - negative,
        }
