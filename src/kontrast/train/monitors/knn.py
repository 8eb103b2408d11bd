"""Online kNN: the accuracy of the held-out images' features against training rows, k = 20, weights e^{s/0.07}.

A share from 0 to 1. The training rows are few, so it is below what the whole set would give: read its course, not its
height; `kontrast.evaluate` gives the number.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.evaluate import votes
from kontrast.runs import MonitorChart
from kontrast.train.monitors import Monitor, Snapshot

NEIGHBOURS, TEMPERATURE = 20, 0.07


class KNN(Monitor):
    """``knn20``; with fewer training rows than 20 all of them vote.

    >>> import torch
    >>> x = torch.eye(3)
    >>> labels = torch.arange(3)
    >>> KNN()(Snapshot(features=x, embeddings=x[:, None], labels=labels, reference=x, reference_labels=labels))
    {'monitor/knn20': 1.0}
    """

    needs_labels: ClassVar[bool] = True
    chart = MonitorChart(
        title="kNN accuracy along the way",
        series={"knn20": "k = 20"},
        compared={"knn20": ("kNN accuracy", "k = 20, on a held-out batch")},
        format="%",
        order=1,
    )

    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """Over all held-out images."""
        if snapshot.labels is None or snapshot.reference is None or snapshot.reference_labels is None:
            raise ValueError(
                "monitor 'knn' compares with training rows: the snapshot needs reference, reference_labels"
            )
        k, labels = min(NEIGHBOURS, len(snapshot.reference)), snapshot.reference_labels
        classes = int(labels.max()) + 1
        counts = votes(snapshot.features, snapshot.reference, labels, classes, k=k, temperature=TEMPERATURE)
        return {f"knn{NEIGHBOURS}": float((counts.argmax(1) == snapshot.labels).double().mean())}
