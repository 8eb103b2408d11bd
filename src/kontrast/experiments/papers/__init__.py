"""The experiments of each paper, a module a paper, each with its ``EXPERIMENTS``; here is what the papers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any

from kontrast.experiments.cell import At, Value
from kontrast.experiments.claims import CLAIMS
from kontrast.experiments.experiment import Preset, Published
from kontrast.recipe import Recipe
from kontrast.recipes.published import printed_set

BESIDE = (
    "The paper's values stand beside ours on its own sets, and without a difference on a part of one "
    "(fashion-mini, or a file whose name begins with the set's: cifar10-50k.npz); on other data there are none."
)
SMOKE = "A few steps on 200 images, to see that everything runs."
AS_PAPER = "As the paper; see the recipes for what is not stated there."
FEW_EPOCHS: dict[str, dict[str, Any]] = {
    **{name: {"epochs": 2} for name in ("sce", "tcl", "wang-liu", "probe")},
    "graf-linear": {"iterations": 50},
}
"""Options of protocols that train for long, in smoke runs."""

per_set: Any = SimpleNamespace(
    **{name: partial(make, within=("data",)) for name, make in CLAIMS.items() if "within" in signature(make).parameters}
)
"""The constructors of claims that are tested on each data set by itself: ``per_set.higher(…)``."""


def presets(
    paper: Callable[[At], Recipe],
    cpu: Callable[[At], Recipe],
    smoke: Callable[[Recipe], Recipe],
    *,
    about: str,
    axes: Mapping[str, Sequence[Value]] | None = None,
    few: Mapping[str, Sequence[Value]] | None = None,
    seeds: int = 3,
    full: str = AS_PAPER,
    full_axes: Mapping[str, Sequence[Value]] | None = None,
    full_seeds: Callable[[At], int] | None = None,
    keep: Callable[[At], bool] = lambda at: True,
) -> dict[str, Preset]:
    """The three scales of an experiment that trains encoders; the two small ones are on fashion-mini.

    Args:
        paper: The paper's recipe of a place.
        cpu: The small recipe.
        smoke: Makes of the small recipe one of a second or two.
        about: What the small recipe changes.
        axes: The small recipe's axes in place of the paper's.
        few: Those of the smoke runs in place of ``axes``.
        seeds: Seeds of the small runs.
        full: What is to be said of the paper's runs.
        full_axes: The axes of the paper's runs, if they are not the experiment's.
        full_seeds: Their seeds by place; three by default.
        keep: Which places the small runs have.
    """
    small = {"data": ("fashion-mini",), **(axes or {})}
    return {
        "paper": Preset(full, paper, seeds=3, axes=full_axes or {}, seeds_at=full_seeds),
        "cpu": Preset(about, cpu, seeds=seeds, axes=small, keep=keep),
        "smoke": Preset(SMOKE, lambda at: smoke(cpu(at)), seeds=2, axes={**small, **(few or {})}),
    }


def shorten(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The smoke run of a recipe: 200 images, small batches, few epochs of each protocol, and ``changes``."""
    protocols = [{"name": part.name, **FEW_EPOCHS.get(part.name, {})} for part in recipe.evaluate.protocols]
    common: dict[str, Any] = {"data.limit": 200, "data.test_limit": 100, "evaluate.protocols": protocols}
    return recipe.override({**common, "train.batch_size": min(recipe.train.batch_size, 64), **changes})


def paper_value(
    tables: Mapping[str, Mapping[Any, Published]], place: Callable[[At], Any], measure: str = "linear"
) -> Callable[[At, str], Published]:
    """The paper's value of a measure (`Experiment.published`).

    Args:
        tables: The paper's table of each data set.
        place: The key of a place in a table; None where the paper has no value.
        measure: The measure that was printed.
    """

    def value(at: At, name: str) -> Published:
        data = printed_set(at["data"], tables)
        return None if name != measure or data is None else tables[data].get(place(at))

    return value
