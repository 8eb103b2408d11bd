"""Recipes by name, written in Python: what several recipes share is written once.

>>> from kontrast import recipes
>>> recipes.names()[:3]
['ce-cifar10', 'ce-cifar10-plain', 'ce-cifar10-random-labels']
>>> recipes.find("tcl-fashion-mini").method.name
'tcl'
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kontrast.files import expanded
from kontrast.recipe import Recipe
from kontrast.recipes import graf, sce, small, tcl, wang_liu
from kontrast.registry import FAMILIES

__all__ = ["find", "names", "recipe"]

BOOKS = (small, wang_liu, tcl, sce, graf)
RECIPES: dict[str, Recipe] = {name: recipe for book in BOOKS for name, recipe in book.RECIPES.items()}


def names() -> list[str]:
    """Every recipe's name, sorted."""
    return sorted(RECIPES)


def find(name: str) -> Recipe:
    """The recipe of this name.

    Args:
        name: One of `names`.

    Raises:
        ValueError: The name is unknown; the error names the nearest one.

    >>> find("tlc-fashion-mini")
    Traceback (most recent call last):
        ...
    ValueError: no recipe 'tlc-fashion-mini'; did you mean 'tcl-fashion-mini'? ...
    """
    try:
        result: Recipe = FAMILIES["recipe"][name]
    except ValueError as error:
        raise ValueError(f"{error}; a path to a YAML file works too") from None
    return result


def recipe(source: str | Path | Mapping[str, Any] | Recipe, **overrides: Any) -> Recipe:
    """A recipe by name, from a YAML file, a run folder, a mapping, or as it is, with overrides.

    Args:
        source: The recipe. A registered name is that recipe, even if there is a file of this name. The recipe of a run
            folder resumes in that folder, wherever it lies now.
        overrides: Sections or dotted keys.

    Returns:
        The recipe; its options need not be complete (`kontrast.train.resolve`).

    Raises:
        ValueError: There is no such recipe, the file is none, or an override is wrong.

    >>> recipe({"name": "mine", "method": "supcon", "train": {"epochs": 1}}).name
    'mine'
    >>> recipe("tcl-fashion-mini", seed=1, train={"epochs": 2}, **{"optim.lr": 0.05}).train.epochs
    2
    """
    base = _find_source(source)
    return base.override(_flat(overrides)) if overrides else base


def _find_source(source: str | Path | Mapping[str, Any] | Recipe) -> Recipe:
    if isinstance(source, Recipe):
        return source
    if isinstance(source, Mapping):
        return Recipe.of(source)
    if str(source) in names():
        return find(str(source))
    path = expanded(source)
    if path.is_dir():
        return _of_run(path)
    if path.suffix in (".yaml", ".yml") or path.exists():
        if not path.exists():
            raise ValueError(f"there is no file {path}; expected a recipe in YAML, or a name (`kontrast list recipes`)")
        return Recipe.read(path)
    return find(str(source))


def _of_run(folder: Path) -> Recipe:
    file = folder / "recipe.yaml"
    if not file.exists():
        raise ValueError(
            f"{folder} has no recipe.yaml; expected the folder of a run. To train on images: kontrast train {folder}"
        )
    recipe, place = Recipe.read(file), folder.resolve()
    return recipe.override({"run.out": str(place.parent)}) if place.name == recipe.folder else recipe


def __getattr__(name: str) -> Any:
    if name == "run":
        raise AttributeError("kontrast.recipes.run is kontrast.run now, which also examines the run and reports on it")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _flat(overrides: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys; a part's name comes first, for it clears the options of the name before it."""
    flat: dict[str, Any] = {}
    for key, value in sorted(overrides.items(), key=lambda item: item[0] != "name"):
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[f"{before}{key}"] = value
    return flat
