"""How strongly SupCon or TCL answers to the hardest positive and the hardest negative: `geometry.gradient_response`.

All views of all images together, as in the loss, at the method's temperature, k1 and k2. TCL's claim is a larger
response to hard positives than SupCon's, so SupCon's (k1 = 0, k2 = 1) is given beside it.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from kontrast import geometry
from kontrast.runs import MonitorChart
from kontrast.train.monitors import Monitor, Snapshot


class GradientResponse(Monitor):
    """``response_positive`` and ``response_negative``, means over anchors; for TCL also SupCon's, ``…_supcon``.

    >>> z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    >>> labels = torch.tensor([0, 0, 1, 1])
    >>> response = GradientResponse()(Snapshot(features=z, embeddings=z[:, None], labels=labels, temperature=1.0))
    >>> {name: round(value, 4) for name, value in response.items()}
    {'monitor/response_positive': 0.78, 'monitor/response_negative': 0.56}
    """

    needs_temperature: ClassVar[bool] = True
    of_responses: ClassVar[bool] = True
    chart = MonitorChart(
        title="Gradient response",
        series={
            "response_positive": "hardest positive",
            "response_negative": "hardest negative",
            "response_positive_supcon": "hardest positive, by SupCon",
            "response_negative_supcon": "hardest negative, by SupCon",
        },
        compared={
            "response_positive": ("pull of the hardest positive", "its gradient response"),
            "response_negative": ("push of the hardest negative", "its gradient response"),
        },
        order=6,
    )

    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """Of the classes, or of the views of one image where there are no labels or the method does not use them."""
        assert snapshot.temperature is not None
        m, v = snapshot.embeddings.shape[:2]
        by_class = snapshot.labels is not None and snapshot.supervised
        groups = snapshot.labels if by_class and snapshot.labels is not None else torch.arange(m)
        if v < 2 and len(torch.unique(groups)) == m:
            return {}  # no anchor has a positive
        k1, k2 = snapshot.k1 or 0.0, 1.0 if snapshot.k2 is None else snapshot.k2
        is_supcon = (k1, k2) == (0.0, 1.0)
        response = geometry.gradient_response(
            snapshot.embeddings.flatten(0, 1),
            groups.repeat_interleave(v),
            temperature=snapshot.temperature,
            k1=[k1] if is_supcon else [k1, 0.0],
            k2=[k2] if is_supcon else [k2, 1.0],
        )
        values = {}
        for i, suffix in enumerate([""] if is_supcon else ["", "_supcon"]):
            values[f"response_positive{suffix}"] = float(response.positive[:, i, i].double().mean())
            values[f"response_negative{suffix}"] = float(response.negative[:, i, i].double().mean())
        return values
