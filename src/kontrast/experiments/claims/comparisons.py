"""Claims about values: one side of the grid against another, a target, a level, and every part of the grid.

``higher``, ``lower``, ``not_below``, ``not_above`` and ``varies_less`` compare two sides on the same seeds. With one
seed the error is that of the values themselves if the rows have it (`_own_errors`), else it comes from how the
difference varies over the places that are averaged, three or more (`_replicates`). ``pooled=True`` adds a finding over
all parts together, if there are several parts.

``near`` is for what theory fixes (a loss at its bound): every run must be there, and no interval is needed.
``collapses`` and ``stays`` are for what may differ between seeds: they take the worst run of each seed, and its
interval over seeds. ``everywhere`` asks whether a claim holds in every part ("similar on all data sets").
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from kontrast.experiments.cell import At, Value
from kontrast.experiments.claims.readings import (
    FAILS,
    HOLDS,
    OPEN,
    Number,
    Place,
    Readings,
    SingleSeed,
    Where,
    at,
    average,
    by_part,
    label,
    lack,
    matches,
    open_finding,
    parts,
    sign_over_seeds,
    weakest,
)
from kontrast.experiments.experiment import Claim, Finding, Row, is_censored, value_of

Side = Mapping[Place, Number]  # what a seed has on a side, by place
Compare = Callable[[Side, Side], Number]


def higher(text: str, measure: str, a: Where, b: Where, within: Sequence[str] = (), *, pooled: bool = False) -> Claim:
    """``measure`` is higher where ``a`` than where ``b``: the paired difference over seeds is above 0.

    >>> rows = [Row({"loss": loss, "seed": seed}, "", "done", {"knn": knn}) for loss, seed, knn in
    ...     (("tcl", 0, 80.5), ("tcl", 1, 82.6), ("tcl", 2, 81.4), ("supcon", 0, 80.0), ("supcon", 1, 82.0),
    ...      ("supcon", 2, 81.0))]
    >>> [found] = higher("TCL beats SupCon", "knn", {"loss": "tcl"}, {"loss": "supcon"}).test(rows)
    >>> print(f"{found.verdict}: {found.says}")
    holds: loss=tcl − loss=supcon = +0.50 ± 0.25 (n = 3), above 0; the smallest visible effect is 0.31
    """
    return _difference(text, measure, a, b, within, 1, pooled=pooled)


def lower(text: str, measure: str, a: Where, b: Where, within: Sequence[str] = (), *, pooled: bool = False) -> Claim:
    """``measure`` is lower where ``a`` than where ``b``: the paired difference over seeds is below 0."""
    return _difference(text, measure, a, b, within, -1, pooled=pooled)


def not_below(
    text: str, measure: str, a: Where, b: Where, margin: float, within: Sequence[str] = (), *, pooled: bool = False
) -> Claim:
    """``measure`` is at least as high where ``a``: the paired difference is above −``margin`` (non-inferiority).

    >>> rows = [Row({"loss": loss, "seed": seed}, "", "done", {"knn": knn}) for loss, seed, knn in
    ...     (("tcl", 0, 80.1), ("tcl", 1, 81.9), ("tcl", 2, 81.0), ("supcon", 0, 80.0), ("supcon", 1, 82.0),
    ...      ("supcon", 2, 81.0))]
    >>> not_below("TCL is no worse", "knn", {"loss": "tcl"}, {"loss": "supcon"}, 0.5).test(rows)[0].says
    'loss=tcl − loss=supcon = 0.00 ± 0.25 (n = 3), above -0.5; the smallest visible effect is 0.31'
    """
    return _difference(text, measure, a, b, within, 1, pooled=pooled, about=-_positive(margin))


def not_above(
    text: str, measure: str, a: Where, b: Where, margin: float, within: Sequence[str] = (), *, pooled: bool = False
) -> Claim:
    """``measure`` gains nothing where ``a``: the paired difference is below ``margin``, so that a gain is smaller.

    >>> rows = [Row({"epochs": epochs, "seed": seed}, "", "done", {"knn": knn}) for epochs, seed, knn in
    ...     ((250, 0, 95.6), (250, 1, 95.5), (250, 2, 95.7), (150, 0, 95.5), (150, 1, 95.5), (150, 2, 95.5))]
    >>> found = not_above("longer gains nothing", "knn", {"epochs": 250}, {"epochs": 150}, 0.5).test(rows)[0]
    >>> print(f"{found.verdict}: {found.says.partition(';')[0]}")
    holds: epochs=250 − epochs=150 = 0.10 ± 0.25 (n = 3), below 0.5
    """
    return _difference(text, measure, a, b, within, -1, pooled=pooled, about=_positive(margin))


def _positive(margin: float) -> float:
    if not margin > 0:
        raise ValueError(f"margin={margin:g}: must be above 0.")
    return margin


def varies_less(
    text: str, measure: str, along: str, a: Where, b: Where, within: Sequence[str] = (), *, pooled: bool = False
) -> Claim:
    """``measure`` varies less along an axis where ``a``: each seed's standard deviations, paired, differ below 0."""

    def deviation_of(side: Side) -> Number:
        curves: dict[Place, list[Number]] = {}
        for place, number in side.items():
            curves.setdefault(tuple(p for p in place if p[0] != along), []).append(number)
        censored = any(number.bound for number in side.values())
        deviation = statistics.fmean(statistics.pstdev(n.value for n in curve) for curve in curves.values())
        return Number(deviation, "?" if censored else "")  # not linear: a bound of the values is none of their spread

    def compare(one: Side, other: Side) -> Number:
        return deviation_of(one) + deviation_of(other).times(-1.0)

    statistic = (
        f"each seed's standard deviation of {measure} over {along} where {label(a)} minus that where {label(b)}, at "
        "the values of both; 95 % Student-t interval over seeds below 0"
    )
    name = f"standard deviation along {along}, {_pair(a, b)},"
    return Claim(text, statistic, _test(measure, a, b, within, -1, name, compare, along, pooled=pooled), (measure,))


