"""A run against others, as a table for a notebook: `kontrast.Run.compare`.

A difference is this run's accuracy minus the other's, by one protocol on the same data. Where the predictions of both
runs are there (analysis.npz has those of the first protocol), it is paired: the error is that of the rows on which only
one is right, and McNemar's exact test says how likely so uneven a split is by chance. Elsewhere both errors are added
up as if the rows were others, which is too wide. Both speak of test rows; only runs with other seeds speak of seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kontrast.report.comparison.collect import ABSENT, ComparedRun, collect, differing
from kontrast.report.comparison.statistics import (
    McNemar,
    accuracy,
    by_protocol,
    holm,
    paired_test,
    predictor,
    titles,
)
from kontrast.report.comparison.tables import EMPTY, LEVEL, SEEDS, over_seeds, p_value, percent, points
from kontrast.report.page import Cell, Mark, Part, Table, Text
from kontrast.runs import Displayed, ProtocolResult

NOTE = (
    "Differences are this run minus the other, in points of accuracy, ± one standard error over the test rows. Paired: "
    "on the same rows, with McNemar's exact test; it says nothing about other seeds."
)


@dataclass(frozen=True)
class Difference:
    """This run's accuracy minus another's, by one protocol.

    Attributes:
        run: The name of this run.
        other: The name of the other run.
        protocol: The protocol's name; with more words where two have one name.
        about: The protocol in words, with data and rows.
        first: This run's result.
        second: The other's.
        test: The paired test; None where the predictions are not there.
        p: Its p, adjusted for the number of tests (Holm) if there are several.
    """

    run: str
    other: str
    protocol: str
    about: str
    first: ProtocolResult
    second: ProtocolResult
    test: McNemar | None = None
    p: float | None = None

    @property
    def value(self) -> float:
        """The difference, −1…1."""
        return accuracy(self.first) - accuracy(self.second)

    @property
    def error(self) -> float | None:
        """Its standard error; None if a result has none."""
        if self.test is not None:
            return self.test.error
        a, b = self.first.error, self.second.error
        return None if a is None or b is None else math.hypot(a, b)


@dataclass(frozen=True)
class Comparison(Displayed):
    """A run against others; it displays itself as a table.

    Attributes:
        differences: By every protocol that both runs have, for each other run.
        settings: What differs between the recipes: a value for each run, by the setting's key.
        runs: The runs' names, this run first.
        seeds: Recipes paired on the same seeds, if there are several seeds of one.
        messages: What could not be read.
    """

    differences: Sequence[Difference]
    settings: Mapping[str, Sequence[str]]
    runs: Sequence[str]
    seeds: Table | None = None
    messages: Sequence[str] = ()

    def parts(self) -> list[Part]:
        """What it displays."""
        parts: list[Part] = [Text(f"{self.runs[0]} against {', '.join(self.runs[1:])}", "title")]
        parts += [Text(message, "bad") for message in self.messages]
        if self.differences:
            parts += [_table(self.differences), Text(NOTE, "note")]
        else:
            parts.append(Text("No protocol was used by both on the same data: there is nothing to compare.", "watch"))
        if self.seeds is not None:
            parts += [self.seeds, Text(SEEDS, "note")]
        rows = [[key, *values] for key, values in self.settings.items()]
        parts += [Table(["setting", *self.runs], rows)] if rows else [Text("The recipes do not differ.", "note")]
        return parts


def compare(path: Path, *others: Path) -> Comparison:
    """Compare a run with others.

    Args:
        path: The run's folder.
        *others: The folders of the others.

    Returns:
        The comparison.

    Raises:
        ValueError: There is no other run, or a folder is not a run's.
    """
    runs = collect([path, *others])
    this, found = runs[0], list[Difference]()
    protocols = by_protocol(runs)
    names = titles(protocols)
    for other in runs[1:]:
        test = paired_test(this, other)
        for protocol, results in protocols.items():
            is_baseline = ": " in protocol.name  # raw pixels are of the data, whatever the run
            if this.label in results and other.label in results and not is_baseline:
                is_tested = test is not None and predictor(this) == protocol.name
                found.append(
                    Difference(
                        this.label,
                        other.label,
                        names[protocol],
                        protocol.title,
                        results[this.label],
                        results[other.label],
                        test if is_tested else None,
                    )
                )
    recipes = [run.recipe for run in runs]
    settings = {key: [recipe.get(key, ABSENT) for recipe in recipes] for key in differing(recipes)}
    return Comparison(_with_p(found), settings, [run.label for run in runs], over_seeds(runs), _problems(runs))


def _with_p(found: Sequence[Difference]) -> list[Difference]:
    """With the p of each paired test, adjusted for their number."""
    adjusted = iter(holm([difference.test.p for difference in found if difference.test is not None]))
    return [d if d.test is None else Difference(**{**vars(d), "p": next(adjusted)}) for d in found]


def _problems(runs: Sequence[ComparedRun]) -> list[str]:
    unfinished = [f"{run.label}: {run.status}" for run in runs if run.status != "done"]
    return unfinished + [f"{run.label}: {message}" for run in runs for message in run.messages]


def _table(differences: Sequence[Difference]) -> Table:
    several = len({difference.other for difference in differences}) > 1
    tests = sum(difference.test is not None for difference in differences)
    rows: list[list[Cell]] = []
    for d in differences:
        row: list[Cell] = [d.other] if several else []
        row += [d.protocol, percent(d.first), percent(d.second), points(d.value, d.error)]
        only = EMPTY if d.test is None else f"{d.test.only_first:,} : {d.test.only_second:,}"
        row += [only, EMPTY if d.p is None else p_value(d.p), _verdict(d)]
        rows.append(row)
    columns = ["against"] if several else []
    columns += ["protocol", "this, %", "other, %", "difference", "only this : only the other is right"]
    columns += ["p, Holm" if tests > 1 else "p", ""]
    about = dict.fromkeys(f"{difference.protocol}: {difference.about}" for difference in differences)
    return Table(columns, rows, "; ".join(about))


def _verdict(difference: Difference) -> Cell:
    """Better or worse only by a paired test; without one, if the difference is above two of its errors."""
    value, error = difference.value, difference.error
    is_clear = difference.p < LEVEL if difference.p is not None else error is not None and abs(value) > 2 * error
    if not is_clear or not value:
        return Mark("no difference found", "watch")
    return Mark("better", "good") if value > 0 else Mark("worse", "bad")
