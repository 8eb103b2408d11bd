"""Adapt a pretrained encoder to your data, never worse than frozen: ``kontrast adapt`` and `kontrast.adapt`.

    plan      → a normal recipe, with as many epochs as the time allows                      (`planning`)
    train     → after each epoch the held-out rows are measured, and recorded                (`selection`)
    verdict   → rows that did not choose the epoch compare it with the frozen encoder        (`rows`, `comparison`)
    ship      → the adapted encoder if it is better, else the frozen one                     (`verdict`, `session`)

The result is a run folder as any other: `kontrast.load`, ``embed`` and ``export`` give the encoder that ships.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from kontrast import pipeline
from kontrast.adaptation.comparison import Comparison, compare
from kontrast.adaptation.planning import Plan, plan
from kontrast.adaptation.session import Adaptation, Request
from kontrast.runs import Run, Verdict

__all__ = ["Adaptation", "Comparison", "Plan", "Request", "Verdict", "adapt", "compare", "plan"]


def adapt(
    encoder: str | os.PathLike[str] | Run,
    data: Any,
    *,
    weights: str | bool | None = None,
    minutes: float = 20.0,
    method: str | None = None,
    accept: bool = False,
    out: str | os.PathLike[str] = "runs",
    say: Callable[[str], None] | None = None,
    **settings: Any,
) -> Run:
    """Adapt an encoder to data, and keep the frozen one unless the adapted one is better.

    Args:
        encoder: A finished run or its folder, or an encoder's name (``timm/tf_efficientnet_lite0``, ``resnet50``).
        data: A set's name, a folder of images, or an object that `kontrast.data.load` takes.
        weights: For a name: the file of pretrained weights, True for the library's own, or the name of such weights.
        minutes: The time for everything: measuring, training, judging and the page.
        method: supcon or tcl, which learn from labels; sce or simclr, which do not. By default supcon if there are
            labels, else sce.
        accept: Whether the adapted encoder ships where there are no labels to judge it by.
        out: The folder of the run folders.
        say: Called with each choice and its reason; prints on standard error by default.
        settings: Overrides of the recipe: dotted keys, ``**{"optim.lr": 1e-4, "data.size": 96}``.

    Returns:
        The run. ``run.verdict`` says which encoder is in its folder, and why. The same call again finds the run, or
        resumes it.

    Raises:
        ValueError: Encoder, data and settings do not fit each other, or the time is too short for one epoch.

    >>> import tempfile
    >>> import kontrast
    >>> folder = tempfile.mkdtemp()
    >>> small = {"data.limit": 200, "data.test_limit": 50, "run.progress": False, "run.monitor_every": 0}
    >>> first = kontrast.run("supcon-fashion-mini", **small, encoder={"width": 4}, train={"steps": 2},
    ...                      evaluate={"protocols": ["knn20"]}, run={"out": folder})
    >>> run = kontrast.adapt(first, "fashion-mini", minutes=2, out=folder, say=str, **small, **{"train.epochs": 1})
    >>> run.verdict.shipped in ("adapted", "frozen"), run.encoder().feature_dim == first.encoder().feature_dim
    (True, True)
    """
    source = encoder.path if isinstance(encoder, Run) else encoder
    changes = {**settings, "run.out": os.fspath(out)}
    planned = plan(
        source, data, weights=weights, minutes=minutes, method=method, accept=accept, settings=changes,
        say=_print if say is None else say,
    )  # fmt: skip
    session = Adaptation(planned.recipe, planned.data, request=planned.request)
    pipeline.perform(session)
    return session.run


def _print(line: str) -> None:
    print(line, file=sys.stderr)
