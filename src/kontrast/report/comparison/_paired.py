"""Paired statistics: recipes on the same seeds, and two runs on the same test rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from kontrast.intervals import Interval, paired
from kontrast.report.comparison import recipes
from kontrast.report.comparison.collect import Run
from kontrast.report.comparison.statistics import (
    by_protocol,
    by_seed,
    holm,
    mcnemar,
    predictor,
    right,
    same_rows,
    titles,
)
from kontrast.report.page import Fold, Mark, Part, Table, Text

MOST_PAIRS = 15
LEVEL = 0.05

SEEDS = (
    "The same seeds, two recipes: mean of the differences seed by seed, ± half-width of its 95 % Student-t interval. "
    "Above or below 0 means that the interval lies there as a whole. Only seeds that both have are used; one shared "
    "seed has no interval, and two make it wide (t = 12.7)."
)
ROWS = (
    "The same test rows, two runs: McNemar's exact test on the rows that one has right and the other wrong. It says "
    "whether these two encoders would differ on other test rows of the same kind. It says nothing about seeds: the "
    "same recipes with another seed may turn it round."
)
NONE = (
    "Nothing can be paired: that takes two recipes with a protocol, data and a seed in common, or two runs with "
    "predictions of the same test rows in their analysis.npz."
)


def paired_parts(runs: Sequence[Run]) -> list[Part]:
    """Both kinds, where there is one; words, if there is none."""
    parts: list[Part] = []
    if (over_seeds := _seeds(runs)) is not None:
        parts += [over_seeds, Text(SEEDS, "note")]
    if (over_rows := _rows(runs)) is not None:
        found: list[Part] = [over_rows, Text(ROWS, "note")]
        parts += found if over_seeds is None else [Fold("run by run, on the same test rows", found)]
    return parts or [Text(NONE, "note")]


def _pairs(count: int) -> list[tuple[int, int]]:
    """All, or each against the first where those are too many."""
    every = list(combinations(range(count), 2))
    return every if len(every) <= MOST_PAIRS else [(0, i) for i in range(1, count)]


def _seeds(runs: Sequence[Run]) -> Table | None:
    groups = list(dict.fromkeys(run.group for run in runs))
    rows: list[list[str | Mark]] = []
    protocols = by_protocol(runs)
    name = titles(protocols)
    for protocol, records in protocols.items():
        values = by_seed(runs, records)
        for i, j in _pairs(len(groups)):
            a, b = values.get(groups[i], {}), values.get(groups[j], {})
            if len(set(a) & set(b)) < 2:
                continue
            found = paired(a, b)
            shown = f"{found.mean:+.2f} ± {found.half:.2f}".replace("-", "−")
            differ = _differ(runs, groups[i], groups[j])
            rows.append([f"{groups[i]} − {groups[j]}", name[protocol], shown, str(found.n), _side(found), differ])
    if not rows:
        return None
    columns = ["difference", "protocol", "points of accuracy", "n", "verdict", "the recipes differ in"]
    return Table(columns, rows, "Paired by seed")


def _side(found: Interval) -> str | Mark:
    assert found.low is not None
    assert found.high is not None
    if found.low > 0:
        return Mark("▲ above 0", "good")
    return Mark("▼ below 0", "bad") if found.high < 0 else Mark("○ holds 0: not resolved", "watch")


def _differ(runs: Sequence[Run], first: str, second: str) -> str:
    a, b = (next(run.recipe for run in runs if run.group == group) for group in (first, second))
    keys = recipes.differing([a, b], seed=False)
    return ", ".join(keys) if len(keys) <= 3 else f"{', '.join(keys[:2])} and {len(keys) - 2} more keys"


def _rows(runs: Sequence[Run]) -> Table | None:
    """Of two seeds of one recipe it would ask nothing; with several seeds, recipes are compared seed by seed."""
    have = [run for run in runs if right(run) is not None]
    several = len({run.group for run in runs}) < len(runs)
    pairs = [(a, b) for a, b in combinations(have, 2) if a.group != b.group and (not several or a.seed == b.seed)]
    every = len(pairs) <= MOST_PAIRS
    tested = []
    for a, b in pairs if every else [(a, b) for a, b in pairs if a.group == have[0].group]:
        first, second = right(a), right(b)
        if first is not None and second is not None and predictor(a) == predictor(b) and same_rows(a, b):
            tested.append((a, b, mcnemar(first[0], second[0])))
    if not tested:
        return None
    adjusted = holm([found.p for _, _, found in tested])
    rows: list[list[str | Mark]] = []
    for (a, b, found), p in zip(tested, adjusted, strict=True):
        row: list[str | Mark] = [a.label, b.label, str(found.only_first), str(found.only_second), _p(found.p)]
        row += [_p(p)] if len(tested) > 1 else []
        better = a.label if found.only_first > found.only_second else b.label
        row.append(Mark(f"{better} has more right", "good") if p < LEVEL else Mark("not told apart", "watch"))
        rows.append(row)
    columns = ["first", "second", "only the first right", "only the second right", "p"]
    columns += (["p, Holm"] if len(tested) > 1 else []) + [f"at p < {LEVEL}"]
    rows_of = tested[0][2].rows
    against = "" if every else f"; against {have[0].group} only, for all pairs are many"
    return Table(columns, rows, f"Paired by test row: {predictor(tested[0][0])}, {rows_of:,} rows{against}")


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"
