"""What a search is: a generator that proposes settings, is sent their scores, and ends with one of them.

    search = choose_k()
    phase = next(search)                     which settings, and why these
    phase = search.send([Score(…), …])       a score for each, in their order; until StopIteration, whose value
                                             is the `Ending`: the setting chosen, and why the search stopped

A search trains nothing and draws nothing, so the same scores give the same course: to go on after a stop it is begun
anew and sent what is known already.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Setting: TypeAlias = Mapping[str, float]
"""Options of the method: ``{"k1": 4000.0, "k2": 1.0}``."""


@dataclass(frozen=True)
class Score:
    """What came of a setting: a number a seed, better when larger; none but "done" has a mean.

    ``state`` is "done", "failed" (a loss that is no number, say) or "stopped early"; ``note`` says why.

    >>> Score((0.5, 0.75)).mean, Score((0.5, float("nan"))).mean, Score((0.5,), "stopped early").mean
    (0.625, nan, nan)
    """

    values: tuple[float, ...] = ()
    state: str = "done"
    note: str = ""

    @property
    def mean(self) -> float:
        """Over the seeds; NaN if one of them has no number."""
        return sum(self.values) / len(self.values) if self.state == "done" and self.values else math.nan


@dataclass(frozen=True)
class Phase:
    """Settings to be tried next, whatever comes of each of them, and why."""

    name: str
    why: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Ending:
    """The setting chosen, None if none has a score, and why the search stopped."""

    chosen: Setting | None
    why: str


Search: TypeAlias = Generator[Phase, Sequence[Score], Ending]
Asking: TypeAlias = Generator[Phase, Sequence[Score], None]


class Tried:
    """What a search has tried so far, in order."""

    def __init__(self) -> None:
        self.scores: list[tuple[Setting, Score]] = []

    def ask(self, name: str, why: str, settings: Iterable[Setting]) -> Asking:
        """A phase with those of the settings that are new; no phase if none is."""
        new: list[Setting] = []
        for setting in settings:
            if setting not in new and all(setting != known for known, _ in self.scores):
                new.append(setting)
        if not new:
            return
        scores = yield Phase(name, why, tuple(new))
        if len(scores) != len(new):
            raise ValueError(f"{len(new)} settings were proposed and {len(scores)} scores came back; expected one each")
        self.scores += zip(new, scores, strict=True)

    def mean(self, setting: Setting) -> float:
        """Its mean score; NaN if it has none or was not tried."""
        return next((score.mean for known, score in self.scores if known == setting), math.nan)

    def best(self, among: Sequence[Setting] | None = None) -> Setting | None:
        """The largest mean; of equals the first tried; None if none has a score."""
        chosen: Setting | None = None
        for setting, score in self.scores:
            wanted = among is None or setting in among
            if wanted and better(score.mean, math.nan if chosen is None else self.mean(chosen)):
                chosen = setting
        return chosen


def better(one: float, other: float) -> bool:
    """Whether one score is above the other; a number is above none, and none above nothing.

    >>> better(0.2, 0.1), better(0.1, 0.1), better(0.1, math.nan), better(math.nan, 0.1), better(math.nan, math.nan)
    (True, False, True, False, False)
    """
    return one > other or (not math.isnan(one) and math.isnan(other))


def said(setting: Setting) -> str:
    """A setting in words.

    >>> said({"k1": 4000.0, "k2": 1.2})
    'k1 = 4000, k2 = 1.2'
    """
    return ", ".join(f"{name.replace('_', ' ')} = {value:g}" for name, value in setting.items())
