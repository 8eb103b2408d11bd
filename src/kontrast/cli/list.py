"""``kontrast list``: what there is, by kind."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from kontrast.cli._completion import choices
from kontrast.cli._console import print_out
from kontrast.registry import FAMILIES, Family, PartError, families

KINDS = tuple(dict.fromkeys(family.plural for family in FAMILIES.values()))


def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help=f"What to list: {', '.join(KINDS)}. If left out: these words.",
            autocompletion=choices(*KINDS, "optimisers"),
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List every recipe of the papers, not only how many there are.")
    ] = False,
) -> None:
    """List the recipes, losses, methods, data sets, encoders, … that there are, with a line about each."""
    if kind is None:
        print_out(f"[dim]{escape('`kontrast list KIND` lists the parts of a kind:')}[/]")
        for word in KINDS:
            print_out(word)
        return
    try:
        members = families(kind)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="KIND") from None
    if members == [FAMILIES["recipe"]] and not everything:
        _print_recipes()
    else:
        _print({name: about for family in members for name, about in lines(family).items()})


def lines(family: Family) -> dict[str, str]:
    """A line about each part of a family: what it is, and its options with their defaults."""
    return {family.shown.format(name): _line(family, name) for name in family.names()}


def _line(family: Family, name: str) -> str:
    try:
        options = ", ".join(
            f"{key}={'own' if value is None and key in family.common else value}"
            for key, value in family.options(name).items()
        )
        summary = family.summary(name)
    except PartError as error:  # the others are listed all the same
        return f"error: {error}"
    summary = summary.replace("``", "`")  # one is enough for people
    return f"{summary} Options: {options}" if options else summary


def _print(parts: dict[str, str]) -> None:
    wide = max(map(len, parts), default=0)
    for name, about in parts.items():
        print_out(f"[bold]{escape(f'{name:<{wide}}')}[/]  {escape(about)}")


def _print_recipes() -> None:
    """Those for the bundled set with a line each, then a line for each paper."""
    from kontrast.recipes import BOOKS

    quick, *papers = BOOKS
    print_out(f"[dim]{escape(_first_line(quick.__doc__))}[/]")
    _print({name: recipe.summary for name, recipe in quick.RECIPES.items()})
    print_out("[dim]Of the papers; `kontrast list recipes --all` lists every one:[/]")
    for book in papers:
        sets = list(dict.fromkeys(recipe.data.name for recipe in book.RECIPES.values()))
        methods = list(dict.fromkeys(recipe.method.name for recipe in book.RECIPES.values()))
        about = _first_line(book.__doc__).rstrip(".")
        print_out(f"[bold]{len(book.RECIPES)} recipes[/]  {escape(about)}")
        what = f"{', '.join(methods)} on {', '.join(sets)}, such as {next(iter(book.RECIPES))}"
        print_out(f"            {escape(what)}")


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
