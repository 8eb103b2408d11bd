"""Every rule that knows the patient, on its record; findings come ill first, but before all what explains the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kontrast
from kontrast.doctor.collecting import collect_features, collect_recipe, collect_run
from kontrast.doctor.finding import STATUSES, Finding
from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from kontrast.files import expanded, write_json
from kontrast.recipe import Recipe

FIRST = ("failed-run", "refused", "too-short")  # whatever else is found, this is told before it


def names() -> list[str]:
    """Every rule's name."""
    return [name.replace("_", "-") for name in RULES.names()]


def examine_run(path: str | Path) -> list[Finding]:
    """What ails a run, from the files of its folder; a folder that is no run's, or damaged, is a `ValueError`."""
    return examine(collect_run(Path(path)))


def examine_features(features: Any, labels: Any = None, *, temperature: float | None = None) -> list[Finding]:
    """What ails features ``[N, D]``, with labels ``[N]`` if there are; ``temperature`` of the loss behind them.

    >>> import torch
    >>> x = torch.randn(200, 16, generator=torch.Generator().manual_seed(0))
    >>> [finding.rule for finding in examine_features(x) if finding.status == "healthy"]
    ['complete-collapse', 'dimensional-collapse', 'double-normalisation']
    """
    return examine(collect_features(features, labels, temperature=temperature))


def examine_recipe(recipe: Recipe) -> list[Finding]:
    """What a recipe is going to suffer from, before it is run; its data are opened, nothing is trained.

    >>> from kontrast import recipes
    >>> cold = recipes.find("simclr-fashion-mini").override(["method.temperature=0.005"])
    >>> [finding.rule for finding in examine_recipe(cold) if finding.status == "ill"]
    ['temperature-low']
    """
    return examine(collect_recipe(recipe))


def examine(record: Record) -> list[Finding]:
    """All findings of a record."""
    found = []
    for name in RULES:
        rule = RULES[name]()
        if record.patient in rule.patients and (finding := rule(record)) is not None:
            found.append(finding)

    def place(finding: Finding) -> tuple[bool, int, str]:
        first = finding.rule in FIRST and finding.status in ("ill", "watch")
        return not first, STATUSES.index(finding.status), finding.rule

    return sorted(found, key=place)


def write(path: str | Path) -> Path:
    """Examines a run and writes doctor.json into its folder, for reports and programs; says where it lies."""
    file = expanded(path) / "doctor.json"
    write_json(file, record_of(examine_run(path)))
    return file


def record_of(findings: list[Finding]) -> dict[str, Any]:
    """Findings as doctor.json has them.

    >>> sorted(record_of([]))
    ['findings', 'kontrast']
    """
    return {"kontrast": kontrast.__version__, "findings": [finding.record() for finding in findings]}
