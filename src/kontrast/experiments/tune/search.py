"""Search procedures: generators that propose settings, receive their scores, and end with one of them.

    search = choose_k()
    phase = next(search)                     the settings to try, and why
    phase = search.send([Score(…), …])       one score for each, in order; until StopIteration, whose value is the
                                             `Ending`: the chosen setting, and why the search stopped

A procedure trains nothing and draws no random numbers: the same scores give the same course. `replay` therefore resumes
it from the scores alone, and `kontrast.experiments.tune.study` makes an Optuna sampler of it. Of everything tried the
choice is the setting with the best score; of equals the first tried.

**k1 and k2**, as the TCL supplement chooses them. (Animesh & Chandraker, supplement section 3.)

    1.  k2 = 1, k1 = 4,000 and 5,000, "almost always working"; with them SupCon, which is k1 = 0, k2 = 1
    2.  "or otherwise with 2 × 10³ and increase it in steps of 2000 till 8 × 10³": if neither beats SupCon
    3.  k1 stays, k2 rises by 0.2 as long as the score does; then 0.1 to either side of the best
    Without labels k1 = 1, because with two positives per anchor a larger one "didn't help much", and only 3 is done.

The supplement remarks that "any value less than 5 × 10³ always gave improvements in performance over SupCon loss".
`check_remark` compares each k1 tried at k2 = 1 with SupCon, seed by seed. The remark

    holds             if every k1 below 5,000 that was tried is resolved above SupCon
    does not hold     if one of them is resolved below it
    is not resolved   otherwise; with one seed always

The procedure itself asks less: there "beats SupCon" means a larger mean.

Deviates: the supplement does not say when its "otherwise" applies, nor when steps are 0.1 and when 0.2; here as above.
It does not say on which rows its values were chosen; here never on the test rows. It has no upper end for k2; here 3,
twice what it uses anywhere.

**The temperature**: a coarse logarithmic grid, then closer and closer to its best value.

    1.  the recipe's own τ, and τ = 0.05, 0.1, 0.2, 0.5, 1
    2.  √(τ_best τ_neighbour) on either side; at the grid's edge twice as far out, within 0.01 … 2
        repeated as long as the best moves and new values differ by a tenth or more
    3.  where the target has a temperature τ_m of its own (SCE, ReSSL): in 1 and 2 the ratio τ_m/τ is the recipe's;
        then, at the best τ, τ_m/τ = 0.3, 0.5, 0.7, 0.9, and step 2 for τ_m, within 0.1 … 0.95:
        at τ_m = τ ReSSL collapses

Values have two digits.
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


class Trials:
    """The settings that a search has tried so far, in order, with their scores."""

    def __init__(self, scores: Iterable[tuple[Setting, Score]] = ()) -> None:
        self.scores = list(scores)

    def ask(self, name: str, why: str, settings: Iterable[Setting]) -> PartOfSearch:
        """Propose those of the settings that were not tried yet, as one phase; nothing if all were."""
        new: list[Setting] = []
        for setting in settings:
            if setting not in new and all(setting != other for other, _ in self.scores):
                new.append(setting)
        if not new:
            return
        scores = yield Phase(name, why, tuple(new))
        if len(scores) != len(new):
            raise ValueError(f"scores={len(scores)} of them: must be one for each of the {len(new)} proposed settings.")
        self.scores += zip(new, scores, strict=True)

    def mean(self, setting: Setting) -> float:
        """The mean score of a setting; NaN if it has none or was not tried."""
        return next((score.mean for other, score in self.scores if other == setting), math.nan)

    def best(self, among: Sequence[Setting] | None = None) -> Setting | None:
        """The setting with the largest mean, the first tried of equals; None if none has a score."""
        best: Setting | None = None
        for setting, score in self.scores:
            candidate = among is None or setting in among
            if candidate and is_better(score.mean, math.nan if best is None else self.mean(best)):
                best = setting
        return best


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


# ------------------------------------------------------------------------------------------------------------ k1 and k2


START = (4000.0, 5000.0)
RANGE = (2000.0, 4000.0, 6000.0, 8000.0)
REMARK = 5000.0
STEP, HALF, MOST_K2 = 0.2, 0.1, 3.0  # of k2
SUPCON: Setting = {"k1": 0.0, "k2": 1.0}


def choose_k(*, supervised: bool = True) -> Search:
    """Search for k1 and k2 as the supplement does.

    Args:
        supervised: False for data without labels: k1 is 1, and only k2 is searched.

    Returns:
        A search procedure (`kontrast.experiments.tune.search`).

    >>> search = choose_k()
    >>> [setting["k1"] for setting in next(search).settings]
    [0.0, 4000.0, 5000.0]
    """
    trials = Trials()
    if not supervised:
        yield from trials.ask("start", "without labels: k1 = 1, and k2 from 1 upwards", [_at(1.0)])
        yield from _raise_k2(trials, 1.0)
        return _end(trials, 1.0)
    why = "k1 = 4000 and 5000 almost always worked in the paper; SupCon (k1 = 0, k2 = 1) to compare with"
    yield from trials.ask("start", why, [SUPCON, *map(_at, START)])
    if not any(is_better(trials.mean(_at(k1)), trials.mean(SUPCON)) for k1 in START):
        why = "neither k1 = 4000 nor 5000 beat SupCon: 2000 to 8000 in steps of 2000"
        yield from trials.ask("range", why, map(_at, RANGE))
    best = trials.best([_at(k1) for k1 in {*START, *RANGE}])
    if best is None:
        return Ending(trials.best(), "no k1 from 2000 to 8000 has a score: every one failed or was stopped")
    yield from _raise_k2(trials, best["k1"])
    return _end(trials, best["k1"])


def _at(k1: float, k2: float = 1.0) -> Setting:
    return {"k1": k1, "k2": k2}


def _raise_k2(trials: Trials, k1: float) -> PartOfSearch:
    best, higher = 1.0, round(1.0 + STEP, 1)
    while higher <= MOST_K2:
        why = f"k1 = {k1:g} stays: does k2 = {higher:g} improve on {best:g}?"
        yield from trials.ask("k2", why, [_at(k1, higher)])
        if not is_better(trials.mean(_at(k1, higher)), trials.mean(_at(k1, best))):
            break
        best, higher = higher, round(higher + STEP, 1)
    sides = [k2 for k2 in (round(best + HALF, 1), round(best - HALF, 1)) if 1.0 < k2 <= MOST_K2]
    values = " and ".join(f"{k2:g}" for k2 in sides)
    yield from trials.ask("k2, half steps", f"beside the best, k2 = {best:g}: {values}", [_at(k1, k2) for k2 in sides])


def _end(trials: Trials, k1: float) -> Ending:
    best = trials.best([setting for setting, _ in trials.scores if setting["k1"] == k1])
    best_of_all = trials.best()
    if best is None:
        return Ending(best_of_all, f"no k2 at k1 = {k1:g} has a score: every one failed or was stopped")
    above = sorted(setting["k2"] for setting, _ in trials.scores if setting["k1"] == k1 and setting["k2"] > best["k2"])
    if above:
        values = ", ".join(f"{k2:g}" for k2 in above)
        why = f"at k1 = {k1:g}, raising k2 above {best['k2']:g} ({values}) did not improve the score"
    else:
        why = f"at k1 = {k1:g}, k2 = {best['k2']:g} is the largest tried, and the score still rose"
    return Ending(best_of_all, why + ("; but nothing tried beat SupCon" if best_of_all == SUPCON else ""))


def check_remark(
    scores: Sequence[tuple[Setting, Score]], seeds: Sequence[int]
) -> tuple[str, Mapping[float, Comparison]]:
    """Check the remark that any k1 below 5,000 beat SupCon.

    Args:
        scores: Settings and scores of a search by `choose_k`.
        seeds: The seeds of the scores.

    Returns:
        The verdict as a sentence, and each k1 with k2 = 1 compared with SupCon.

    >>> scores = [(SUPCON, Score((0.8, 0.81))), ({"k1": 4000.0, "k2": 1.0}, Score((0.82, 0.8305)))]
    >>> check_remark(scores, [0, 1])[0]
    'holds: every k1 below 5000 that was tried (4000) is above SupCon'
    """
    reference = next((score for setting, score in scores if setting == SUPCON), Score((), "failed"))
    results = {
        s["k1"]: compare_scores(score, reference, seeds) for s, score in scores if s["k2"] == 1.0 and s != SUPCON
    }
    below = {k1: each.verdict for k1, each in results.items() if k1 < REMARK}
    values = ", ".join(f"{k1:g}" for k1 in below)
    if "below" in below.values():
        worse = ", ".join(f"{k1:g}" for k1, verdict in below.items() if verdict == "below")
        return f"does not hold: k1 = {worse} is below SupCon", results
    if below and all(verdict == "above" for verdict in below.values()):
        return f"holds: every k1 below 5000 that was tried ({values}) is above SupCon", results
    if len(seeds) == 1:
        return f"{NOT_RESOLVED}: one seed has no interval", results
    return (
        f"{NOT_RESOLVED}: not every k1 below 5000 that was tried ({values}) differs from SupCon by its interval",
        results,
    )


# ---------------------------------------------------------------------------------------------------------- temperature


GRID = (0.05, 0.1, 0.2, 0.5, 1.0)
LEAST, MOST = 0.01, 2.0
RATIOS = (0.3, 0.5, 0.7, 0.9)
LEAST_RATIO, MOST_RATIO = 0.1, 0.95
EDGE = 2.0  # how far out, where the best has no neighbour
CLOSE = 1.1  # the smallest ratio of two values that are worth comparing

Narrowing = Generator[Phase, Sequence[Score], str]


def choose_temperature(own: float, own_target: float | None = None) -> Search:
    """Search for the temperature τ, and for the target's temperature τ_m if there is one.

    Args:
        own: The recipe's τ, tried first.
        own_target: The recipe's τ_m; None for a method without.

    Returns:
        A search procedure (`kontrast.experiments.tune.search`).

    >>> [setting["temperature"] for setting in next(choose_temperature(0.07)).settings]
    [0.07, 0.05, 0.1, 0.2, 0.5, 1.0]
    """
    trials = Trials()

    def at(tau: float) -> Setting:
        if own_target is None:
            return {"temperature": tau}
        return {
            "temperature": tau,
            "target_temperature": own_target if tau == own else _round(tau * own_target / own),
        }

    together = "" if own_target is None else "; the target's temperature in proportion"
    why = f"the recipe's own {own:g}, and a grid from 0.05 to 1{together}"
    yield from trials.ask("coarse", why, map(at, (own, *GRID)))
    why = yield from _narrow(trials, "temperature", at, [own, *GRID], (LEAST, MOST))
    best = trials.best()
    if own_target is None or best is None:
        return Ending(best, why)
    tau = best["temperature"]

    def target(tau_m: float) -> Setting:
        return {"temperature": tau, "target_temperature": tau_m}

    points = [_round(tau * ratio) for ratio in RATIOS]
    name = "target temperature"
    yield from trials.ask(name, f"temperature = {tau:g} stays: the target's, 0.3 to 0.9 of it", map(target, points))
    bounds = (LEAST_RATIO * tau, MOST_RATIO * tau)
    then = yield from _narrow(trials, name, target, [*points, best["target_temperature"]], bounds)
    return Ending(trials.best(), f"{why}; {then}")


def _narrow(
    trials: Trials, name: str, at: Callable[[float], Setting], start: Sequence[float], bounds: tuple[float, float]
) -> Narrowing:
    """Step 2 around the best of the values; returns why it stopped."""
    points = sorted(set(start))
    option = name.replace(" ", "_")
    while True:
        best = trials.best([at(point) for point in points])
        if best is None:
            return f"no {name} has a score: every one failed or was stopped"
        middle = best[option]
        i = points.index(middle)
        below = math.sqrt(points[i - 1] * middle) if i > 0 else middle / EDGE
        above = math.sqrt(points[i + 1] * middle) if i + 1 < len(points) else middle * EDGE
        new = [x for x in map(_round, (below, above)) if bounds[0] <= x <= bounds[1] and _is_new(x, points)]
        if not new:
            return f"nothing between {name} = {middle:g} and its neighbours differs by a tenth or more"
        values = " and ".join(f"{x:g}" for x in new)
        yield from trials.ask(name, f"the best so far is {middle:g}: beside it {values}", map(at, new))
        points = sorted([*points, *new])
        if trials.best([at(point) for point in points]) == best:
            return f"{values} did not improve on {name} = {middle:g}"


def _is_new(x: float, points: Sequence[float]) -> bool:
    return all(max(x / point, point / x) >= CLOSE for point in points)


def _round(x: float) -> float:
    return float(f"{x:.2g}")
