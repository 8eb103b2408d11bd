"""``kontrast show``: a recipe's claim, its settings in the papers' words, and every option as YAML."""

from __future__ import annotations

import shlex

from kontrast.cli._arguments import AnyRecipe, Settings
from kontrast.cli._console import print_out, printable, say_loading


def show(
    name: AnyRecipe,
    settings: Settings = None,
) -> None:
    """Print a recipe as YAML that `kontrast train` reads: its claim, its settings in words, and every option."""
    from kontrast import recipes

    changes = settings or []
    recipe = recipes.recipe(name).override(changes).check_parts()
    say_loading(name)
    from kontrast.recipes.wording import wording
    from kontrast.train import resolve

    recipe = resolve(recipe)
    _comment(recipe.about or recipe.name)
    if changes:
        _comment(f"the claim does not cover {shlex.join(changes)}")
    for topic, text in wording(recipe).items():
        _comment(f"{topic}: {text}")
    _comment(f"command: {shlex.join(['kontrast', 'train', name, *changes])}")
    _comment(f"run folder: {recipe.folder}")
    print(recipe.to_yaml(), end="")


def _comment(text: str) -> None:
    """Print a comment of YAML, on one line."""
    print_out(f"# {printable(' '.join(text.split()))}")
