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

from collections.abc import Iterable

from kontrast.registry import FAMILIES
from kontrast.train.monitors._monitor import Monitor, Snapshot

MONITORS = FAMILIES["monitor"]

__all__ = ["MONITORS", "Monitor", "Snapshot", "default", "find", "measure", "names"]


def names() -> list[str]:
    """Every monitor's name."""
    return MONITORS.names()


def find(name: str) -> Monitor:
    """The monitor of this name.

    Raises:
        ValueError: an unknown name; the error names the nearest one.

    >>> find("uniformty")
    Traceback (most recent call last):
        ...
    ValueError: no monitor 'uniformty'; did you mean 'uniformity'? Known: effective-rank, entropy, ...
    """
    made: Monitor = MONITORS.make(name)
    return made


def default(*, labels: bool, views: int, temperature: bool = True, response: bool = False) -> list[str]:
    """The monitors that can run: whether the rows have labels, how many views, whether the loss has a temperature.

    ``response`` adds the gradient response, which is SupCon's and TCL's.

    >>> default(labels=True, views=1)
    ['effective-rank', 'entropy', 'knn', 'tolerance', 'uniformity']
    """
    there = {"labels": labels, "temperature": temperature, "response": response}

    def can(monitor: Monitor) -> bool:
        needed = {
            "labels": monitor.needs_labels,
            "temperature": monitor.needs_temperature,
            "response": monitor.of_responses,
        }
        return views >= monitor.fewest_views and all(there[what] for what, needs in needed.items() if needs)

    return [name for name in names() if can(find(name))]


def measure(names: Iterable[str], snapshot: Snapshot) -> dict[str, float]:
    """All values of some monitors; one that the snapshot is not enough for is an error."""
    values: dict[str, float] = {}
    for name in names:
        values |= find(name)(snapshot)
    return values
