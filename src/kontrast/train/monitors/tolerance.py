"""How similar samples of one class are: `geometry.tolerance` of the embeddings, and of the features.

1: each class is one point; 0: no closer than strangers. Nothing is said where no class has two of the held-out images.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from kontrast import geometry
from kontrast.runs import MonitorChart
from kontrast.train.monitors import Monitor, Snapshot


class Tolerance(Monitor):
    """``tolerance`` of the embeddings (the first view's), ``tolerance_features`` of the encoder's output.

    >>> import torch
    >>> x = torch.eye(2).repeat(2, 1)
    >>> Tolerance()(Snapshot(features=x, embeddings=x[:, None], labels=torch.tensor([0, 1, 0, 1])))
    {'monitor/tolerance': 1.0, 'monitor/tolerance_features': 1.0}
    """

    needs_labels: ClassVar[bool] = True
    chart = MonitorChart(
        title="Tolerance",
        series={"tolerance_features": "features", "tolerance": "embeddings"},
        compared={"tolerance": ("tolerance", "of embeddings; higher is tighter classes")},
        order=3,
    )

    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """Of both."""
        assert snapshot.labels is not None
        if len(torch.unique(snapshot.labels)) == len(snapshot.labels):
            return {}
        return {
            "tolerance": geometry.tolerance(snapshot.query, snapshot.labels),
            "tolerance_features": geometry.tolerance(snapshot.features, snapshot.labels),
        }
