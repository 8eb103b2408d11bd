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
from kontrast.registry import nearest

__all__ = ["find", "names"]


def _all() -> dict[str, Experiment]:
    from kontrast.experiments.papers import graf, sce, tcl, wang_liu

    return {made.name: made for book in (wang_liu, tcl, sce, graf) for made in book.EXPERIMENTS}


def names() -> list[str]:
    """Every experiment's name."""
    return sorted(_all())


def find(name: str) -> Experiment:
    """The experiment of this name; an unknown one is an error that names the nearest.

    >>> find("wl-tabel-1")
    Traceback (most recent call last):
        ...
    ValueError: no experiment 'wl-tabel-1'; did you mean 'wl-table-1'? `kontrast list experiments` has them all
    """
    known = _all()
    if name not in known:
        hint = nearest(name, list(known))
        raise ValueError(f"no experiment {name!r}{hint} `kontrast list experiments` has them all")
    return known[name]
