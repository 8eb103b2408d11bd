"""``kontrast show``: a recipe, whole: what it claims, what it does in the papers' words, and every option as YAML."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from kontrast.cli._completion import complete_recipe_or_run, complete_setting
from kontrast.cli._console import out, printable, say_loading


def show(
    name: Annotated[
        str,
        typer.Argument(help="A recipe's name, a YAML file, or a run's folder.", autocompletion=complete_recipe_or_run),
    ],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Overrides, as for train.", autocompletion=complete_setting)
    ] = None,
) -> None:
    """Print a recipe, its claim and its settings in words, with every option written out: YAML for `kontrast train`."""
    from kontrast import recipes

    changes = settings or []
    checked = recipes.recipe(name).override(changes).check_parts()
    say_loading(name)
    from kontrast.recipes.wording import wording
    from kontrast.train import resolve

    recipe = resolve(checked)
    _comment(recipe.about or recipe.name)
    if changes:
        _comment(f"what it claims is claimed without {shlex.join(changes)}")
    for topic, text in wording(recipe).items():
        _comment(f"{topic}: {text}")
    _comment(f"command: {shlex.join(['kontrast', 'train', name, *changes])}")
    _comment(f"run folder: {recipe.folder}")
    print(recipe.to_yaml(), end="")


def _comment(text: str) -> None:
    """A comment has one line."""
    out.print(f"# {printable(' '.join(text.split()))}", highlight=False, soft_wrap=True)
