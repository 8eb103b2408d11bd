"""A check: a statement of a paper, where the paper makes it, and a function that measures how far it is from true.

The function yields errors: the deviations of an identity, the violations of an inequality. The check holds if the
largest is finite and at most its tolerance. Some statements have no such error: that an inequality is strict, or that a
theorem fails outside its conditions. For them the function yields `required`, which is 0 or infinity.

A check registers itself when its module is imported. `checks` lists them all in the order of `PAPERS`, `verify` runs
them: it is what `kontrast verify` prints.
"""

from __future__ import annotations

import fnmatch
import importlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from kontrast.registry import nearest
from kontrast.theory._inputs import worst
from kontrast.theory.free_points import one_thread

Measure = Callable[[torch.Generator], Iterable[float]]
REGISTRY: dict[str, Check] = {}
ROUNDING = 1e-12  # what float64 leaves of an identity
PAPERS = ("wang_liu", "tcl", "sce", "graf_cross_entropy", "graf_supcon", "graf_energy")
"""The modules with checks, in the order in which the checks are listed."""


@dataclass(frozen=True)
class Outcome:
    """The result of one check.

    Attributes:
        name: The name of the check.
        source: The paper, and the place in it.
        statement: The statement.
        conditions: When it is claimed.
        error: The largest error; NaN if the check raised an exception.
        tolerance: The largest error at which the statement holds.
        holds: Whether it holds.
        seconds: The time that the check took.
        failure: The exception, if the check raised one.

    >>> (outcome,) = verify(["sce-decomposition"])
    >>> outcome.holds, outcome.failure
    (True, '')
    """

    name: str
    source: str
    statement: str
    conditions: str
    error: float
    tolerance: float
    holds: bool
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Check:
    """A statement that can be measured.

    Attributes:
        name: The function's name with dashes.
        source: The paper, and the place in it.
        statement: The statement, in one line of Unicode mathematics.
        conditions: When it is claimed; empty for always.
        tolerance: The largest error at which it holds.
        measure: The function: a random generator → the errors.

    >>> (sce,) = checks(["sce-decomposition"])
    >>> sce.statement
    'L_SCE = λ L_InfoNCE + (1−λ)(L_ReSSL + L_Ceil)'
    """

    name: str
    source: str
    statement: str
    conditions: str
    tolerance: float
    measure: Measure

    @property
    def summary(self) -> str:
        """Its line in ``kontrast list checks``."""
        return f"{self.statement} ({self.source})"

    def run(self, seed: int = 0) -> Outcome:
        """Measure the error on random inputs, in one thread.

        Args:
            seed: The seed of the inputs.

        Returns:
            The outcome. An exception does not hold and is its ``failure``: the other checks are still worth running.
        """
        start = time.perf_counter()
        error, failure = math.nan, ""
        try:
            with one_thread():
                error = worst(list(self.measure(torch.Generator().manual_seed(seed))))
        except Exception as exception:
            failure = f"{type(exception).__name__}: {exception}"
        holds = math.isfinite(error) and error <= self.tolerance
        about = (self.name, self.source, self.statement, self.conditions)
        return Outcome(*about, error, self.tolerance, holds, time.perf_counter() - start, failure)


def check(
    source: str, statement: str, *, tolerance: float = ROUNDING, conditions: str = ""
) -> Callable[[Measure], Measure]:
    """Register the decorated function as a check; see `Check` for the arguments.

    Raises:
        ValueError: There is a check of that name already.
    """

    def register(measure: Measure) -> Measure:
        name = measure.__name__.replace("_", "-")
        if name in REGISTRY:
            raise ValueError(f"check={name!r}: must be a new name. Rename one of the two functions")
        REGISTRY[name] = Check(name, source, statement, conditions, tolerance, measure)
        return measure

    return register


def required(condition: bool) -> float:
    """0 if the condition is true, else infinity, which makes the check fail."""
    return 0.0 if condition else math.inf


def checks(only: Sequence[str] = ()) -> list[Check]:
    """The checks of all papers, in order.

    Args:
        only: Names or patterns (``sce-*``) of the checks to list; empty for all.

    Returns:
        The checks that match any of them.

    Raises:
        ValueError: A name or pattern matches no check.

    >>> [c.name for c in checks(["*decomposition*"])]
    ['sce-decomposition']
    """
    modules = [importlib.import_module(f"kontrast.theory.{paper}").__name__ for paper in PAPERS]
    order = {name: place for place, name in enumerate(modules)}
    # The modules may have been imported in another order before.
    every = {c.name: c for c in sorted(REGISTRY.values(), key=lambda c: order.get(c.measure.__module__, len(order)))}
    for pattern in only:
        if not fnmatch.filter(every, pattern):
            raise ValueError(f"no check is named {pattern!r}{nearest(pattern, every)} Known: {', '.join(every)}")
    patterns = only or ["*"]
    return [c for name, c in every.items() if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def verify(only: Sequence[str] = (), *, seed: int = 0) -> Iterator[Outcome]:
    """Run the checks one by one.

    Args:
        only: Names or patterns of the checks, as for `checks`.
        seed: The seed of their random inputs.

    Yields:
        Each check's outcome.

    Raises:
        ValueError: A name or pattern matches no check.

    >>> [outcome.holds for outcome in verify(["sce-decomposition"])]
    [True]
    """
    yield from (each.run(seed) for each in checks(only))
