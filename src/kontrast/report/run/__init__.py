"""The page of a run: did it work, is it good, what is wrong, what next.

Each section is a pure function of the record that `kontrast.report.records` reads. What a run does not have (labels,
images, a test split, monitors) leaves its section out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kontrast.recipe import Recipe
from kontrast.report.page import Page, Part, Section, Text
from kontrast.report.records import RunRecord, find_others, read
from kontrast.report.run import accuracy, curves, embedding, geometry, pictures, summary, verdict
from kontrast.runs import Run

__all__ = ["headline", "page"]

SECTIONS: tuple[Callable[[RunRecord], Section | None], ...] = (
    verdict.section,
    summary.result,
    summary.health,
    curves.section,
    accuracy.section,
    embedding.section,
    pictures.neighbours,
    pictures.views,
    geometry.section,
    summary.reproduce,
)


def page(path: Path) -> Page:
    """The page of a run's folder.

    Raises:
        ValueError: It is not a run's folder.
    """
    run = Run(path)
    if run.task_file.exists() and not run.has_recipe:
        raise ValueError(
            f"{path} is a task of an experiment, not a training run: its numbers are in {run.result_file}, and the "
            "experiment's own report shows them (kontrast report EXPERIMENT)"
        )
    record = read(path)
    record = replace(record, others=find_others(record))
    sections = [section for make in SECTIONS if (section := make(record)) is not None]
    return Page(record.name, subtitle(record), sections)


def headline(path: Path) -> list[Part]:
    """What a run shows of itself: its name and status, what it is, and its page down to the result.

    Raises:
        ValueError: It is not a run's folder.
    """
    record = read(path)
    parts: list[Part] = [Text(f"{record.path.name}: {record.status}", "title"), Text(subtitle(record), "note")]
    for make in SECTIONS[: SECTIONS.index(summary.result) + 1]:
        section = make(record)
        parts += [] if section is None else section.parts
    return parts


def subtitle(record: RunRecord) -> str:
    """What the run is, in a line."""
    recipe = record.contents.recipe
    if recipe is None:
        return record.shown_path
    parts = [
        recipe.about.rstrip("."),
        f"method {recipe.method.name}",
        f"data {Path(recipe.data.name).name}",
        ", ".join([f"encoder {recipe.encoder.name}", *_adaptation(recipe)]),
        f"seed {recipe.seed}",
    ]
    return " · ".join(part for part in parts if part)


def _adaptation(recipe: Recipe) -> list[str]:
    """What did not learn, and whether the weights are an average: without it the numbers would be misread."""
    frozen, words = recipe.train.freeze, []
    if frozen is not None:
        words.append("frozen" if frozen == "all" else f"first {f'{frozen} stages' if frozen > 1 else 'stage'} frozen")
    if recipe.train.average is not None:
        words.append("averaged weights")
    return words