def _difference(
    text: str,
    measure: str,
    a: Where,
    b: Where,
    within: Sequence[str],
    sign: int,
    *,
    pooled: bool,
    about: float = 0.0,
) -> Claim:
    side = "above" if sign > 0 else "below"
    statistic = (
        f"{measure} where {label(a)} minus {measure} where {label(b)}, on the same seeds; 95 % Student-t interval of "
        f"the paired differences {side} {about:g}"
    )

    def compare(one: Side, other: Side) -> Number:
        return average(list(one.values())) + average(list(other.values())).times(-1.0)

    test = _test(measure, a, b, within, sign, _pair(a, b), compare, pooled=pooled, about=about)
    return Claim(text, statistic, test, (measure,))


def _pair(a: Where, b: Where) -> str:
    return f"{label(a)} − {label(b)}"


def _test(
    measure: str,
    a: Where,
    b: Where,
    within: Sequence[str],
    sign: int,
    name: str,
    compare: Compare,
    along: str | None = None,
    *,
    pooled: bool = False,
    about: float = 0.0,
) -> Callable[[Sequence[Row]], list[Finding]]:
    # An axis with one value on a side, or with others on each, sets the sides apart; the rest is the same for both.
    apart = {axis for where in (a, b) for axis, value in where.items() if not isinstance(value, tuple)}
    apart |= {axis for axis in a if axis in b and axis not in apart and not set(a[axis]) & set(b[axis])}
    if not apart:
        raise ValueError(f"a={dict(a)} and b={dict(b)}: must have an axis on which their values differ.")

    def _dropped(side: Where) -> tuple[str, ...]:
        """The axes that are no part of a side's places: a side with several values on one is averaged over them."""
        return tuple(axis for axis in apart if not isinstance(side.get(axis), tuple))

    def test(rows: Sequence[Row]) -> list[Finding]:
        axes = (*a, *b, *((along,) if along else ()))
        every = parts(rows, within, *axes)
        findings = [_compared(here, part) for part, here in every.items()]
        if pooled and len(every) > 1:
            findings.append(_compared(rows, f"all {len(every)} together", within))
        return findings

    def _compared(rows: Sequence[Row], where: str, by: Sequence[str] = ()) -> Finding:
        one, other = (Readings(rows, measure, side, _dropped(side)) for side in (a, b))
        lacking = lack(one, other)
        ours, theirs = _common(one.places, other.places, apart)
        if not ours:
            return open_finding(where, lacking or f"{label(a)} and {label(b)} have no cells at the same place")
        if along and len({dict(place)[along] for place in ours}) < 2:
            return open_finding(where, lacking or f"{along} has one value; expected two or more")
        seeds: list[Value] = [seed for seed in one.complete(ours) if seed in other.complete(theirs)]
        numbers = [
            compare({p: one.seeds[seed][p] for p in ours}, {p: other.seeds[seed][p] for p in theirs}) for seed in seeds
        ]
        single = None
        if len(seeds) == 1:
            of_seed = {p: one.seeds[seeds[0]][p] for p in ours}, {p: other.seeds[seeds[0]][p] for p in theirs}
            single_error = None if along else _own_errors((one, other), (ours, theirs), seeds[0])
            single = single_error or _replicates(*of_seed, compare, along, by)
        return sign_over_seeds(name, numbers, sign, where=where, lacking=lacking, about=about, single=single)

    return test


