"""Tables and figures of the papers: a grid over a recipe, who runs it, what came of it against what the paper says.

    experiment → `plan` → cells → an engine → run folders → `outcome` → tables, claims, charts

>>> from kontrast import experiments
>>> experiments.names()[:3]
['graf-capacity', 'graf-geometry', 'graf-interaction']
>>> experiments.find("wl-table-1").source
'Wang & Liu, supplement, Table 1; main text, Figure 9'
"""

from __future__ import annotations

import importlib
import pkgutil

from kontrast.experiments.experiment import Experiment
from kontrast.registry import FAMILIES, PartError

__all__ = ["find", "names", "table"]


def table() -> dict[str, Experiment]:
    """Every experiment, by name: the ``EXPERIMENTS`` of each file in the folder `kontrast.experiments.papers`.

    Raises:
        PartError: A file cannot be imported, has no such list, or something in it is no `Experiment`.
        ValueError: Two experiments have one name.
    """
    from kontrast.experiments import papers

    experiments: dict[str, Experiment] = {}
    for _, module, _ in sorted(
        pkgutil.iter_modules(papers.__path__, f"{papers.__name__}."), key=lambda entry: entry.name
    ):
        if module.rpartition(".")[2].startswith("_"):
            continue
        try:
            listed = getattr(importlib.import_module(module), "EXPERIMENTS", None)
        except Exception as error:
            raise PartError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
        if not isinstance(listed, list | tuple) or not all(isinstance(entry, Experiment) for entry in listed):
            raise PartError(f"{module}.EXPERIMENTS: must be a list of Experiment; a module that has none begins with _")
        for experiment in listed:
            if experiment.name in experiments:
                raise ValueError(f"{module}: there is another experiment {experiment.name!r}; names must differ")
            experiments[experiment.name] = experiment
    return experiments


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
