"""Tables and figures of the papers: a grid over a recipe, who runs it, what came of it against what the paper says.

    experiment → `plan` → cells → an engine → run folders → `outcome` → tables, claims, charts

>>> from kontrast import experiments
>>> experiments.names()[:3]
['graf-capacity', 'graf-geometry', 'graf-interaction']
>>> experiments.find("wl-table-1").source
'Wang & Liu, supplement, Table 1; main text, Figure 9'
"""

from __future__ import annotations

from kontrast.experiments.experiment import Experiment
from kontrast.registry import FAMILIES

__all__ = ["find", "names", "table"]


def table() -> dict[str, Experiment]:
    """Every experiment, by name."""
    from kontrast.experiments.papers import graf, sce, tcl, wang_liu

    return {experiment.name: experiment for book in (wang_liu, tcl, sce, graf) for experiment in book.EXPERIMENTS}


def names() -> list[str]:
    """Every experiment's name, sorted."""
    return sorted(FAMILIES["experiment"].names())


def find(name: str) -> Experiment:
    """The experiment of this name.

    Raises:
        ValueError: an unknown name; the error names the nearest one.

    >>> find("wl-tabel-1")
    Traceback (most recent call last):
        ...
    ValueError: no experiment 'wl-tabel-1'; did you mean 'wl-table-1'? `kontrast list experiments` has them all
    """
    experiment: Experiment = FAMILIES["experiment"][name]
    return experiment