def _own_errors(
    readings: tuple[Readings, Readings], places: tuple[list[Place], list[Place]], seed: Value
) -> SingleSeed | None:
    """From the standard errors of the values, taken as independent: for the same test rows it is too large."""
    sides = []
    for reading, here in zip(readings, places, strict=True):
        if any((seed, place) not in reading.errors or reading.seeds[seed][place].bound for place in here):
            return None
        sides.append(math.sqrt(math.fsum(reading.errors[seed, place] ** 2 for place in here)) / len(here))
    return SingleSeed(math.hypot(*sides), math.inf, "the values' own errors")


def _replicates(one: Side, other: Side, compare: Compare, along: str | None, by: Sequence[str]) -> SingleSeed | None:
    """From how the comparison varies over the places that are averaged (data sets, temperatures): each a replicate.

    ``by`` are the axes whose values are the replicates, where there are others too; else all but ``along`` are.
    """

    def groups(side: Side) -> dict[Place, dict[Place, Number]]:
        places: dict[Place, dict[Place, Number]] = {}
        for place, number in side.items():
            key = tuple(p for p in place if (p[0] in by if by else p[0] != along))
            places.setdefault(key, {})[place] = number
        return places

    ours, theirs = groups(one), groups(other)
    if set(ours) != set(theirs) or len(ours) < 3:
        return None
    each = [compare(ours[key], theirs[key]) for key in ours]
    if any(number.bound for number in each):
        return None
    error = statistics.stdev(number.value for number in each) / math.sqrt(len(each))
    return SingleSeed(error, len(each) - 1, f"{len(each)} places as replicates")


def _common(ours: Sequence[Place], theirs: Sequence[Place], apart: Collection[str]) -> tuple[list[Place], list[Place]]:
    """The places of each side that the other has too; an axis that has only None on a side does not count there.

    None says that the axis does not apply (a loss without a second temperature), so the other side is averaged over it.
    So it is over an axis that sets the sides apart (``apart``), where it has several values.
    """
    sides = [{axis: {dict(p)[axis] for p in places} for axis, _ in places[0]} for places in (ours, theirs) if places]
    free = {axis for side in sides for axis, values in side.items() if values == {None}} | set(apart)

    def key(place: Place) -> Place:
        return tuple(p for p in place if p[0] not in free)

    first, second = ({key(place) for place in places} for places in (ours, theirs))
    return [p for p in ours if key(p) in second], [p for p in theirs if key(p) in first]


# --------------------------------------------------------------------------------------------------------------- levels


def near(
    text: str,
    measure: str,
    target: float | Callable[[At], float],
    tolerance: float,
    where: Where | None = None,
    within: Sequence[str] = (),
) -> Claim:
    """Every run's ``measure`` lies within ``tolerance`` of the target, a number or a function of its place.

    One run that does not decides against it, whatever is still missing.

    >>> rows = [Row({"classes": k, "seed": 0}, "", "done", {"cosine": -1 / (k - 1) + k * 1e-6}) for k in (3, 10)]
    >>> near("a simplex", "cosine", lambda at: -1 / (at["classes"] - 1), 1e-4).test(rows)[0].says
    'furthest from its target by 1e-05, at classes=10, seed=0 (2 runs, tolerance 0.0001)'
    """
    where = where or {}
    aim = "its target" if callable(target) else f"{target:g}"
    statistic = f"the largest distance of {measure} from {aim}{at(where)} over all runs is at most {tolerance:g}"

    def one(rows: Sequence[Row], part: str) -> Finding:
        lacking = lack(Readings(rows, measure, where))
        off: list[tuple[float, Row]] = []
        for row in rows:
            if matches(row, where) and (value := value_of(row, measure)) is not None:
                if is_censored(row, measure):
                    return open_finding(part, f"{row.folder} is censored at {value:g}: how far it goes is not known")
                off.append((abs(value - (target(row.at) if callable(target) else target)), row))
        if not off:
            return open_finding(part, lacking)
        furthest, there = max(off, key=lambda pair: pair[0])
        says = f"furthest from {aim} by {furthest:.3g}, at {label(there.at)} ({len(off)} runs, tolerance {tolerance:g})"
        if furthest > tolerance:
            return Finding(FAILS, says, part, furthest, None, len(off))
        if lacking:
            return open_finding(part, f"{says}: {lacking}")
        return Finding(HOLDS, says, part, furthest, None, len(off))

    return Claim(text, statistic, by_part(one, within, *where), (measure,))


