"""docs/experiments/goals.md is what docs/goals.py writes, and its commands are recipes that resolve."""

from __future__ import annotations

import tomllib

from kontrast import recipes
from kontrast.recipe import parse
from kontrast.train import resolve
from tests.docs.loading import script

goals = script("goals")


def test_the_page_is_what_the_script_writes() -> None:
    assert (goals.DOCS / "goals.md").read_text(encoding="utf-8") == goals.page(), "run python docs/goals.py"


def test_its_commands_resolve() -> None:
    for goal in tomllib.loads((goals.DOCS / "goals.toml").read_text(encoding="utf-8"))["goal"]:
        name, *settings = goal["words"]
        recipe = recipes.find(name).override(dict(map(parse, settings)))
        assert resolve(recipe).method.name == recipe.method.name
        assert not recipe.data.validation, "scored on test rows"
