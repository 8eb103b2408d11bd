"""The page of several runs: numbers side by side, what differs in their recipes, how sure the differences are.

collect (files) → statistics → tables, charts → `page`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from kontrast.report.comparison.charts import classes, losses, monitors, plane, simplex
from kontrast.report.comparison.collect import ABSENT, ComparedRun, collect, common, differing
from kontrast.report.comparison.tables import geometry, numbers, paired_parts, runs_table, side_by_side
from kontrast.report.page import Fold, Mark, Page, Part, Section, Table, Text

__all__ = ["page"]


def page(paths: Sequence[Path]) -> Page:
    """The page of at least two runs, finished or not.

    Raises:
        ValueError: Fewer than two folders, or one that is not a run's.
    """
    runs = collect(paths)
    place, by_class = plane(runs), classes(runs)
    near = [*geometry(runs), *simplex(runs)]
    sections = [
        Section("Which is better", [*_statuses(runs), *_messages(runs), *numbers(runs)]),
        Section("What differs", _differences(runs)),
        Section("Paired statistics", paired_parts(runs)),
        Section("Training", losses(runs)),
        Section("Monitors", monitors(runs)),
        Section("Uniformity and tolerance", [place] if place else []),
        Section("Class by class", [by_class] if by_class else []),
        Section("Geometry", near),
        Section("Runs", [runs_table(runs)], open=False),
    ]
    names = list(dict.fromkeys(run.group for run in runs))
    data = ", ".join(dict.fromkeys(run.recipe.get("data.name", "") for run in runs))
    title = " and ".join(names) if len(names) == 2 else f"Comparison of {len(runs)} runs"
    subtitle = f"{len(runs)} runs of {len(names)} recipe{'' if len(names) == 1 else 's'} on {data}"
    return Page(title, subtitle, [section for section in sections if section.parts])


def _statuses(runs: Sequence[ComparedRun]) -> list[Part]:
    return [
        Text(f"{run.label}: {run.status}" + (f". {run.state.error}" if run.state.error else ""), "bad")
        for run in runs
        if run.status != "done"
    ]


def _messages(runs: Sequence[ComparedRun]) -> list[Part]:
    return [Text(f"{run.label}: {message}", "bad") for run in runs for message in run.messages]


def _differences(runs: Sequence[ComparedRun]) -> list[Part]:
    """The keys that differ, each recipe once; what is common is folded."""
    first = {run.group: run.recipe for run in reversed(runs)}
    groups = {group: first[group] for group in dict.fromkeys(run.group for run in runs)}
    shared = common([run.recipe for run in runs])
    fold = Fold(f"{len(shared)} settings in common", [Table(["key", "value"], list(map(list, shared.items())))])
    if len(groups) == 1:
        return [Text("One recipe; the runs differ in the seed alone.", "note"), fold]
    keys = differing(list(groups.values()), seed=False)
    seeds = {group: ", ".join(map(str, sorted(run.seed for run in runs if run.group == group))) for group in groups}
    return [*_tables(groups, keys, seeds), Text(RESOLVED, "note"), fold]


RESOLVED = (
    "Resolved recipes, defaults included. How a run is run (device, workers, folder) is left out, because it is not "
    "meant to change the result. Values unlike those of most recipes are marked."
)


def _tables(groups: Mapping[str, Mapping[str, str]], keys: Sequence[str], seeds: Mapping[str, str]) -> list[Table]:
    cells = {key: _cells([recipe.get(key, ABSENT) for recipe in groups.values()]) for key in keys}
    cells["seeds"] = list(seeds.values())
    return side_by_side("key", list(groups), [[key, *row] for key, row in cells.items()])


def _cells(values: Sequence[str]) -> list[str | Mark]:
    """Mark values unlike the most common one; among equally common values the first counts."""
    usual = Counter(values).most_common(1)[0][0]
    return [value if value == usual else Mark(value, "differs") for value in values]
