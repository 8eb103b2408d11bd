"""``kontrast list``: what there is, by kind."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer
from rich.markup import escape

from kontrast.cli._console import out


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


def list_(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """List recipes, losses, methods, data sets, encoders, augmentations, …, with a line about each."""
    found = _LISTS[kind]()
    wide = max(map(len, found), default=0)
    for name, about in found.items():
        out.print(f"[bold]{escape(f'{name:<{wide}}')}[/]  {escape(about)}", highlight=False, soft_wrap=True)


def _recipes() -> dict[str, str]:
    from kontrast import recipes

    # What it is, and what is expected; a paper's claim goes on with hardware and command, which `show` has.
    return {name: recipes.find(name).about.partition(" Hardware:")[0] for name in recipes.names()}


def _experiments() -> dict[str, str]:
    from kontrast import experiments

    found = {name: experiments.find(name) for name in experiments.names()}
    return {name: f"{made.title} ({made.source})" for name, made in found.items()}


def _losses() -> dict[str, str]:
    from kontrast import losses
    from kontrast.registry import Family

    return _first_lines(Family(losses.__name__))


def _methods() -> dict[str, str]:
    from kontrast import methods

    return _first_lines(methods.METHODS)


def _datasets() -> dict[str, str]:
    from kontrast.data.loading import SETS

    return _first_lines(SETS)


def _encoders() -> dict[str, str]:
    from kontrast import models

    return {("timm/…" if name == "timm" else name): about for name, about in _first_lines(models.FAMILY).items()}


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
    from kontrast.augment import STRENGTHS

    told = ", ".join(
        f"{key}={'own' if value is None and key in STRENGTHS else value}" for key, value in options.items()
    )
    return f"{about} Options: {told}" if told else about


def _optimizers() -> dict[str, str]:
    from kontrast import optim

    return _first_lines(optim.OPTIMIZERS)


def _schedules() -> dict[str, str]:
    from kontrast import optim

    return _first_lines(optim.SCHEDULES)


def _protocols() -> dict[str, str]:
    from kontrast import evaluate

    return _first_lines(evaluate.PROTOCOLS)


def _monitors() -> dict[str, str]:
    from kontrast.registry import Family
    from kontrast.train import monitors

    return _first_lines(Family(monitors.__name__))


def _loggers() -> dict[str, str]:
    from kontrast.registry import Family
    from kontrast.train import loggers

    return _first_lines(Family(loggers.__name__))


def _first_lines(family: object) -> dict[str, str]:
    """The first line of each file's documentation, by name; nothing is made, files are only imported."""
    import importlib

    from kontrast.registry import Family

    assert isinstance(family, Family)
    found = {}
    for name in family.names():
        text = (importlib.import_module(f"{family.package}.{name}").__doc__ or "").strip()
        found[name.replace("_", "-")] = " ".join(text.partition("\n\n")[0].split())
    return found


_LISTS: dict[Kind, Callable[[], dict[str, str]]] = {
    Kind.recipes: _recipes,
    Kind.experiments: _experiments,
    Kind.losses: _losses,
    Kind.methods: _methods,
    Kind.datasets: _datasets,
    Kind.encoders: _encoders,
    Kind.heads: _heads,
    Kind.augmentations: _augmentations,
    Kind.optimizers: _optimizers,
    Kind.schedules: _schedules,
    Kind.protocols: _protocols,
    Kind.monitors: _monitors,
    Kind.loggers: _loggers,
}
