"""A recipe with nothing left to guess: every option of every part written out, every name known.

So a recipe that leaves a default out and one that writes it have the same hash, the file in a run's folder says
everything, and an unknown name or option is an error before anything is loaded.
"""

from __future__ import annotations

from typing import Any

from kontrast import augment, methods, models
from kontrast.evaluate import PROTOCOLS
from kontrast.recipe import PARTS, Part, Recipe, View
from kontrast.registry import FAMILIES, quoted


def resolve(recipe: Recipe) -> Recipe:
    """The recipe with all defaults written out.

    Args:
        recipe: a recipe whose parts may lack options.

    Returns:
        The same run, with every option of every part.

    Raises:
        ValueError: an unknown name or option (the error names the nearest one), or a value that a part refuses.

    >>> recipe = Recipe.of({"method": "tcl", "train": {"epochs": 1}, "optim": {"name": "sgd", "lr": 0.1}})
    >>> resolve(recipe).method
    Part(name='tcl', temperature=0.1, k1=5000.0, k2=1.0)
    >>> resolve(recipe.override(["method.temprature=1"]))
    Traceback (most recent call last):
        ...
    ValueError: method 'tcl' has no option 'temprature'; did you mean 'temperature'? It has temperature, k1, k2
    """
    recipe.check_parts()
    parts: dict[str, Any] = {
        section: with_all_options(family, getattr(recipe, section)) for section, family in PARTS.items()
    }
    # Batch norm is frozen for a pretrained start that does not say otherwise, and not for a random one.
    options = parts["encoder"].options
    for name in ("pretrained", "allow_missing"):
        options[name] = None if options[name] is False else options[name]  # the same run as without
    if options["allow_missing"] not in (None, True):
        raise ValueError(f"encoder.allow_missing={quoted(options['allow_missing'])}: must be true or false")
    norm = models.norm_of(options["norm"], options["pretrained"])
    parts["encoder"] = Part.model_validate({"name": parts["encoder"].name, **options, "norm": norm})
    # The options of protocols stay unwritten: their defaults belong to the protocol.
    protocols = [part.model_copy(update={"name": PROTOCOLS.canonical(part.name)}) for part in recipe.evaluate.protocols]
    parts["evaluate"] = recipe.evaluate.model_copy(update={"protocols": tuple(protocols)})
    parts["augment"] = recipe.augment.model_copy(update={"views": _views(recipe)})
    whole = recipe.model_copy(update=parts)
    lr = whole.optim.options["lr"]
    if not isinstance(lr, int | float) or isinstance(lr, bool) or lr <= 0:
        raise ValueError(f"optim.lr={quoted(lr)}: must be a number above 0")
    _check_views(whole)
    return Recipe.of(whole.model_dump(mode="json"))


def with_all_options(family: str, part: Part) -> Part:
    """The part under its usual name, with all of its options.

    >>> with_all_options("schedule", Part(name="multi_step", milestones=[60]))
    Part(name='multi-step', milestones=[60], factor=0.1)
    """
    registered = FAMILIES[family]
    options = {name: _plain(value) for name, value in {**registered.options(part.name), **part.options}.items()}
    return Part.model_validate({"name": registered.canonical(part.name), **options})


def _views(recipe: Recipe) -> tuple[View, ...]:
    """Every option of every view; a value that an operation refuses is an error that says which view."""
    views: list[View] = []
    for i, described in enumerate(recipe.augment.described):
        try:
            view = augment.expand_options(described)
        except ValueError as error:
            raise ValueError(f"augment.views.{i}: {error}") from None
        if isinstance(view, list):
            views.append(tuple(Part.model_validate(step) for step in view))
        else:
            views.append(Part.model_validate(view))
    return tuple(views)


def _check_views(recipe: Recipe) -> None:
    kind, count = methods.find(recipe.method.name), len(recipe.augment.views)
    if count < kind.fewest_views or (kind.most_views is not None and count > kind.most_views):
        needs = str(kind.fewest_views) if kind.most_views == kind.fewest_views else f"{kind.fewest_views} or more"
        quantity = "1 view" if count == 1 else f"{count} views"
        raise ValueError(
            f"augment.views has {quantity} of each sample: must have {needs} with method={recipe.method.name}. Use "
            "one preset for each: augment.views=[weak, strong]"
        )


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
