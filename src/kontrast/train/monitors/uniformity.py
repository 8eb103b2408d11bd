"""How evenly the embeddings, and the features, cover the sphere: `geometry.uniformity` with t = 2.

The smaller, the more uniform: −3.94 is the limit in 128 dimensions, 0 is all in one point. Embeddings are the first
view's.
"""

from __future__ import annotations

from kontrast import geometry
from kontrast.runs import MonitorChart
from kontrast.train.monitors import Monitor, Snapshot


class Uniformity(Monitor):
    """``uniformity`` of the embeddings, ``uniformity_features`` of the encoder's output.

    >>> import torch
    >>> opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    >>> values = Uniformity()(Snapshot(features=opposite, embeddings=opposite[:, None]))  # log e^{−2·4}
    >>> {name: round(value, 4) for name, value in values.items()}
    {'monitor/uniformity': -8.0, 'monitor/uniformity_features': -8.0}
    """

    chart = MonitorChart(
        title="Uniformity",
        series={"uniformity_features": "features", "uniformity": "embeddings"},
        compared={"uniformity": ("uniformity", "of embeddings; lower is more even")},
        order=2,
    )

    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """Of both."""
        return {
            "uniformity": geometry.uniformity(snapshot.query),
            "uniformity_features": geometry.uniformity(snapshot.features),
        }
