"""The page's tables and cards: numbers side by side, paired statistics, geometry, and the runs themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from kontrast.intervals import Interval, interval, paired
from kontrast.report.comparison.charts import groups
from kontrast.report.comparison.collect import ComparedRun, differing
from kontrast.report.comparison.statistics import (
    Protocol,
    accuracy,
    by_protocol,
    by_seed,
    holm,
    leaders,
    paired_test,
    predictor,
    right,
    seed_leaders,
    titles,
)
from kontrast.report.page import Cell, Fold, Mark, Number, Numbers, Part, Table, Text
from kontrast.runs import ProtocolResult

EMPTY = "–"
MOST_PROTOCOLS = 5  # in a table: what a sheet of paper has room for
MOST_PAIRS = 15
LEVEL = 0.05
SIDE_BY_SIDE = 5  # recipes in a table

RULE = (
    "Accuracy ± one standard error over the test rows, of one run each. A difference within two standard errors "
    "(√(e₁² + e₂²)) does not count: runs that close to the best are marked “level”. Protocols are compared only where "
    "protocol, data and test rows are the same."
)
OVER_SEEDS = (
    "Mean over seeds ± half-width of its 95 % Student-t interval; a single seed has none. “Paired statistics” compares "
    "on the same seeds."
)


def numbers(runs: Sequence[ComparedRun]) -> list[Part]:
    """Cards and tables; a sentence if no run has a number."""
    protocols = by_protocol(runs)
    if not protocols:
        return [Text("None of these runs was evaluated, so there is nothing to compare here.", "note")]
    name, every, fitting = titles(protocols), protocols.items(), _fitting(runs, protocols)
    if repeated(runs):
        candidates = [_seeds_card(protocol, by_seed(runs, records), name[protocol]) for protocol, records in every]
        cards = [card for card in candidates if card is not None]
        by_run = [_runs(some, part, marks_best=False) for some, part in fitting]
        over_seeds = [_groups(some, part) for some, part in fitting]
        fold = Fold("run by run", [*by_run, Text(RULE, "note")])
        return [*([Numbers(cards)] if cards else []), *over_seeds, Text(OVER_SEEDS, "note"), fold]
    best = [_card(protocol, records, name[protocol]) for protocol, records in every if len(records) > 1]
    tables = [_runs(some, part, marks_best=True) for some, part in fitting]
    return [*([Numbers(best)] if best else []), *tables, Text(RULE, "note")]


Protocols = dict[Protocol, dict[str, ProtocolResult]]


def _fitting(runs: Sequence[ComparedRun], protocols: Protocols) -> list[tuple[Sequence[ComparedRun], Protocols]]:
    """The content of each table: all if protocols are few; else `MOST_PROTOCOLS` of one data set, with its runs."""
    if len(protocols) <= MOST_PROTOCOLS:
        return [(runs, protocols)]
    result: list[tuple[Sequence[ComparedRun], Protocols]] = []
    for data in dict.fromkeys(protocol.data for protocol in protocols):
        some = [protocol for protocol in protocols if protocol.data == data]
        for i in range(0, len(some), MOST_PROTOCOLS):
            part = {protocol: protocols[protocol] for protocol in some[i : i + MOST_PROTOCOLS]}
            result.append(([run for run in runs if any(run.label in records for records in part.values())], part))
    return result


def _seeds_card(protocol: Protocol, values: dict[str, dict[int, float]], name: str) -> Number | None:
    """The best recipe over seeds, never the luckiest run."""
    if len(values) < 2:
        return None
    first, *level = seed_leaders(values)
    n = len(values[first])
    where = f"n = {n} seed{'' if n == 1 else 's'}. {protocol.title}"
    return _best(name, _mean(interval(values[first].values())), first, level, where, ", on the same seeds")


def _best(name: str, number: str, first: str, level: Sequence[str], where: str, by: str = "") -> Number:
    """The card of the highest number; ``level`` are those that do not differ from it."""
    if not level:
        return Number(f"{name} (%): best", number, f"{first}{by}. {where}", "good")
    others = level[0] if len(level) == 1 else f"{len(level)} others"
    return Number(f"{name} (%): highest", number, f"{first}, not clearly above {others}. {where}")


def repeated(runs: Sequence[ComparedRun]) -> bool:
    """Whether some recipe was run with several seeds."""
    return len({run.group for run in runs}) < len(runs)


def percent(record: ProtocolResult | None) -> str:
    """An accuracy in percent with its standard error: ``85.8 ± 0.8``."""
    if record is None:
        return EMPTY
    return f"{100 * accuracy(record):.1f}" + ("" if record.error is None else f" ± {100 * record.error:.1f}")


def _card(protocol: Protocol, records: dict[str, ProtocolResult], name: str) -> Number:
    first, *level = leaders(records)
    return _best(name, percent(records[first]), first, level, protocol.title)


def _runs(runs: Sequence[ComparedRun], protocols: Protocols, *, marks_best: bool) -> Table:
    rows: list[list[Cell]] = []
    for run in runs:
        row: list[Cell] = [run.label]
        for records in protocols.values():
            top = leaders(records) if marks_best and len(records) > 1 else []
            number = percent(records.get(run.label))
            if run.label not in top:
                row.append(number)
            else:
                row.append(Mark(f"{number} best", "good") if len(top) == 1 else Mark(f"{number} level", "watch"))
        rows.append(row)
    return Table(["run", *(f"{name} (%)" for name in titles(protocols).values())], rows, _caption(protocols))


def _caption(protocols: Protocols) -> str:
    return "; ".join(f"{name}: {protocol.title}" for protocol, name in titles(protocols).items())


def _groups(runs: Sequence[ComparedRun], protocols: Protocols) -> Table:
    rows: list[list[str]] = []
    for group in groups(runs):
        row = [group]
        for records in protocols.values():
            values = [100 * accuracy(records[run.label]) for run in runs if run.group == group and run.label in records]
            row += [_mean(interval(values)), str(len(values))] if values else [EMPTY, "0"]
        rows.append(row)
    columns = ["recipe"]
    for name in titles(protocols).values():
        columns += [f"{name} (%)", "n"]
    data = dict.fromkeys(protocol.data for protocol in protocols)
    return Table(columns, rows, f"Over seeds; {', '.join(data)}")


def _mean(mean: Interval) -> str:
    return f"{mean.mean:.2f}" + ("" if mean.half is None else f" ± {mean.half:.2f}")


# --------------------------------------------------------------------------------------------------- paired statistics

SEEDS = (
    "Two recipes on the same seeds: mean of the differences seed by seed, ± half-width of its 95 % Student-t interval. "
    "Above or below 0: the whole interval lies there. Only seeds that both have are used; one shared seed gives no "
    "interval, and two make it wide (t = 12.7)."
)
ROWS = (
    "Two runs on the same test rows: McNemar's exact test on the rows where only one is right. It says whether these "
    "two encoders would differ on other test rows of the same kind. It says nothing about seeds: with other seeds the "
    "same recipes may give the opposite."
)
NONE = (
    "Nothing can be paired: this needs two recipes with a protocol, data and a seed in common, or two runs with "
    "predictions of the same test rows in their analysis.npz."
)


def paired_parts(runs: Sequence[ComparedRun]) -> list[Part]:
    """Both kinds of pairs; a sentence if there is none."""
    parts: list[Part] = []
    if (by_seed_table := over_seeds(runs)) is not None:
        parts += [by_seed_table, Text(SEEDS, "note")]
    if (over_rows := _rows(runs)) is not None:
        by_row: list[Part] = [over_rows, Text(ROWS, "note")]
        parts += by_row if by_seed_table is None else [Fold("run by run, on the same test rows", by_row)]
    return parts or [Text(NONE, "note")]


def _pairs(count: int) -> list[tuple[int, int]]:
    """All pairs, or each against the first if there are too many."""
    every = list(combinations(range(count), 2))
    return every if len(every) <= MOST_PAIRS else [(0, i) for i in range(1, count)]


def over_seeds(runs: Sequence[ComparedRun]) -> Table | None:
    """Pairs of recipes on the same seeds; None if no two have two seeds in common."""
    names = groups(runs)
    rows: list[list[Cell]] = []
    protocols = by_protocol(runs)
    name = titles(protocols)
    for protocol, records in protocols.items():
        values = by_seed(runs, records)
        for i, j in _pairs(len(names)):
            a, b = values.get(names[i], {}), values.get(names[j], {})
            if len(set(a) & set(b)) < 2:
                continue
            gap = paired(a, b)
            number = f"{gap.mean:+.2f} ± {gap.half:.2f}".replace("-", "−")
            differ = _differ(runs, names[i], names[j])
            rows.append([f"{names[i]} − {names[j]}", name[protocol], number, str(gap.n), _side(gap), differ])
    if not rows:
        return None
    columns = ["difference", "protocol", "points of accuracy", "n", "verdict", "the recipes differ in"]
    return Table(columns, rows, "Paired by seed")


def _side(difference: Interval) -> Cell:
    assert difference.low is not None
    assert difference.high is not None
    if difference.low > 0:
        return Mark("▲ above 0", "good")
    return Mark("▼ below 0", "bad") if difference.high < 0 else Mark("○ contains 0: not resolved", "watch")


def _differ(runs: Sequence[ComparedRun], first: str, second: str) -> str:
    a, b = (next(run.recipe for run in runs if run.group == group) for group in (first, second))
    keys = differing([a, b], seed=False)
    return ", ".join(keys) if len(keys) <= 3 else f"{', '.join(keys[:2])} and {len(keys) - 2} more keys"


def _rows(runs: Sequence[ComparedRun]) -> Table | None:
    """Pairs of different recipes; with several seeds, pairs of the same seed."""
    have = [run for run in runs if right(run) is not None]
    pairs = [
        (a, b) for a, b in combinations(have, 2) if a.group != b.group and (not repeated(runs) or a.seed == b.seed)
    ]
    every = len(pairs) <= MOST_PAIRS
    tested = []
    for a, b in pairs if every else [(a, b) for a, b in pairs if a.group == have[0].group]:
        if (test := paired_test(a, b)) is not None:
            tested.append((a, b, test))
    if not tested:
        return None
    adjusted = holm([test.p for _, _, test in tested])
    rows: list[list[Cell]] = []
    for (a, b, test), p in zip(tested, adjusted, strict=True):
        gap = points(test.difference, test.error)
        row: list[Cell] = [a.label, b.label, gap, str(test.only_first), str(test.only_second), p_value(test.p)]
        row += [p_value(p)] if len(tested) > 1 else []
        better = a.label if test.only_first > test.only_second else b.label
        row.append(Mark(f"{better} is right more often", "good") if p < LEVEL else Mark("no difference found", "watch"))
        rows.append(row)
    columns = ["first", "second", "first − second, points", "only the first is right", "only the second is right", "p"]
    columns += (["p, Holm"] if len(tested) > 1 else []) + [f"at p < {LEVEL}"]
    rows_of = tested[0][2].rows
    against = "" if every else f"; against {have[0].group} only, because there are many pairs"
    return Table(columns, rows, f"Paired by test row: {predictor(tested[0][0])}, {rows_of:,} rows{against}")


def p_value(value: float) -> str:
    """A chance as it is printed.

    >>> p_value(0.04), p_value(0.00002)
    ('0.040', '2e-05')
    """
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def points(difference: float, error: float | None) -> str:
    """A difference of accuracies in points, with its standard error.

    >>> points(-0.0123, 0.004), points(0.02, None)
    ('−1.2 ± 0.4', '+2.0')
    """
    text = f"{100 * difference:+.1f}" + ("" if error is None else f" ± {100 * error:.1f}")
    return text.replace("-", "−")


# ----------------------------------------------------------------------------------------------- geometry, and the runs

LINES = (
    "uniformity",
    "tolerance",
    "effective rank",
    "dead directions",
    "S1",
    "S2",
    "S3",
    "cosine of two class means",
    "cosine to the class mean",
    "NC1",
)


def geometry(runs: Sequence[ComparedRun]) -> list[Part]:
    """A row for each measure, a column for each recipe (mean over its seeds), and the theory's value."""
    names = groups(runs)
    measures: list[list[str]] = []
    for begin in LINES:
        lines = {run.label: line for run in runs if (line := run.measure("embeddings", begin)) is not None}
        if not lines:
            continue
        first = next(iter(lines.values()))
        theories = {_number(line.theory) for line in lines.values()}
        row = [first.name]
        for group in names:
            values = [float(lines[run.label].value or 0.0) for run in runs if run.group == group and run.label in lines]
            row.append(_number(math.fsum(values) / len(values)) if values else EMPTY)
        meaning = (first.meaning or "").partition("; here")[0]  # the rest is about one run
        measures.append([*row, theories.pop() if len(theories) == 1 else EMPTY, meaning])
    if not measures:
        return []
    note = "Embeddings of test rows; means over seeds. The theory's value holds for what stands beside it."
    return [*side_by_side("measure", names, measures, after=("theory", "if")), Text(note, "note")]


