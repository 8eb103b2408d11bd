"""Searches run against made-up scores: nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Callable

from kontrast.experiments.tune.search import Ending, Phase, Score, Search, Setting

Scoring = Callable[[Setting], float]


def run(search: Search, score: Scoring) -> tuple[list[Phase], Ending]:
    """Every phase, and the ending; a score of NaN is a trial that failed."""
    phases = [next(search)]
    while True:
        values = [score(setting) for setting in phases[-1].settings]
        try:
            phases.append(search.send([Score((), "failed") if math.isnan(v) else Score((v,)) for v in values]))
        except StopIteration as stop:
            return phases, stop.value


def settings(phases: list[Phase], *names: str) -> list[tuple[float, ...]]:
    """What was tried, in order."""
    return [tuple(setting[name] for name in names) for phase in phases for setting in phase.settings]
