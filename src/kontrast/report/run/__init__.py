"""The page of a run: did it work, is it good, what is wrong, what next.

One section a file, each a pure function of the record that `collect` reads; what a run does not have (labels, images, a
test split, monitors) leaves its section out.
"""

from __future__ import annotations

from pathlib import Path

from kontrast.report.page import Page
from kontrast.report.run import accuracy, curves, embedding, findings, geometry, headline, origin, pictures
from kontrast.report.run.collect import Run, collect

__all__ = ["Run", "collect", "page"]

SECTIONS = (
    headline.section,
    findings.section,
    curves.section,
    accuracy.section,
    embedding.section,
    pictures.neighbours,
    pictures.views,
    geometry.section,
    origin.section,
)


def page(path: Path) -> Page:
    """Of a run's folder."""
    if not (path / "recipe.yaml").exists() and (path / "task.json").exists():
        raise ValueError(
            f"{path} is a task of an experiment, not a training run: its numbers are in {path / 'result.json'}, and "
            "the experiment's own report shows them (kontrast report EXPERIMENT)"
        )
    run = collect(path)
    made = [section for make in SECTIONS if (section := make(run)) is not None]
    return Page(run.name, subtitle(run), made)


def subtitle(run: Run) -> str:
    """What it was, in a line."""
    recipe = run.recipe
    parts = [
        str(recipe.get("about") or "").rstrip("."),
        f"method {_name(recipe.get('method'))}",
        f"data {Path(_name(recipe.get('data'))).name}",
        f"encoder {_name(recipe.get('encoder'))}",
        f"seed {recipe.get('seed')}",
    ]
    return " · ".join(part for part in parts if part)


def _name(part: object) -> str:
    return str(part.get("name", "–")) if isinstance(part, dict) else "–"