def side_by_side(
    corner: str, names: Sequence[str], rows: Sequence[Sequence[Cell]], *, after: Sequence[str] = ()
) -> list[Table]:
    """Tables with a column for each recipe, at most `SIDE_BY_SIDE` in one: a sheet of paper has no room for more.

    A row has its name, a cell for each recipe, and then those of ``after``, which every table repeats.

    >>> tables = side_by_side("key", list("abcdef"), [["lr", *"123456"]])
    >>> [table.columns for table in tables]
    [['key', 'a', 'b', 'c'], ['key', 'd', 'e', 'f']]
    """
    count = len(names)
    size = -(-count // -(-count // SIDE_BY_SIDE))  # tables of equal size
    tables: list[Table] = []
    for i in range(0, count, size):
        end = min(i + size, count)
        cells = [[row[0], *row[1 + i : 1 + end], *row[1 + count :]] for row in rows]
        caption = f"recipes {i + 1} to {end} of {count}" if size < count else ""
        tables.append(Table([corner, *names[i:end], *after], cells, caption))
    return tables


def _number(value: float | None) -> str:
    """A number with as many digits as are useful.

    >>> _number(114.6), _number(12.0), _number(-0.1234)
    ('114.6', '12', '−0.123')
    """
    if value is None:
        return EMPTY
    digits = 0 if value == int(value) else 1 if abs(value) >= 100 else 3
    return f"{value:.{digits}f}".replace("-", "−")


def runs_table(runs: Sequence[ComparedRun]) -> Table:
    """Each run with its status, steps, time, version, and the command that makes it again."""
    rows: list[list[Cell]] = []
    for run in runs:
        state = run.state
        steps = EMPTY if state.step is None else f"{state.step:,}"
        seconds = EMPTY if state.seconds is None else f"{state.seconds:.0f} s"
        version = f"{state.versions.get('kontrast', EMPTY)}, commit {state.versions.get('commit') or 'unknown'}"
        status = run.status if run.status == "done" else Mark(run.status, "bad" if run.status == "failed" else "watch")
        rows.append([run.label, status, steps, seconds, version, f"kontrast train {run.path.name}"])
    return Table(["run", "status", "steps", "time", "kontrast", "make it again, from the folder above"], rows)
