"""What a paper says of its table, each sentence with the statistic that decides it.

A constructor gives a `Claim`: the sentence, its statistic in words, and a test that makes one `Finding` of each part of
the grid (each value of the axes ``within``). The verdicts:

    holds                         the 95 % interval of the statistic lies on the claimed side
    does not hold                 it lies on the other
    not resolved at this scale    it holds the value between, or there is no interval, or cells are missing, or
                                  censored runs leave the sign open; the finding says which

The interval is over seeds. One seed alone has an error where something else tells it, and the finding says what: the
residuals of a fitted curve, the places that are averaged as replicates, or the values' own standard errors.

A claim says nothing while cells of its part have no value: what fails is seldom a random sample of what was planned.
The statistic of the seeds that are whole is shown all the same. Axes a claim does not mention are averaged within a
seed, before anything is compared between seeds. ``where``, ``a`` and ``b`` name an axis and its value, or a tuple of
values. None on an axis says that it does not apply there, so that the other side is averaged over it.

Nothing here corrects for many claims: of forty effects that are not there, one is expected to hold.
"""

from __future__ import annotations

from kontrast.experiments.claims.comparisons import (
    collapses,
    everywhere,
    higher,
    lower,
    near,
    not_above,
    not_below,
    stays,
    varies_less,
)
from kontrast.experiments.claims.readings import FAILS, HOLDS, OPEN
from kontrast.experiments.claims.trends import (
    about_linear,
    convex,
    correlated,
    falls,
    more_convex,
    rises,
    rises_then_falls,
)

__all__ = [
    "FAILS",
    "HOLDS",
    "OPEN",
    "about_linear",
    "collapses",
    "convex",
    "correlated",
    "everywhere",
    "falls",
    "higher",
    "lower",
    "more_convex",
    "near",
    "not_above",
    "not_below",
    "rises",
    "rises_then_falls",
    "stays",
    "varies_less",
]

CLAIMS = {name: globals()[name] for name in __all__ if name.islower()}
"""The constructors, by name."""
