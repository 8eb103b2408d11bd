"""Monitors: what is measured of a run while it trains, on a fixed held-out batch. One a file, its name the monitor's.

Each takes a `Snapshot` and gives named values, like the measures of `kontrast.geometry` which it calls:

>>> import torch
>>> from kontrast.train import monitors
>>> draw = torch.Generator().manual_seed(0)
>>> snapshot = monitors.Snapshot(features=torch.randn(64, 16, generator=draw),
...                              embeddings=torch.randn(64, 2, 8, generator=draw))
>>> names = monitors.default(labels=False, views=2, temperature=False)
>>> names
['effective-rank', 'similarity', 'uniformity']
>>> sorted(monitors.measure(names, snapshot))  # doctest: +NORMALIZE_WHITESPACE
['monitor/effective_rank', 'monitor/effective_rank_embeddings', 'monitor/negative_similarity',
 'monitor/positive_similarity', 'monitor/similarity_gap', 'monitor/uniformity', 'monitor/uniformity_features']
"""

from __future__ import annotations

import contextlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from kontrast.geometry import TooFewSamples
from kontrast.registry import FAMILIES, nearest, quoted
from kontrast.runs import MonitorChart
from kontrast.train.memory import out_of_memory

__all__ = ["MONITORS", "Monitor", "Snapshot", "default", "find", "measure", "names"]


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
        """`values`, each under ``monitor/``.

        Raises:
            ValueError: Something is missing that it needs, or its own code fails; the error names the monitor.
        """
        obstacle = self.obstacle(
            labels=snapshot.labels is not None,
            views=snapshot.embeddings.shape[1],
            temperature=snapshot.temperature is not None,
        )
        name = type(self).__module__.rpartition(".")[2].replace("_", "-")
        if obstacle is not None:
            raise ValueError(f"monitor {name!r} {obstacle}: leave it out")
        with warnings.catch_warnings():
            # The batch is small on purpose: what it gives is to be compared with itself at other steps.
            warnings.simplefilter("ignore", TooFewSamples)
            try:
                values = self.values(snapshot)
            except Exception as error:
                if out_of_memory(error):
                    raise
                why = f"{type(error).__name__}: {error}"
                raise ValueError(f"monitor {name!r} failed with {why}; correct it, or leave it out") from error
        if not isinstance(values, Mapping):
            raise ValueError(f"monitor {name!r}: values must return a dict, names to numbers; got {quoted(values)}")
        drawn = [] if self.chart is None else [key for key in values if key not in self.chart.not_drawn]
        if self.chart is not None and drawn and not set(self.chart.series) & set(drawn):
            first = next(iter(self.chart.series), "")
            warnings.warn(
                f"monitor {name!r}: chart.series has {first!r}: must be a name of its values{nearest(first, values)} "
                f"They are {', '.join(values)}",
                UserWarning,
                stacklevel=2,
            )
        return {f"monitor/{key}": _number(name, key, value) for key, value in values.items()}

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


def _number(monitor: str, key: str, value: Any) -> float:
    with contextlib.suppress(TypeError, ValueError, RuntimeError):  # a tensor of several values raises one of these
        if not isinstance(value, str | bytes):
            return float(value)
    raise ValueError(f"monitor {monitor!r}: its value {key!r} must be a number, got {quoted(value)}")


MONITORS = FAMILIES["monitor"]
names = MONITORS.names
find: Callable[[str], Monitor] = MONITORS.make  # monitors have no options


def default(*, labels: bool, views: int, temperature: bool = True, response: bool = False) -> list[str]:
    """The names of the monitors that can run.

    Args:
        labels: Whether the held-out images have labels.
        views: How many views of each image there are.
        temperature: Whether the method's loss has a temperature.
        response: Whether the loss responds to hard samples as SupCon's and TCL's do.

    >>> default(labels=True, views=1)
    ['effective-rank', 'entropy', 'knn', 'tolerance', 'uniformity']
    """
    return [
        name
        for name in names()
        if find(name).obstacle(labels=labels, views=views, temperature=temperature, response=response) is None
    ]


def measure(names: Iterable[str], snapshot: Snapshot) -> dict[str, float]:
    """All values of some monitors.

    Args:
        names: The monitors.
        snapshot: What they measure.

    Returns:
        The values by name, such as ``monitor/uniformity``.

    Raises:
        ValueError: A name is unknown, the snapshot lacks what a monitor needs, a monitor's code fails, or two monitors
            have a value of one name.
    """
    values: dict[str, float] = {}
    owners: dict[str, str] = {}
    for name in dict.fromkeys(names):
        for key, value in find(name)(snapshot).items():
            if key in owners:
                raise ValueError(f"monitors {owners[key]!r} and {name!r} both have a value {key!r}: rename one of them")
            owners[key], values[key] = name, value
    return values
