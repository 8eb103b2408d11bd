"""How many negatives share the penalty: `geometry.penalty_entropy` at the method's temperature.

The first view against the second, the other images as negatives: 0 is all on the nearest one, log(M−1) all alike. The
smaller the temperature, the smaller the entropy (Wang & Liu).
"""

from __future__ import annotations

import math
from typing import ClassVar

from kontrast import geometry
from kontrast.runs import MonitorChart
from kontrast.train.monitors import Monitor, Snapshot


class Entropy(Monitor):
    """``entropy``, the mean over the images, and ``entropy_share``, of the most it can be.

    >>> import torch
    >>> x = torch.eye(5)
    >>> values = Entropy()(Snapshot(features=x, embeddings=x[:, None], temperature=0.1))  # four negatives, all alike
    >>> {name: round(value, 4) for name, value in values.items()}
    {'monitor/entropy': 1.3863, 'monitor/entropy_share': 1.0}
    """

    needs_temperature: ClassVar[bool] = True
    chart = MonitorChart(
        title="Penalty entropy, share of the largest",
        series={"entropy_share": "embeddings"},
        compared={"entropy_share": ("penalty entropy", "share of the largest; 1: all negatives weigh alike")},
        format="%",
        not_drawn=("entropy",),
        order=5,
    )

    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """In nats, and as a share of log(M−1)."""
        assert snapshot.temperature is not None
        each = geometry.penalty_entropy(snapshot.query, snapshot.key, temperature=snapshot.temperature)
        mean, most = float(each.double().mean()), math.log(len(each) - 1)
        return {"entropy": mean, **({"entropy_share": mean / most} if most else {})}
