"""A recipe with nothing left to guess: every option of every part written out, every name known.

So a recipe that leaves a default out and one that writes it have the same hash, the file in a run's folder says
everything, and an unknown name or option is an error before anything is loaded.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kontrast import augment, evaluate, methods, models, optim
from kontrast.recipe import Part, Recipe, View
from kontrast.registry import quoted
from kontrast.train import loggers, monitors
from kontrast.vocabulary import FROM_DATA, check_name, check_options, check_views


def resolve(recipe: Recipe) -> Recipe:
    """The recipe with all defaults written out.

    >>> recipe = Recipe.of({"method": "tcl", "train": {"epochs": 1}, "optim": {"name": "sgd", "lr": 0.1}})
    >>> resolve(recipe).method
    Part(name='tcl', temperature=0.1, k1=5000.0, k2=1.0)
    >>> resolve(recipe.override(["method.temprature=1"]))
    Traceback (most recent call last):
        ...
    ValueError: method 'tcl' has no option 'temprature'; did you mean 'temperature'? It has temperature, k1, k2
    """
    for protocol in recipe.evaluate.protocols:
        check_name("protocol", protocol.name, evaluate.names())
        fields = dataclasses.fields(evaluate.PROTOCOLS[protocol.name])
        known = {field.name: None if field.default is dataclasses.MISSING else field.default for field in fields}
        filled("protocol", protocol, known)  # its defaults stay unwritten: they are the protocol's own
    for monitor in recipe.run.monitors or ():
        monitors.find(monitor)
    for logger in recipe.run.loggers:
        loggers.find(logger)
    whole = recipe.model_copy(
        update={
            "method": filled("method", recipe.method, methods.options_of(recipe.method.name)),
            "encoder": _encoder(recipe.encoder),
            "head": filled("head", recipe.head, _head_options(recipe.head.name)),
            "optim": filled("optim", recipe.optim, {"lr": None, **optim.options_of(recipe.optim.name)}),
            "schedule": filled("schedule", recipe.schedule, optim.schedule_options(recipe.schedule.name)),
            "augment": recipe.augment.model_copy(update={"views": _views(recipe)}),
        }
    )
    lr = whole.optim.options["lr"]
    if not isinstance(lr, int | float) or isinstance(lr, bool) or lr <= 0:
        raise ValueError(f"optim.lr is {quoted(lr)}; expected a number above 0")
    _check_views(whole)
    return Recipe.of(whole.model_dump(mode="json"))


def filled(what: str, part: Part, defaults: Mapping[str, Any]) -> Part:
    """The part with all of its options; one that is not among ``defaults`` is an error naming the nearest.

    >>> filled("head", Part(name="tcl"), {"out": 128})
    Part(name='tcl', out=128)
    """
    check_options(what, part.name, part.options, defaults)
    options = {name: _plain(value) for name, value in {**defaults, **part.options}.items()}
    return Part.model_validate({"name": part.name, **options})


def defaults_of(call: Callable[..., Any], leave_out: Iterable[str] = ()) -> dict[str, Any]:
    """The keyword options of a call with their defaults."""
    found = inspect.signature(call).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    left = {*leave_out, "self"}
    return {p.name: p.default for p in found if p.kind in kinds and p.default is not p.empty and p.name not in left}


def _encoder(part: Part) -> Part:
    """With every option; ``norm`` is frozen for a pretrained start that does not say it, and None for a random one."""
    whole = filled("encoder", part, _encoder_options(part))
    norm = models.norm_of(whole.options["norm"], whole.options["pretrained"])
    return Part.model_validate({"name": whole.name, **whole.options, "norm": norm})


def _encoder_options(part: Part) -> dict[str, Any]:
    if part.name.startswith("timm/"):  # timm knows its own options, and complains of others
        return {"pretrained": None, "norm": None, "channels_last": True, **part.options}
    check_name("encoder", part.name, [known for known in models.names() if "…" not in known])
    return {"pretrained": None, "norm": None, **defaults_of(models.FAMILY[part.name], FROM_DATA)}


def _head_options(name: str) -> dict[str, Any]:
    check_name("head", name, list(models.HEADS))
    kind, published = models.HEADS[name]
    return {**defaults_of(kind, FROM_DATA), **published}


def _views(recipe: Recipe) -> tuple[View, ...]:
    """Every option of every view; an unknown name, option or value is an error that says which view."""
    check_views(recipe)
    found: list[View] = []
    for i, described in enumerate(recipe.augment.described):
        try:
            written = augment.written_out(described)
        except ValueError as error:
            raise ValueError(f"augment.views.{i}: {error}") from None
        if isinstance(written, list):
            found.append(tuple(Part.model_validate(step) for step in written))
        else:
            found.append(Part.model_validate(written))
    return tuple(found)


def _check_views(recipe: Recipe) -> None:
    kind, count = methods.find(recipe.method.name), len(recipe.augment.views)
    if count < kind.fewest_views or (kind.most_views is not None and count > kind.most_views):
        wanted = str(kind.fewest_views) if kind.most_views == kind.fewest_views else f"{kind.fewest_views} or more"
        raise ValueError(
            f"method {recipe.method.name!r} takes {wanted} views of each sample; augment.views has {count}. "
            "Give a preset for each: augment.views=[weak, strong]"
        )


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
