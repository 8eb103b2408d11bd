"""Where a measure stands: near a target, or on one side of a level.

``near`` is for what theory fixes (a loss at its bound): every run must be there, and no interval is needed.
``collapses`` and ``stays`` are for what may go either way by the seed: the worst run of each seed, and its interval
over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kontrast.experiments.cell import At
from kontrast.experiments.claims._parts import Number, Readings, Where, at, by_part, lack, matches, named
from kontrast.experiments.claims._verdict import FAILS, HOLDS, opened, sign_over_seeds
from kontrast.experiments.experiment import Claim, Finding, Row, is_censored, value_of


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
                    return opened(part, f"{row.folder} is censored at {value:g}: how far it goes is not known")
                off.append((abs(value - (target(row.at) if callable(target) else target)), row))
        if not off:
            return opened(part, lacking)
        furthest, there = max(off, key=lambda pair: pair[0])
        says = f"furthest from {aim} by {furthest:.3g}, at {named(there.at)} ({len(off)} runs, tolerance {tolerance:g})"
        if furthest > tolerance:
            return Finding(FAILS, says, part, furthest, None, len(off))
        if lacking:
            return opened(part, f"{says}: {lacking}")
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
        read = Readings(rows, measure, where)
        chosen: list[Number] = []
        for seed in read.complete(read.places):
            values = list(read.seeds[seed].values())
            # The smallest of lower bounds is a lower bound, and so is the largest.
            bound = "≥" if any(number.bound for number in values) else ""
            chosen.append(Number(worst(number.value for number in values), bound))
        found = sign_over_seeds(f"{word} {measure}", chosen, sign, where=part, lacking=lack(read), about=level)
        count = sum(sign * (number.value - level) > 0 for number in chosen)
        says = f"{found.says}; {count} of {len(chosen)} seeds {side}" if chosen else found.says
        return replace(found, says=says)

    return Claim(text, statistic, by_part(one, within, *where), (measure,))
