"""Headline numbers: each protocol's leader, and the table of all runs."""

from __future__ import annotations

from collections.abc import Sequence

from kontrast.intervals import Interval, interval
from kontrast.report.comparison.collect import Json, Run
from kontrast.report.comparison.statistics import Protocol, by_protocol, by_seed, leaders, seed_leaders, titles
from kontrast.report.page import Fold, Mark, Number, Numbers, Part, Table, Text

EMPTY = "–"
MOST = 5  # protocols in a table: what a sheet of paper has room for
RULE = (
    "Accuracy ± one standard error over the test rows, of one run each. A difference within two standard errors "
    "(√(e₁² + e₂²)) is not called better: all that it leaves with the best are marked “level”. Protocols are compared "
    "only where protocol, data and test rows are the same."
)
OVER_SEEDS = (
    "Mean over seeds ± half-width of its 95 % Student-t interval; a single seed has none. What is better on the same "
    "seeds, “Paired statistics” says."
)


def numbers(runs: Sequence[Run]) -> list[Part]:
    """Cards and tables; words, if no run has a number."""
    protocols = by_protocol(runs)
    if not protocols:
        return [Text("None of these runs was evaluated, so there is nothing to compare here.", "note")]
    name, every, fitting = titles(protocols), protocols.items(), _fitting(runs, protocols)
    if repeated(runs):
        made = [_seeds_card(protocol, by_seed(runs, records), name[protocol]) for protocol, records in every]
        cards = [card for card in made if card is not None]
        by_run = [_runs(who, what, marked=False) for who, what in fitting]
        over_seeds = [_groups(who, what) for who, what in fitting]
        fold = Fold("run by run", [*by_run, Text(RULE, "note")])
        return [*([Numbers(cards)] if cards else []), *over_seeds, Text(OVER_SEEDS, "note"), fold]
    found = [_card(protocol, records, name[protocol]) for protocol, records in every if len(records) > 1]
    tables = [_runs(who, what, marked=True) for who, what in fitting]
    return [*([Numbers(found)] if found else []), *tables, Text(RULE, "note")]


Protocols = dict[Protocol, dict[str, Json]]


def _fitting(runs: Sequence[Run], protocols: Protocols) -> list[tuple[Sequence[Run], Protocols]]:
    """What stands in a table: all, if protocols are few; of more, `MOST` of one data set, with its runs."""
    if len(protocols) <= MOST:
        return [(runs, protocols)]
    made: list[tuple[Sequence[Run], Protocols]] = []
    for data in dict.fromkeys(protocol.data for protocol in protocols):
        some = [protocol for protocol in protocols if protocol.data == data]
        for i in range(0, len(some), MOST):
            part = {protocol: protocols[protocol] for protocol in some[i : i + MOST]}
            made.append(([run for run in runs if any(run.label in records for records in part.values())], part))
    return made


def _seeds_card(protocol: Protocol, values: dict[str, dict[int, float]], name: str) -> Number | None:
    """The best recipe over seeds, never the luckiest run."""
    if len(values) < 2:
        return None
    first, *level = seed_leaders(values)
    shown, n = _mean(interval(values[first].values())), len(values[first])
    where = f"n = {n} seed{'' if n == 1 else 's'}. {protocol.title}"
    if not level:
        return Number(f"{name} (%): best", shown, f"{first}, on the same seeds. {where}", "good")
    others = level[0] if len(level) == 1 else f"{len(level)} others"
    return Number(f"{name} (%): highest", shown, f"{first}, not told apart from {others}. {where}")


def repeated(runs: Sequence[Run]) -> bool:
    """Whether some recipe was run with several seeds."""
    return len({run.group for run in runs}) < len(runs)


def percent(record: Json | None) -> str:
    """``85.8 ± 0.8``."""
    if record is None:
        return EMPTY
    error = record.get("error")
    return f"{100 * record['value']:.1f}" + ("" if error is None else f" ± {100 * error:.1f}")


def _card(protocol: Protocol, records: dict[str, Json], name: str) -> Number:
    first, *level = leaders(records)
    if not level:
        return Number(f"{name} (%): best", percent(records[first]), f"{first}. {protocol.title}", "good")
    others = level[0] if len(level) == 1 else f"{len(level)} others"
    about = f"{first}, not told apart from {others}. {protocol.title}"
    return Number(f"{name} (%): highest", percent(records[first]), about)


def _runs(runs: Sequence[Run], protocols: Protocols, *, marked: bool) -> Table:
    rows: list[list[str | Mark]] = []
    for run in runs:
        row: list[str | Mark] = [run.label]
        for records in protocols.values():
            top = leaders(records) if marked and len(records) > 1 else []
            shown = percent(records.get(run.label))
            if run.label not in top:
                row.append(shown)
            else:
                row.append(Mark(f"{shown} best", "good") if len(top) == 1 else Mark(f"{shown} level", "watch"))
        rows.append(row)
    return Table(["run", *(f"{name} (%)" for name in titles(protocols).values())], rows, _says(protocols))


def _says(protocols: Protocols) -> str:
    return "; ".join(f"{name}: {protocol.title}" for protocol, name in titles(protocols).items())


def _groups(runs: Sequence[Run], protocols: Protocols) -> Table:
    rows: list[list[str]] = []
    for group in dict.fromkeys(run.group for run in runs):
        row = [group]
        for records in protocols.values():
            values = [100 * records[run.label]["value"] for run in runs if run.group == group and run.label in records]
            row += [_mean(interval(values)), str(len(values))] if values else [EMPTY, "0"]
        rows.append(row)
    columns = ["recipe"]
    for name in titles(protocols).values():
        columns += [f"{name} (%)", "n"]
    data = dict.fromkeys(protocol.data for protocol in protocols)
    return Table(columns, rows, f"Over seeds; {', '.join(data)}")


def _mean(found: Interval) -> str:
    return f"{found.mean:.2f}" + ("" if found.half is None else f" ± {found.half:.2f}")
