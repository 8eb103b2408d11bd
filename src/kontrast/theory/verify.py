"""Every check, run: what `kontrast verify` prints."""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Iterator, Sequence

from kontrast.registry import nearest
from kontrast.theory._check import REGISTRY, Check, Outcome

PAPERS = (
    "wang_liu_entropy",
    "wang_liu",
    "tcl",
    "tcl_theorems",
    "sce",
    "sce_collapse",
    "graf",
    "graf_chain",
    "graf_supcon",
    "graf_supcon_chain",
    "graf_energy",
)


def checks(only: Sequence[str] = ()) -> list[Check]:
    """The checks in the order of the papers; ``only`` keeps those named, by whole name or by pattern (``sce-*``).

    >>> [c.name for c in checks(["*decomposition*"])]
    ['sce-decomposition']
    """
    modules = [importlib.import_module(f"kontrast.theory.{paper}").__name__ for paper in PAPERS]
    order = {name: place for place, name in enumerate(modules)}
    # They register as they are imported, which may have happened in another order.
    known = sorted(REGISTRY.values(), key=lambda c: order.get(c.measure.__module__, len(order)))
    if not only:
        return known
    for pattern in only:
        if not any(fnmatch.fnmatchcase(c.name, pattern) for c in known):
            names = [c.name for c in known]
            hint = nearest(pattern, names)
            raise ValueError(f"no check is named {pattern!r}{hint} Known: {', '.join(names)}")
    return [c for c in known if any(fnmatch.fnmatchcase(c.name, pattern) for pattern in only)]


def verify(only: Sequence[str] = (), *, seed: int = 0) -> Iterator[Outcome]:
    """Run the checks one by one on random inputs of this seed.

    >>> [outcome.holds for outcome in verify(["sce-decomposition"])]
    [True]
    """
    for check in checks(only):
        yield check.run(seed)