def collapses(text: str, measure: str, below: float, where: Where | None = None, within: Sequence[str] = ()) -> Claim:
    """``measure`` ends below a level: each seed's largest value over its cells, and its interval over seeds.

    >>> rows = [Row({"loss": "ressl", "seed": s}, "", "done", {"spread": v}) for s, v in enumerate((0.01, 0.02, 0.015))]
    >>> collapses("ReSSL collapses", "spread", 0.1, {"loss": "ressl"}).test(rows)[0].says
    'largest spread = 0.015 ± 0.012 (n = 3), below 0.1; the smallest visible effect is 0.015; 3 of 3 seeds below'
    """
    return _level(text, measure, below, where or {}, within, -1)


def stays(text: str, measure: str, above: float, where: Where | None = None, within: Sequence[str] = ()) -> Claim:
    """``measure`` ends above a level: each seed's smallest value over its cells, and its interval over seeds."""
    return _level(text, measure, above, where or {}, within, 1)


def _level(text: str, measure: str, level: float, where: Where, within: Sequence[str], sign: int) -> Claim:
    word, side, worst = ("smallest", "above", min) if sign > 0 else ("largest", "below", max)
    statistic = (
        f"each seed's {word} {measure}{at(where)}; 95 % Student-t interval of its mean over seeds {side} {level:g}"
    )

    def one(rows: Sequence[Row], part: str) -> Finding:
        reading = Readings(rows, measure, where)
        worst_values: list[Number] = []
        for seed in reading.complete(reading.places):
            values = list(reading.seeds[seed].values())
            # The smallest of lower bounds is a lower bound, and so is the largest.
            bound = "≥" if any(number.bound for number in values) else ""
            worst_values.append(Number(worst(number.value for number in values), bound))
        finding = sign_over_seeds(
            f"{word} {measure}", worst_values, sign, where=part, lacking=lack(reading), about=level
        )
        count = sum(sign * (number.value - level) > 0 for number in worst_values)
        says = f"{finding.says}; {count} of {len(worst_values)} seeds {side}" if worst_values else finding.says
        return replace(finding, says=says)

    return Claim(text, statistic, by_part(one, within, *where), (measure,))


# ----------------------------------------------------------------------------------------------- every part of the grid


def everywhere(text: str, claim: Claim, axis: str = "data") -> Claim:
    """``claim``, which has a finding for each value of ``axis``, holds for every one of them.

    It does not hold as soon as one part does not, and is open while one is; with a single part there is nothing to
    compare.

    >>> from kontrast.experiments.claims import rises
    >>> rows = [Row({"data": d, "tau": t, "seed": s}, "", "done", {"knn": sign * t + 0.01 * s * t})
    ...     for d, sign in (("cifar10", 1), ("svhn", 1)) for t in (0.1, 0.2, 0.4) for s in range(3)]
    >>> each = rises("it rises", "knn", "tau", within=("data",))
    >>> everywhere("it rises on all sets", each).test(rows)[0].says
    'holds on 2 of 2 (data=cifar10, data=svhn)'
    """

    def test(rows: Sequence[Row]) -> list[Finding]:
        findings = claim.test(rows)
        parts = [finding for finding in findings if finding.where.startswith(f"{axis}=")]
        if len(parts) < 2:
            return [open_finding("", f"{axis} has one value; expected two or more")]
        verdicts = [finding.verdict for finding in parts]
        says = f"holds on {verdicts.count(HOLDS)} of {len(parts)} ({', '.join(f.where for f in parts)})"
        others = {FAILS: "does not hold on", OPEN: "open on"}
        for other, words in others.items():
            if other in verdicts:
                says += f"; {words} {', '.join(f.where for f in parts if f.verdict == other)}"
        return [Finding(weakest(verdicts), says, "", n=len(parts))]

    statistic = f'the verdict of each value of {axis} on "{claim.text}": {claim.statistic}'
    return replace(claim, text=text, statistic=statistic, test=test)
