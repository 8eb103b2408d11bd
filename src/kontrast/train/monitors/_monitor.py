"""What every monitor is: a snapshot of a fixed held-out batch in, named values out."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from kontrast.geometry import TooFewSamples
from kontrast.runs import MonitorChart


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """Features and embeddings of M held-out images, on the CPU, without gradient."""

    features: Tensor  # [M, d], the encoder's output for the plain images
    embeddings: Tensor  # [M, V, D], the head's output for V fixed augmented views of the same images, V ≥ 1
    labels: Tensor | None = None  # [M]
    reference: Tensor | None = None  # [R, d], the encoder's output for training rows
    reference_labels: Tensor | None = None  # [R]
    temperature: float | None = None  # the method's
    k1: float | None = None  # TCL's; None is SupCon's 0
    k2: float | None = None  # TCL's; None is SupCon's 1
    supervised: bool = True  # whether the method's positives are those of the labels; else the views of one image

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.embeddings.ndim != 3 or len(self.features) != len(self.embeddings):
            raise ValueError(
                f"a snapshot has features [M, d] and embeddings [M, V, D] of the same M images; seen features "
                f"{list(self.features.shape)} and embeddings {list(self.embeddings.shape)}"
            )
        if self.labels is not None and self.labels.shape != (len(self.features),):
            raise ValueError(f"labels {list(self.labels.shape)} for {len(self.features)} images: expected one each")

    @property
    def query(self) -> Tensor:
        """The first view's embeddings, ``[M, D]``."""
        return self.embeddings[:, 0]

    @property
    def key(self) -> Tensor:
        """The second view's, ``[M, D]``; of one view the first's."""
        return self.embeddings[:, min(1, self.embeddings.shape[1] - 1)]


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
        obstacle = self.obstacle(
            labels=snapshot.labels is not None,
            views=snapshot.embeddings.shape[1],
            temperature=snapshot.temperature is not None,
        )
        if obstacle is not None:
            name = type(self).__module__.rpartition(".")[2].replace("_", "-")
            raise ValueError(f"monitor {name!r} {obstacle}: leave it out")
        with warnings.catch_warnings():
            # The batch is small on purpose: what it gives is to be compared with itself at other steps.
            warnings.simplefilter("ignore", TooFewSamples)
            return {f"monitor/{name}": float(value) for name, value in self.values(snapshot).items()}

    def obstacle(self, *, labels: bool, views: int, temperature: bool, response: bool = True) -> str | None:
        """Why this monitor cannot run; None if it can.

        Args:
            labels: Whether the held-out images have labels.
            views: How many views of each image there are.
            temperature: Whether the method's loss has a temperature.
            response: Whether the loss responds to hard samples as SupCon's and TCL's do.
        """
        if self.needs_labels and not labels:
            return "compares classes, and the held-out images have no labels"
        if self.needs_temperature and not temperature:
            return "depends on the loss's temperature, and this loss has none"
        if views < self.fewest_views:
            return f"compares {self.fewest_views} views of an image, and there is {views}"
        if self.of_responses and not response:
            return "measures the response to hard samples, which this loss has not"
        return None
