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

from collections.abc import Callable, Iterable

from kontrast.registry import FAMILIES
from kontrast.train.monitors._monitor import Monitor, Snapshot

MONITORS = FAMILIES["monitor"]
names = MONITORS.names
find: Callable[[str], Monitor] = MONITORS.make  # monitors have no options

__all__ = ["MONITORS", "Monitor", "Snapshot", "default", "find", "measure", "names"]


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
        ValueError: A name is unknown, or the snapshot lacks what a monitor needs.
    """
    values: dict[str, float] = {}
    for name in names:
        values |= find(name)(snapshot)
    return values
