"""The goals of the small recipes: docs/recipes.md has the table of docs/goals.py, and its commands resolve."""

from __future__ import annotations

import tomllib

from kontrast import recipes
from kontrast.recipe import parse
from kontrast.recipes.for_data import request_of
from kontrast.train import resolve
from tests.docs.loading import script

goals = script("goals")


def test_the_page_of_recipes_has_the_table() -> None:
    page = (goals.DOCS.parent / "recipes.md").read_text(encoding="utf-8")
    assert f"\n{goals.section()}\n" in page, "run python docs/recipes.py"


def test_its_commands_resolve() -> None:
    for goal in tomllib.loads((goals.DOCS / "goals.toml").read_text(encoding="utf-8"))["goal"]:
        name, *settings = goal["words"]
        if name.startswith("{data}/"):  # a recipe is chosen for it
            request_of("digits", settings).check()
            continue
        recipe = recipes.find(name).override(dict(map(parse, settings)))
        assert resolve(recipe).method.name == recipe.method.name
        assert not recipe.data.validation, "scored on test rows"
