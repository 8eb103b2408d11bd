"""``kontrast show``: a recipe, whole, with everything that its run would do."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from kontrast.cli._console import out
from kontrast.cli.train import complete_recipe


def show(
    name: Annotated[
        str,
        typer.Argument(help="A recipe's name, a YAML file, or a run's folder.", autocompletion=complete_recipe),
    ],
    settings: Annotated[list[str] | None, typer.Argument(help="Overrides, as for train.")] = None,
) -> None:
    """Print a recipe with every option written out: YAML that `kontrast train` takes."""
    from kontrast import recipes
    from kontrast.train import resolve

    recipe = resolve(recipes.recipe(name).override(settings or []))
    about = " ".join((recipe.about or recipe.name).split())  # a comment has one line
    out.print(f"# {escape(about)}", highlight=False, soft_wrap=True)
    out.print(f"# run folder: {escape(recipe.folder)}", highlight=False, soft_wrap=True)
    print(recipe.to_yaml(), end="")
