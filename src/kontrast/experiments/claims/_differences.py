"""One side of the grid against another, on the same seeds: which is higher, which varies less."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from kontrast.experiments.cell import Value
from kontrast.experiments.claims._parts import Number, Place, Readings, Where, average, lack, named, parts
from kontrast.experiments.claims._verdict import opened, sign_over_seeds
from kontrast.experiments.experiment import Claim, Finding, Row

Side = Mapping[Place, Number]  # what a seed has on a side, by place
Compare = Callable[[Side, Side], Number]


def higher(text: str, measure: str, a: Where, b: Where, within: Sequence[str] = ()) -> Claim:
    """``measure`` is higher where ``a`` than where ``b``: the paired difference over seeds is above 0.

    >>> rows = [Row({"loss": loss, "seed": seed}, "", "done", {"knn": knn}) for loss, seed, knn in
    ...     (("tcl", 0, 80.5), ("tcl", 1, 82.6), ("tcl", 2, 81.4), ("supcon", 0, 80.0), ("supcon", 1, 82.0),
    ...      ("supcon", 2, 81.0))]
    >>> [found] = higher("TCL beats SupCon", "knn", {"loss": "tcl"}, {"loss": "supcon"}).test(rows)
    >>> found.verdict, found.says
    ('holds', 'loss=tcl − loss=supcon = +0.50 ± 0.25 (n = 3), above 0')
    """
    return _difference(text, measure, a, b, within, 1)


def lower(text: str, measure: str, a: Where, b: Where, within: Sequence[str] = ()) -> Claim:
    """``measure`` is lower where ``a`` than where ``b``: the paired difference over seeds is below 0."""
    return _difference(text, measure, a, b, within, -1)


def varies_less(text: str, measure: str, along: str, a: Where, b: Where, within: Sequence[str] = ()) -> Claim:
    """``measure`` varies less along an axis where ``a``: each seed's standard deviations, paired, differ below 0."""

    def spread(side: Side) -> Number:
        curves: dict[Place, list[Number]] = {}
        for place, number in side.items():
            curves.setdefault(tuple(p for p in place if p[0] != along), []).append(number)
        censored = any(number.bound for number in side.values())
        found = statistics.fmean(statistics.pstdev(n.value for n in curve) for curve in curves.values())
        return Number(found, "?" if censored else "")  # not linear: a bound of the values is none of their spread

    def compare(one: Side, other: Side) -> Number:
        return spread(one) + spread(other).times(-1.0)

    statistic = (
        f"each seed's standard deviation of {measure} over {along} where {named(a)} minus that where {named(b)}, at "
        "the values of both; 95 % Student-t interval over seeds below 0"
    )
    name = f"standard deviation along {along}, {_pair(a, b)},"
    return Claim(text, statistic, _test(measure, a, b, within, -1, name, compare, along))


def _difference(text: str, measure: str, a: Where, b: Where, within: Sequence[str], sign: int) -> Claim:
    side = "above" if sign > 0 else "below"
    statistic = (
        f"{measure} where {named(a)} minus {measure} where {named(b)}, on the same seeds; 95 % Student-t interval of "
        f"the paired differences {side} 0"
    )

    def compare(one: Side, other: Side) -> Number:
        return average(list(one.values())) + average(list(other.values())).times(-1.0)

    return Claim(text, statistic, _test(measure, a, b, within, sign, _pair(a, b), compare))


def _pair(a: Where, b: Where) -> str:
    return f"{named(a)} − {named(b)}"


def _test(
    measure: str,
    a: Where,
    b: Where,
    within: Sequence[str],
    sign: int,
    name: str,
    compare: Compare,
    along: str | None = None,
) -> Callable[[Sequence[Row]], list[Finding]]:
    # An axis with one value on a side is what sets the sides apart; the rest must be the same for both.
    apart = {axis for where in (a, b) for axis, value in where.items() if not isinstance(value, tuple)}
    if not apart:
        raise ValueError(f"the sides are {dict(a)} and {dict(b)}; expected an axis on which each has one value")

    def test(rows: Sequence[Row]) -> list[Finding]:
        axes = (*a, *b, *((along,) if along else ()))
        return [_compared(here, part) for part, here in parts(rows, within, *axes).items()]

    def _compared(rows: Sequence[Row], where: str) -> Finding:
        one, other = (Readings(rows, measure, side, tuple(apart)) for side in (a, b))
        lacking = lack(one, other)
        ours, theirs = _common(one.places, other.places)
        if not ours:
            return opened(where, lacking or f"{named(a)} and {named(b)} have no cells at the same place")
        if along and len({dict(place)[along] for place in ours}) < 2:
            return opened(where, lacking or f"{along} has one value; expected two or more")
        seeds: list[Value] = [seed for seed in one.complete(ours) if seed in other.complete(theirs)]
        numbers = [
            compare({p: one.seeds[seed][p] for p in ours}, {p: other.seeds[seed][p] for p in theirs}) for seed in seeds
        ]
        return sign_over_seeds(name, numbers, sign, where=where, lacking=lacking)

    return test


def _common(ours: Sequence[Place], theirs: Sequence[Place]) -> tuple[list[Place], list[Place]]:
    """The places of each side that the other has too; an axis that has only None on a side does not count there.

    None says that the axis does not apply (a loss without a second temperature), so the other side is averaged over it.
    """
    sides = [{axis: {dict(p)[axis] for p in places} for axis, _ in places[0]} for places in (ours, theirs) if places]
    free = {axis for side in sides for axis, values in side.items() if values == {None}}

    def key(place: Place) -> Place:
        return tuple(p for p in place if p[0] not in free)

    first, second = ({key(place) for place in places} for places in (ours, theirs))
    return [p for p in ours if key(p) in second], [p for p in theirs if key(p) in first]
