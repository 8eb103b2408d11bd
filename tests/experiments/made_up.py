"""Rows made up for the tests of claims: a grid whose values are a function of the place and the seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kontrast.experiments.experiment import Claim, Finding, Row

TAUS = (0.05, 0.1, 0.2, 0.4, 0.8)
SHARES = tuple(k / 10 for k in range(11))
JITTER = (0.0, 0.3, -0.2, 0.1, -0.15)  # of the seeds
LOSSES = {"loss": ("ordinary", "hard")}


def grid(
    value: Callable[..., float | None], axes: Mapping[str, Sequence[Any]], seeds: int = 5, **more: Callable[..., Any]
) -> list[Row]:
    """A row for each place and seed, with ``value(seed=…, axis=…)`` as its "y"."""
    places: list[dict[str, Any]] = [{}]
    for axis, values in axes.items():
        places = [{**place, axis: v} for place in places for v in values]
    cells = [{**place, "seed": seed} for place in places for seed in range(seeds)]
    name = "-".join
    return [
        Row(at, name(map(str, at.values())), "done", {"y": value(**at), **{k: f(**at) for k, f in more.items()}})
        for at in cells
    ]


def only(claim: Claim, rows: Sequence[Row]) -> Finding:
    [found] = claim.test(rows)
    return found


def shape(curve: Callable[[float], float], noise: float = 0.1) -> Callable[..., float]:
    """A curve in log₂ τ whose seeds tilt and shift it a little."""
    return lambda temperature, seed, **_: (
        curve(math.log2(temperature)) + noise * JITTER[seed] * math.log2(temperature) ** 2 + JITTER[seed]
    )


def by_loss(ordinary: float, hard: float, noise: float = 0.1) -> list[Row]:
    return grid(
        lambda loss, seed: 80 + 5 * JITTER[seed] + (hard + noise * JITTER[seed] if loss == "hard" else ordinary), LOSSES
    )


HARD, ORDINARY = {"loss": "hard"}, {"loss": "ordinary"}
