"""What every monitor is: a snapshot in, named values out."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import ClassVar

from kontrast.geometry import TooFewSamples
from kontrast.runs import MonitorChart
from kontrast.train.monitors._snapshot import Snapshot


class Monitor(ABC):
    """``monitor(snapshot)`` gives its values as ``{"monitor/uniformity": −2.1}``. A new one writes `values`."""

    needs_labels: ClassVar[bool] = False
    needs_temperature: ClassVar[bool] = False
    of_responses: ClassVar[bool] = False  # says something of SupCon and TCL only
    fewest_views: ClassVar[int] = 1
    chart: ClassVar[MonitorChart | None] = None  # None: a report draws a chart for each value

    @abstractmethod
    def values(self, snapshot: Snapshot) -> dict[str, float]:
        """The values by their short names; none where the snapshot holds nothing to measure."""

    def __call__(self, snapshot: Snapshot) -> dict[str, float]:
        """`values`, each under ``monitor/``; an error if something is missing that this monitor needs."""
        self._check(snapshot)
        with warnings.catch_warnings():
            # The batch is small on purpose: what it gives is to be compared with itself at other steps.
            warnings.simplefilter("ignore", TooFewSamples)
            return {f"monitor/{name}": float(value) for name, value in self.values(snapshot).items()}

    def _check(self, snapshot: Snapshot) -> None:
        who = f"monitor {type(self).__module__.rpartition('.')[2].replace('_', '-')!r}"
        if self.needs_labels and snapshot.labels is None:
            raise ValueError(f"{who} compares classes, and the held-out images have no labels: leave it out")
        if self.needs_temperature and snapshot.temperature is None:
            raise ValueError(f"{who} depends on the loss's temperature, and this loss has none: leave it out")
        if snapshot.embeddings.shape[1] < self.fewest_views:
            raise ValueError(
                f"{who} compares {self.fewest_views} views of an image, and there is {snapshot.embeddings.shape[1]}: "
                f"leave it out"
            )
