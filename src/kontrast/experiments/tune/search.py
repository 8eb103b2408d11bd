"""A search procedure: a generator that proposes settings, receives their scores, and ends with one of them.

    search = choose_k()
    phase = next(search)                     the settings to try, and why
    phase = search.send([Score(…), …])       one score for each, in order; until StopIteration, whose value is the
                                             `Ending`: the chosen setting, and why the search stopped

A procedure trains nothing and draws no random numbers: the same scores give the same course. `replay` therefore resumes
it from the scores alone, and `kontrast.experiments.tune.study` makes an Optuna sampler of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kontrast.intervals import Interval, paired

Setting: TypeAlias = Mapping[str, Any]
"""Names and values: ``{"k1": 4000.0, "k2": 1.0}``."""

NOT_RESOLVED = "not resolved"


@dataclass(frozen=True)
class Score:
    """The scores of a setting, one for each seed; larger is better.

    Args:
        values: One number for each seed.
        state: "done", "failed" (for example a loss that is not finite) or "stopped early". Only "done" has a mean.
        note: Why it failed or was stopped.

    >>> Score((0.5, 0.75)).mean, Score((0.5, float("nan"))).mean, Score((0.5,), "stopped early").mean
    (0.625, nan, nan)
    """

    values: tuple[float, ...] = ()
    state: str = "done"
    note: str = ""

    @property
    def mean(self) -> float:
        """The mean over the seeds; NaN if a seed has no score."""
        return sum(self.values) / len(self.values) if self.state == "done" and self.values else math.nan


@dataclass(frozen=True)
class Phase:
    """Settings to try next, independent of each other's scores, and why."""

    name: str
    why: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Ending:
    """The chosen setting (None if no setting has a score), and why the search stopped."""

    chosen: Setting | None
    why: str


Search: TypeAlias = Generator[Phase, Sequence[Score], Ending]
PartOfSearch: TypeAlias = Generator[Phase, Sequence[Score], None]


class Tried:
    """The settings that a search has tried so far, in order, with their scores."""

    def __init__(self, scores: Iterable[tuple[Setting, Score]] = ()) -> None:
        self.scores = list(scores)

    def ask(self, name: str, why: str, settings: Iterable[Setting]) -> PartOfSearch:
        """Propose those of the settings that were not tried yet, as one phase; nothing if all were."""
        new: list[Setting] = []
        for setting in settings:
            if setting not in new and all(setting != known for known, _ in self.scores):
                new.append(setting)
        if not new:
            return
        scores = yield Phase(name, why, tuple(new))
        if len(scores) != len(new):
            raise ValueError(f"scores={len(scores)} of them: must be one for each of the {len(new)} proposed settings.")
        self.scores += zip(new, scores, strict=True)

    def mean(self, setting: Setting) -> float:
        """The mean score of a setting; NaN if it has none or was not tried."""
        return next((score.mean for known, score in self.scores if known == setting), math.nan)

    def best(self, among: Sequence[Setting] | None = None) -> Setting | None:
        """The setting with the largest mean, the first tried of equals; None if none has a score."""
        chosen: Setting | None = None
        for setting, score in self.scores:
            candidate = among is None or setting in among
            if candidate and is_better(score.mean, math.nan if chosen is None else self.mean(chosen)):
                chosen = setting
        return chosen


@dataclass
class Course:
    """How far a procedure comes with the scores there are.

    Args:
        phases: The phases begun, the last perhaps unfinished.
        scores: The settings with a score, in the order of the procedure.
        missing: The next setting to score; None at the end.
        ending: The end; None before.
    """

    phases: list[Phase] = field(default_factory=list)
    scores: list[tuple[Setting, Score]] = field(default_factory=list)
    missing: Setting | None = None
    ending: Ending | None = None


def replay(search: Search, score_of: Callable[[Setting], Score | None]) -> Course:
    """Run a procedure from its beginning until it asks for a setting without a score, or ends.

    >>> from kontrast.experiments.tune import choose_k
    >>> replay(choose_k(), lambda setting: Score((0.5,)) if setting["k1"] == 0 else None).missing
    {'k1': 4000.0, 'k2': 1.0}
    """
    course = Course()
    phase = next(search)
    while True:
        course.phases.append(phase)
        scores: list[Score] = []
        for setting in phase.settings:
            score = score_of(setting)
            if score is None:
                course.missing = setting
                return course
            course.scores.append((setting, score))
            scores.append(score)
        try:
            phase = search.send(scores)
        except StopIteration as stop:
            course.ending = stop.value
            return course


def is_better(one: float, other: float) -> bool:
    """Whether a mean score is above another; every number is above NaN.

    >>> nan = math.nan
    >>> is_better(0.2, 0.1), is_better(0.1, 0.1), is_better(0.1, nan), is_better(nan, 0.1), is_better(nan, nan)
    (True, False, True, False, False)
    """
    return one > other or (not math.isnan(one) and math.isnan(other))


@dataclass(frozen=True)
class Comparison:
    """A setting against another on the same seeds: ``above``, ``below``, ``not resolved`` or ``not measured``."""

    verdict: str
    difference: Interval | None = None


def compare_scores(score: Score, reference: Score, seeds: Sequence[int]) -> Comparison:
    """Compare two scores by their difference, seed by seed.

    The difference is resolved if Student's 95 % interval of its mean does not contain 0; with one seed it never is.

    >>> compare_scores(Score((0.82, 0.84, 0.83)), Score((0.80, 0.82, 0.81)), [0, 1, 2]).verdict
    'above'
    >>> compare_scores(Score((0.82,)), Score((0.80,)), [0]).verdict
    'not resolved'
    >>> compare_scores(Score((), "failed"), Score((0.8,)), [0]).verdict
    'not measured'
    """
    if score.state != "done" or reference.state != "done":
        return Comparison("not measured")
    one, other = (dict(zip(seeds, each.values, strict=True)) for each in (score, reference))
    d = paired(one, other)
    if d.half is None or abs(d.mean) <= d.half:
        return Comparison(NOT_RESOLVED, d)
    return Comparison("above" if d.mean > 0 else "below", d)


def format_value(value: Any) -> str:
    """A value as it stands on a command line: numbers without needless digits.

    >>> format_value(5000.0), format_value(0.0374), format_value(True), format_value(["weak", "strong"])
    ('5000', '0.0374', 'true', '[weak, strong]')
    """
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {format_value(each)}" for key, each in value.items()) + "}"
    return str(value)


def describe_setting(setting: Setting) -> str:
    """A setting for people.

    >>> describe_setting({"k1": 4000.0, "k2": 1.2})
    'k1 = 4000, k2 = 1.2'
    """
    return ", ".join(f"{name.replace('_', ' ')} = {format_value(value)}" for name, value in setting.items())
