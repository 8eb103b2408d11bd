"""Run every rule that applies to a patient, and sort the findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kontrast
from kontrast.doctor.record import Record, collect_features, collect_recipe, collect_run
from kontrast.doctor.rules import RULES, Rule
from kontrast.recipe import Recipe
from kontrast.registry import PartError
from kontrast.runs import Examination, Finding, Run
from kontrast.runs.schemas import STATUSES


def names() -> list[str]:
    """The name of every rule."""
    return RULES.names()


def examine_run(path: str | Path, recipe: Recipe | None = None) -> list[Finding]:
    """Examine a run, from the files of its folder.

    Args:
        path: The run's folder.
        recipe: The resolved recipe of the run; read from the folder and resolved by default.

    Returns:
        The findings, problems first.

    Raises:
        ValueError: It is not a run's folder, or a file in it is damaged.

    >>> examine_run("runs/no-such-run")
    Traceback (most recent call last):
        ...
    ValueError: there is no folder runs/no-such-run; expected the folder of a run
    """
    return examine(collect_run(Path(path), recipe))


def examine_features(features: Any, labels: Any = None, *, temperature: float | None = None) -> list[Finding]:
    """Examine features from anywhere.

    Args:
        features: Rows ``[N, D]``, a tensor or an array.
        labels: A label of any kind for each row.
        temperature: The temperature of the loss that the features were trained with.

    Returns:
        The findings, problems first.

    Raises:
        ValueError: Features or labels have a wrong shape or type, or values that are not finite.

    >>> import torch
    >>> x = torch.randn(200, 16, generator=torch.Generator().manual_seed(0))
    >>> [finding.rule for finding in examine_features(x) if finding.status == "ok"]
    ['complete-collapse', 'dimensional-collapse', 'double-normalisation']
    """
    return examine(collect_features(features, labels, temperature=temperature))


def examine_recipe(recipe: Recipe) -> list[Finding]:
    """Examine a recipe before it is run. Its data are opened; nothing is trained.

    Args:
        recipe: The recipe; defaults need not be filled in.

    Returns:
        The findings, problems first.

    Raises:
        ValueError: The recipe names a part or an option that does not exist.

    >>> import kontrast
    >>> cold = kontrast.recipes.find("simclr-fashion-mini").override(["method.temperature=0.005"])
    >>> [finding.rule for finding in examine_recipe(cold) if finding.status == "problem"]
    ['temperature-low']
    """
    return examine(collect_recipe(recipe))


def examine(record: Record) -> list[Finding]:
    """The findings of all rules that apply to a record, problems first; what explains the others comes before all.

    A rule that cannot be made gives the finding ``unknown`` with the reason, and hides nothing that the others find.
    """
    places: list[tuple[bool, int, str, Finding]] = []
    for name in RULES:
        finding, explains_others = _finding(name, record)
        if finding is not None:
            first = explains_others and finding.status in ("problem", "warning")
            places.append((not first, STATUSES.index(finding.status), finding.rule, finding))
    return [finding for *_, finding in sorted(places, key=lambda place: place[:3])]


def _finding(name: str, record: Record) -> tuple[Finding | None, bool]:
    """What the rule of this name finds, and whether it would explain the other findings."""
    try:
        rule: Rule = RULES.make(name)
        rule.check()
    except Exception as error:  # also what importing its file raises
        text = str(error) if isinstance(error, PartError) else f"{type(error).__name__}: {error}"
        why = f"the rule {name} cannot be used: {text}"
        return Finding(rule=name, status="unknown", title=f"rule {name}", evidence=why, advice=""), False
    return (rule(record) if record.patient in rule.patients else None), rule.explains_others


def write(path: str | Path, recipe: Recipe | None = None) -> Path:
    """Examine a run, and write doctor.json into its folder.

    Args:
        path: The run's folder.
        recipe: The resolved recipe of the run; read from the folder and resolved by default.

    Returns:
        The file.

    Raises:
        ValueError: It is not a run's folder, or a file in it is damaged.
    """
    return Run(path).write_findings(to_json(examine_run(path, recipe)))


def to_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Findings as doctor.json has them.

    >>> to_json([])
    {'kontrast': '...', 'findings': []}
    """
    return Examination(kontrast=kontrast.__version__, findings=list(findings)).model_dump()
