"""What an experiment is: a grid over a recipe, what is read off each run, the paper's values, claims and charts.

    axes         the grid's axes and their values, in the paper's order; the seed is one more
    presets      paper (full scale), cpu (minutes to an hour a cell on a core), smoke (seconds): each gives, for a place
                 on the grid, the recipe to run, and says what it changes against the paper
    measures     numbers read off a finished run's folder
    published    the paper's value at a place, where it has one: on its own sets and on parts of them, see
                 `kontrast.recipes.published.printed_set`
    claims       what the paper says of the table, each with its statistic
    charts       what to draw

Everything here is data and small functions: `kontrast.experiments.plan` makes cells of it, an engine runs them,
`kontrast.experiments.outcome` reads them, and tables, claims and charts are made from what was read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.experiments.cell import At, Task, Value
from kontrast.recipe import Recipe

KINDS = (
    "theory",
    "geometry",
    "accuracy",
)  # of claims: about a loss alone, about embeddings, about what they are good for
Published = float | tuple[float, float | None] | None  # a value, and the half-width of its interval where there is one


@dataclass(frozen=True)
class Measure:
    """A number of a finished run: ``read(folder)`` gives it, or None where the run has none."""

    name: str
    title: str  # with its unit and protocol: "linear accuracy (%), Wang & Liu's probe"
    read: Callable[[Path], float | None]
    digits: int = 2
    protocols: tuple[str, ...] = ()  # one of these the recipe must have, for there to be a number
    kind: str = ""  # one of `KINDS`; by default accuracy for what has protocols, else geometry
    error: Callable[[Path], float | None] | None = None  # its standard error over test rows, in the same unit
    optional: bool = False  # a column of its own only where some run has it


@dataclass(frozen=True)
class Preset:
    """``make(at)`` gives the recipe or task of a place; ``about`` says what differs from the paper, and why."""

    about: str
    make: Callable[[At], Recipe | Task]
    seeds: int = 1
    axes: Mapping[str, Sequence[Value]] = field(default_factory=dict)  # in place of the experiment's
    seeds_at: Callable[[At], int] | None = None  # where places have different numbers of seeds
    keep: Callable[[At], bool] = lambda at: True  # for grids that are smaller than the experiment's


@dataclass(frozen=True)
class Row:
    """The result of one cell. ``values`` is empty unless it is done.

    A censored value is a lower bound: the run was stopped before what was waited for came ("did not fit within 3,000
    steps"). ``values["censored"] == 1.0`` marks all measures of the row, ``values["censored:NAME"] == 1.0`` one of
    them. ``values["error:NAME"]`` is the standard error of a single value (over test rows, or as a paper prints it),
    for experiments with one seed.
    """

    at: Mapping[str, Value]
    folder: str
    status: str  # missing, training, evaluating, running, interrupted, failed, done
    values: Mapping[str, float | None] = field(default_factory=dict)
    error: str | None = None
    seconds: float | None = None
    path: Path | None = None  # of the folder
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)  # what the figures draw, see `Experiment.keeps`
    curve: Sequence[Mapping[str, float]] = ()  # the learning curve, thinned: step, loss, chance, bound, knn …


@dataclass(frozen=True)
class Finding:
    """What a claim came to: ``holds``, ``does not hold`` or ``not resolved at this scale``, and the statistic's value.

    ``where`` is the part of the grid it speaks of ("data=cifar10"), ``half`` the half-width of its 95 % interval,
    ``error`` what that is taken from, ``visible`` the smallest effect that this design shows in four cases of five.
    """

    verdict: str
    says: str  # the statistic in words and numbers
    where: str = ""
    value: float | None = None
    half: float | None = None
    n: int = 0
    error: str = ""
    visible: float | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, the statistic that decides it, and the function that computes it from the rows."""

    text: str
    statistic: str
    test: Callable[[Sequence[Row]], list[Finding]]
    measures: tuple[str, ...] = ()  # what it reads of a row
    kind: str = ""  # one of `KINDS`; by default that of the measures it reads, see `kind_of`


def kind_of(claim: Claim, measures: Sequence[Measure]) -> str:
    """Whether a claim is one of theory, of geometry or of accuracy.

    What the claim says of itself, else accuracy if a measure that it reads is one, else geometry, else theory.

    >>> knn = Measure("knn", "kNN", lambda folder: 1.0, protocols=("knn20",))
    >>> spread = Measure("spread", "mean distance", lambda folder: 1.0)
    >>> claims = [Claim("", "", lambda rows: [], names) for names in (("knn", "spread"), ("spread",))]
    >>> [kind_of(claim, [knn, spread]) for claim in claims]
    ['accuracy', 'geometry']
    """
    if claim.kind:
        return claim.kind
    kinds = {m.kind or ("accuracy" if m.protocols else "geometry") for m in measures if m.name in claim.measures}
    return next((kind for kind in reversed(KINDS) if kind in kinds), "geometry")


@dataclass(frozen=True)
class Chart:
    """What to draw: ``kind`` is one of `kontrast.experiments.charts`; ``x``, ``y`` … name axes or measures.

    Without ``data`` it is drawn from the rows (means and intervals over seeds); with it, from the records that it
    makes of them, for what a run has many of (distributions, curves).
    """

    name: str
    title: str
    kind: str
    x: str
    y: str
    colour: str | None = None
    panel: str | None = None
    log_x: bool = False
    data: Callable[[Sequence[Row]], list[dict[str, Any]]] | None = None


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper. ``rows`` is the axis that runs down the table, the others run across."""

    name: str
    title: str
    source: str
    axes: Mapping[str, Sequence[Value]]
    presets: Mapping[str, Preset]
    measures: Sequence[Measure]
    rows: str
    published: Callable[[At, str], Published] = lambda at, measure: None
    claims: Sequence[Claim] = ()
    charts: Sequence[Chart] = ()
    keep: Callable[[At], bool] = lambda at: True  # for grids that are not full
    # Small arrays that the figures need (at most about 50 KB a cell), read off a finished run's folder.
    keeps: Callable[[Path], Mapping[str, np.ndarray]] = lambda folder: {}

    @property
    def summary(self) -> str:
        """Its line in ``kontrast list experiments``."""
        return f"{self.title} ({self.source})"


# ------------------------------------------------------------------------------------------------------ values of rows

CENSORED, ERROR = "censored", "error"  # names of marks among a row's values, see `Row`


def value_of(row: Row, measure: str) -> float | None:
    """A finished run's number; None where it is not done, has none, or it is not finite."""
    value = row.values.get(measure) if row.status == "done" else None
    return value if value is not None and math.isfinite(value) else None


def is_censored(row: Row, measure: str) -> bool:
    """Whether the number is only a lower bound."""
    return 1.0 in (row.values.get(CENSORED), row.values.get(f"{CENSORED}:{measure}"))


def error_of(row: Row, measure: str) -> float | None:
    """The standard error of a finished run's number, where the row has it."""
    return row.values.get(f"{ERROR}:{measure}") if row.status == "done" else None


def is_mark(measure: str) -> bool:
    """Whether the name is that of a mark (censored, an error), not of a number to show."""
    return measure == CENSORED or measure.startswith((f"{CENSORED}:", f"{ERROR}:"))


def by_seed(rows: Sequence[Row], measure: str) -> dict[Value, float]:
    """Each seed's mean over its finished rows."""
    groups: dict[Value, list[float]] = {}
    for row in rows:
        if (value := value_of(row, measure)) is not None:
            groups.setdefault(row.at.get("seed"), []).append(value)
    return {seed: math.fsum(values) / len(values) for seed, values in groups.items()}
