"""``kontrast list``: what there is, by kind."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer
from rich.markup import escape

from kontrast.cli._completion import choices
from kontrast.cli._console import out
from kontrast.registry import nearest, quoted


class Kind(StrEnum):
    """What can be listed."""

    recipes = "recipes"
    experiments = "experiments"
    losses = "losses"
    methods = "methods"
    datasets = "datasets"
    encoders = "encoders"
    heads = "heads"
    augmentations = "augmentations"
    optimizers = "optimizers"
    schedules = "schedules"
    protocols = "protocols"
    monitors = "monitors"
    loggers = "loggers"


OTHER_NAMES = {
    "optimisers": Kind.optimizers,
    "schedulers": Kind.schedules,
    "sets": Kind.datasets,
    "data-sets": Kind.datasets,
    "data": Kind.datasets,
    "presets": Kind.augmentations,
    "operations": Kind.augmentations,
    "views": Kind.augmentations,
    "projectors": Kind.heads,
    "models": Kind.encoders,
    "backbones": Kind.encoders,
    "probes": Kind.protocols,
}
"""What messages and other tools call them."""


def list_(
    kind: Annotated[
        str, typer.Argument(help=f"What to list: {', '.join(Kind)}.", autocompletion=choices(*Kind, "optimisers"))
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Every recipe, a line each, instead of the papers' counts.")
    ] = False,
) -> None:
    """List recipes, losses, methods, data sets, encoders, augmentations, …, with a line about each."""
    which = find_kind(kind)
    if which is Kind.recipes and not everything:
        _print_recipes()
    else:
        _print(_LISTS[which]())


def find_kind(name: str) -> Kind:
    """A kind by its name, one or many (``method``, ``methods``), in either spelling; the nearest is named in an error.

    >>> find_kind("optimisers"), find_kind("data_set"), find_kind("Losses")
    (<Kind.optimizers: 'optimizers'>, <Kind.datasets: 'datasets'>, <Kind.losses: 'losses'>)
    """
    known = {**{kind.value: kind for kind in Kind}, **OTHER_NAMES}
    word = name.lower().replace("_", "-").replace(" ", "-")
    for spelling in (word, f"{word}s", f"{word}es"):
        if spelling in known:
            return known[spelling]
    hint = nearest(word, known)
    raise typer.BadParameter(f"there is no list of {quoted(name)}{hint} Known: {', '.join(Kind)}", param_hint="KIND")


def _print(found: dict[str, str]) -> None:
    wide = max(map(len, found), default=0)
    for name, about in found.items():
        out.print(f"[bold]{escape(f'{name:<{wide}}')}[/]  {escape(about)}", highlight=False, soft_wrap=True)


def _print_recipes() -> None:
    """Those for the bundled set with a line each, then a line for each paper."""
    from kontrast.recipes import BOOKS

    quick, *papers = BOOKS
    out.print(f"[dim]{escape(_first_line(quick.__doc__))}[/]", highlight=False, soft_wrap=True)
    _print({name: _claim(recipe.about) for name, recipe in quick.RECIPES.items()})
    out.print("[dim]Of the papers; `kontrast list recipes --all` lists every one:[/]", highlight=False, soft_wrap=True)
    for book in papers:
        sets = list(dict.fromkeys(recipe.data.name for recipe in book.RECIPES.values()))
        methods = list(dict.fromkeys(recipe.method.name for recipe in book.RECIPES.values()))
        said = _first_line(book.__doc__).rstrip(".")
        out.print(f"[bold]{len(book.RECIPES)} recipes[/]  {escape(said)}", highlight=False, soft_wrap=True)
        what = f"{', '.join(methods)} on {', '.join(sets)}, such as {next(iter(book.RECIPES))}"
        out.print(f"            {escape(what)}", highlight=False, soft_wrap=True)


def _recipes() -> dict[str, str]:
    from kontrast.recipes import BOOKS

    return {name: _claim(recipe.about) for book in BOOKS for name, recipe in book.RECIPES.items()}


def _claim(about: str) -> str:
    """What it is, and what is expected; a paper's claim goes on with hardware and command, which `show` has."""
    return about.partition(" Hardware:")[0]


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _experiments() -> dict[str, str]:
    from kontrast import experiments

    found = {name: experiments.find(name) for name in experiments.names()}
    return {name: f"{made.title} ({made.source})" for name, made in found.items()}


def _heads() -> dict[str, str]:
    from kontrast import models

    return {
        name: f"{kind.__name__} {', '.join(f'{k}={v}' for k, v in options.items())}".strip()
        for name, (kind, options) in models.HEADS.items()
    }


def _augmentations() -> dict[str, str]:
    from kontrast import augment

    found = {name: _with_options(augment.describe(name), augment.options_of(name)) for name in augment.NAMES}
    for name in augment.OPERATIONS:
        # Some operations are called as a preset is; the brackets say how a view of operations is written.
        found[f"[{name}]"] = _with_options(augment.describe_operation(name), augment.operation_options(name))
    return found


def _with_options(about: str, options: dict[str, object]) -> str:
    """A line about something, and its options with their defaults."""
    from kontrast.vocabulary import STRENGTHS

    told = ", ".join(
        f"{key}={'own' if value is None and key in STRENGTHS else value}" for key, value in options.items()
    )
    return f"{about} Options: {told}" if told else about


def _family(family: str) -> Callable[[], dict[str, str]]:
    """The first lines of a family's files; nothing is imported."""

    def found() -> dict[str, str]:
        from kontrast import vocabulary

        return {name: vocabulary.summary(family, name) for name in vocabulary.names(family)}

    return found


_LISTS: dict[Kind, Callable[[], dict[str, str]]] = {
    Kind.recipes: _recipes,
    Kind.experiments: _experiments,
    Kind.losses: _family("loss"),
    Kind.methods: _family("method"),
    Kind.datasets: _family("data set"),
    Kind.encoders: _family("encoder"),
    Kind.heads: _heads,
    Kind.augmentations: _augmentations,
    Kind.optimizers: _family("optimiser"),
    Kind.schedules: _family("schedule"),
    Kind.protocols: _family("protocol"),
    Kind.monitors: _family("monitor"),
    Kind.loggers: _family("logger"),
}
