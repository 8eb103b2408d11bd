"""What a check is: a statement of a paper, where it stands, and a function that measures how far it is from true.

A check returns its largest error: of an identity the largest deviation, of an inequality the largest violation. It
holds when the error is finite and at most its tolerance. A statement about what happens strictly, or about where a
theorem fails, can be violated by what does not happen; such checks add `required` to the error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from kontrast.theory._threads import one_thread

Measure = Callable[[torch.Generator], float]
REGISTRY: dict[str, Check] = {}


@dataclass(frozen=True)
class Outcome:
    """One check, run."""

    name: str
    source: str
    statement: str
    conditions: str
    error: float
    tolerance: float
    holds: bool
    seconds: float
    failure: str = ""  # what was raised, if the check could not be measured


@dataclass(frozen=True)
class Check:
    """A statement that can be measured."""

    name: str
    source: str
    statement: str
    conditions: str
    tolerance: float
    measure: Measure

    def run(self, seed: int = 0) -> Outcome:
        """Measure it on random inputs of this seed."""
        began = time.perf_counter()
        error, failure = math.nan, ""
        try:
            with one_thread():
                error = float(self.measure(torch.Generator().manual_seed(seed)))
        except Exception as raised:  # the other checks are still worth running
            failure = f"{type(raised).__name__}: {raised}"
        holds = math.isfinite(error) and error <= self.tolerance
        stated = (self.name, self.source, self.statement, self.conditions)
        return Outcome(*stated, error, self.tolerance, holds, time.perf_counter() - began, failure)


def check(source: str, statement: str, *, tolerance: float, conditions: str = "") -> Callable[[Measure], Measure]:
    """Register a function as a check; its name, with dashes, is the check's name."""

    def register(measure: Measure) -> Measure:
        name = measure.__name__.replace("_", "-")
        if name in REGISTRY:
            raise ValueError(f"two checks are named {name!r}")
        REGISTRY[name] = Check(name, source, statement, conditions, tolerance, measure)
        return measure

    return register


def required(condition: bool) -> float:
    """0 where something that must happen happens, else infinity: the check fails."""
    return 0.0 if condition else math.inf
