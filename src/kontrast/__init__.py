"""kontrast: contrastive representation learning, exact and fast.

The package is an arrow of stages. A stage may import what stands left of it, never what stands right::

    data → augment → models → losses → geometry → theory → optim → methods → evaluate → train → doctor → report
         → explore → recipes → pipeline → adaptation → experiments → cli

Each stage is a folder, ``pipeline`` (the main job) one file. The first four do not import each other, ``report`` never
imports torch, and the root modules (``checks``, ``registry``, ``recipe``, ``runs``, ``sphere``, ``simplex``,
``autograd``, ``distributed`` …) stand before the arrow and import no stage. ``compat``, ``sklearn``
and ``cli`` are shells at its right end. ``tests/test_architecture.py`` holds this true.

Nothing heavy is loaded by ``import kontrast``: each stage is imported when it is first named. The main job is
``kontrast.run("tcl-fashion-mini")``, and ``kontrast.load(run)`` gives the encoder it trained; ``kontrast.adapt`` adapts
a pretrained one.

>>> import kontrast
>>> kontrast.losses.SupConLoss(temperature=0.1)
SupConLoss(temperature=0.1)
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

__version__ = "0.1.0"

ROOT = (
    "checks",
    "autograd",
    "sphere",
    "registry",
    "files",
    "recipe",
    "runs",
    "intervals",
    "simplex",
    "energy",
    "engine",
    "eager",
    "closed_forms",
    "distributed",
    "openmp",
)
ARROW = (
    "data",
    "augment",
    "models",
    "losses",
    "geometry",
    "theory",
    "optim",
    "methods",
    "evaluate",
    "train",
    "doctor",
    "report",
    "explore",
    "recipes",
    "pipeline",
    "adaptation",
    "experiments",
    "cli",
)
SHELLS = ("compat", "sklearn", "cli")


def __dir__() -> list[str]:
    return sorted(
        {*globals(), *PUBLIC, *(n for n in (*ROOT, *ARROW, *SHELLS) if importlib.util.find_spec(f"{__name__}.{n}"))}
    )


# Names of the package itself, and where they live.
PUBLIC = {"run": "pipeline", "adapt": "adaptation", "load": "train", "Recipe": "recipe", "Run": "runs"}


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return getattr(importlib.import_module(f"{__name__}.{PUBLIC[name]}"), name)
    if name in (*ROOT, *ARROW, *SHELLS) and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
