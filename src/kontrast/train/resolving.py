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
from kontrast.registry import nearest, quoted
from kontrast.train import loggers, monitors

FROM_DATA = ("in_channels", "image_size", "in_features", "in_dim", "seed", "prefix")
"""What the data or the seed decide, not the recipe."""


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
        _known("protocol", protocol.name, evaluate.names())
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
    for option in part.options:
        if option not in defaults:
            hint = nearest(option, defaults)
            raise ValueError(
                f"{what} {part.name!r} has no option {quoted(option)}{hint} It has {', '.join(defaults) or 'none'}"
            )
        expected = _expected(defaults[option], part.options[option])
        if expected:
            raise ValueError(
                f"option {option!r} of {what} {part.name!r} is {quoted(part.options[option])}; expected {expected}"
            )
    options = {name: _plain(value) for name, value in {**defaults, **part.options}.items()}
    return Part.model_validate({"name": part.name, **options})


def _expected(default: Any, value: Any) -> str | None:
    """What an option with this default takes, if the value is of another kind; None leaves it to the part itself.

    >>> _expected(0.1, "high"), _expected(True, 1), _expected(0.1, 1), _expected(None, "file.pt")
    ('a number', 'true or false', None, None)
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or default is None:
        return None
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, int | float):
        return None if number else "a number"
    if isinstance(default, str):
        return None if isinstance(value, str) else "a word"
    return "a list" if isinstance(default, list | tuple) and not isinstance(value, list | tuple) else None


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
    _known("encoder", part.name, [known for known in models.names() if "…" not in known])
    return {"pretrained": None, "norm": None, **defaults_of(models.FAMILY[part.name], FROM_DATA)}


def _head_options(name: str) -> dict[str, Any]:
    _known("head", name, list(models.HEADS))
    kind, published = models.HEADS[name]
    return {**defaults_of(kind, FROM_DATA), **published}


def _views(recipe: Recipe) -> tuple[View, ...]:
    """Every option of every view; an unknown name, option or value is an error that says which view."""
    found: list[View] = []
    for i, described in enumerate(recipe.augment.described):
        try:
            written = augment.written_out(described)
        except ValueError as error:
            name = described["name"] if isinstance(described, dict) else None
            if name in augment.OPERATIONS and name not in augment.NAMES:
                listed = ", ".join(augment.title(view) for view in recipe.augment.described)
                raise ValueError(
                    f"augment.views.{i}: no preset {name!r}; it is an operation, and a view of operations is a list: "
                    f"augment.views=[[{listed}], …], one list a view"
                ) from None
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


def _known(what: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        hint = nearest(name, names)
        raise ValueError(f"no {what} {quoted(name)}{hint} Known: {', '.join(names)}")


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
