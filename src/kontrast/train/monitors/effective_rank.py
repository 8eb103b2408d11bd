"""How many dimensions are used: `geometry.spectrum`'s effective rank (RankMe) of features and of embeddings.

From 1, all on a line, to the smaller of their dimension and the number of held-out images. A rank that falls is the
first sign of dimensional collapse, without any label.
"""

from __future__ import annotations

from kontrast import geometry
from kontrast.runs import MonitorChart
from kontrast.train.monitors import Monitor, Snapshot


class EffectiveRank(Monitor):
    """``effective_rank`` of the encoder's output, ``effective_rank_embeddings`` of the head's (the first view's).

    >>> import torch
    >>> values = EffectiveRank()(Snapshot(features=torch.eye(4), embeddings=torch.ones(4, 1, 8)))
    >>> {name: round(value, 4) for name, value in values.items()}
    {'monitor/effective_rank': 4.0, 'monitor/effective_rank_embeddings': 1.0}
    """

    chart = MonitorChart(
        title="Effective rank",
        series={"effective_rank": "features", "effective_rank_embeddings": "embeddings"},
        compared={
            "effective_rank": ("effective rank, features", "how many directions the encoder uses"),
            "effective_rank_embeddings": ("effective rank, embeddings", "how many directions the head uses"),
        },
        order=4,
    )

    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """Of both."""
        return {
            "effective_rank": geometry.spectrum(snapshot.features).effective_rank,
            "effective_rank_embeddings": geometry.spectrum(snapshot.query).effective_rank,
        }
