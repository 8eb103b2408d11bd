"""Recipes by name: typed Python, no copies that differ in a line.

>>> from kontrast import recipes
>>> recipes.names()[:3]
['ce-cifar10', 'ce-cifar10-plain', 'ce-cifar10-random-labels']
>>> recipes.find("tcl-fashion-mini").method.name
'tcl'
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kontrast.files import expanded
from kontrast.recipe import Recipe
from kontrast.recipes import fashion_mini, graf, sce, tcl, wang_liu
from kontrast.registry import nearest

if TYPE_CHECKING:
    from kontrast.train import Run

__all__ = ["find", "names", "recipe", "run"]

BOOKS = (fashion_mini, wang_liu, tcl, sce, graf)


def names() -> list[str]:
    """Every recipe's name."""
    return sorted(name for book in BOOKS for name in book.RECIPES)


def find(name: str) -> Recipe:
    """The recipe of this name; an unknown one is an error that names the nearest.

    >>> find("tlc-fashion-mini")
    Traceback (most recent call last):
        ...
    ValueError: no recipe 'tlc-fashion-mini'; did you mean 'tcl-fashion-mini'? ...
    """
    for book in BOOKS:
        found: Recipe | None = book.RECIPES.get(name)
        if found is not None:
            return found
    hint = nearest(name, names())
    raise ValueError(f"no recipe {name!r}{hint} `kontrast list recipes` has them all; a path to a YAML file works too")


def recipe(source: str | Path | Mapping[str, Any] | Recipe) -> Recipe:
    """A recipe by name, from a YAML file, a run folder, a mapping, or as it is.

    A known name is that recipe, whatever files there are. The recipe of a run folder goes on in that folder, wherever
    it lies by now.

    >>> recipe({"name": "mine", "method": "supcon", "train": {"epochs": 1}}).name
    'mine'
    """
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
            f"{folder} has no recipe.yaml; expected the folder of a run. Images to train on: data={folder}"
        )
    found = Recipe.read(file)
    place = folder.resolve()
    return found.override({"run.out": str(place.parent)}) if place.name == found.folder else found


def run(source: str | Path | Mapping[str, Any] | Recipe, **overrides: Any) -> Run:
    """Trains, evaluates and analyses a recipe; overrides are sections or dotted keys.

    ``run("tcl-fashion-mini", seed=1, train={"epochs": 2}, **{"optim.lr": 0.05})``

    ``data`` may be whatever `kontrast.data.load` takes: a set's name, a path, a `DataSet`, an array or tensor,
    ``(images, labels)``, a list of image files or of PIL images, a torch ``Dataset``; with settings beside it,
    ``data={"name": images, "size": 32}``. Such data are known by their content: other data are another run folder, and
    the same again continue the run, or find it done.
    """
    from kontrast.data import bound, taken  # torch is loaded when something runs, not when names are listed
    from kontrast.train import resolve, run_recipe

    given, settings = taken(overrides)
    chosen = recipe(source).override(_flat(settings))
    if given is None:
        return run_recipe(chosen)
    chosen, data = bound(resolve(chosen), given)  # a typo is told before the data are read
    return run_recipe(chosen, data)


def _flat(overrides: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested mappings as dotted keys; a part's name comes first, for it clears the options of the name before it."""
    flat: dict[str, Any] = {}
    for key, value in sorted(overrides.items(), key=lambda item: item[0] != "name"):
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[f"{before}{key}"] = value
    return flat
