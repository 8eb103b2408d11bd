"""Shell completion of ``kontrast``: recipes, run folders, settings with their values, names of parts.

``kontrast --install-completion`` turns it on. Nothing here imports torch: a shell asks at every press of the tab key.
bash splits ``encoder=res`` at = into three words and takes the value alone; other shells pass and take one word.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from kontrast.registry import FAMILIES

NAMED = {
    "encoder": "encoder",
    "head": "head",
    "method": "method",
    "optim": "optimiser",
    "schedule": "schedule",
    "data": "data set",
    "augment": "preset",
    "augment.views": "preset",
    "evaluate.protocols": "protocol",
    "run.monitors": "monitor",
    "run.loggers": "logger",
}
"""Settings whose values are names, and the family of each."""
DEVICES = ("auto", "cpu", "cuda", "mps")


def choices(*names: str) -> Callable[[str], list[str]]:
    """A completion among these names."""
    return lambda incomplete: _with_prefix(names, incomplete)


def complete_part(family: str) -> Callable[[str], list[str]]:
    """A completion among the names of a family.

    >>> complete_part("protocol")("knn")
    ['knn20', 'knn200']
    """

    return lambda incomplete: _with_prefix(_plain(FAMILIES[family].names()), incomplete)


complete_recipe = complete_part("recipe")
complete_experiment = complete_part("experiment")


def complete_run(incomplete: str) -> list[str]:
    """Run folders, here and in ``runs``, or below the folder that is being typed; folders of experiments too."""
    runs: list[str] = []
    for folder in [_folder(incomplete)] if "/" in incomplete else [Path("."), Path("runs")]:
        with contextlib.suppress(OSError):
            inside = sorted(entry for entry in folder.iterdir() if entry.is_dir())
            runs += [str(e) for e in inside if (e / "run.json").exists() or (e / "result.json").exists()]
    return _with_prefix(runs, incomplete.removeprefix("./"))


def complete_encoder_or_run(incomplete: str) -> list[str]:
    """Run folders, and encoders by name."""
    return [*complete_run(incomplete), *_with_prefix(_plain(FAMILIES["encoder"].names()), incomplete)]


def complete_recipe_or_run(incomplete: str) -> list[str]:
    """Recipes, run folders, and recipes in YAML files of this folder."""
    files = sorted(str(file) for file in Path(".").glob("*.y*ml"))
    return [*complete_recipe(incomplete), *_with_prefix(files, incomplete), *complete_run(incomplete)]


def complete_setting(context: typer.Context, args: list[str], incomplete: str) -> list[str]:
    """``key=`` of a recipe, with the options of the parts it names, or behind the = the values that are names."""
    before = [str(word) for word in context.params.get("settings") or context.params.get("more") or ()]
    if not incomplete and before and "=" not in _join(before)[-1]:  # bash, right behind the =, which click drops
        return values_of(before[-1], "")
    if len(before) >= 2 and before[-1] == "=":  # bash, inside of a value
        return values_of(before[-2], incomplete)
    key, equals, value = incomplete.partition("=")
    if equals:
        return [f"{key}={known}" for known in values_of(key, value)]
    source = next((context.params[name] for name in ("recipe", "name", "patient") if context.params.get(name)), None)
    return _with_prefix((f"{key}=" for key in keys(source, _join(before))), incomplete)


def keys(source: str | None = None, settings: Iterable[str] = ()) -> list[str]:
    """Every dotted key that the recipe of this name or file takes with these settings.

    >>> [key for key in keys("tcl-fashion-mini", ["optim=adamw"]) if key.startswith(("method.", "optim."))]
    ['method.temperature', 'method.k1', 'method.k2', 'optim.lr', 'optim.betas', 'optim.eps', ...]
    """
    from pydantic import BaseModel

    from kontrast.recipe import Part, Recipe

    part_names = _part_names(source, settings)
    dotted: list[str] = []
    for name, field in Recipe.model_fields.items():
        section = field.annotation
        if name not in ("name", "about"):
            dotted.append(name)
        if section is Part:
            family, part = FAMILIES[NAMED[name]], part_names.get(name, "")
            dotted += [f"{name}.{option}" for option in family.options(part)] if part in family else []
        elif isinstance(section, type) and issubclass(section, BaseModel):
            dotted += [f"{name}.{key}" for key in section.model_fields if key != "name"]
    return dotted


def values_of(key: str, incomplete: str) -> list[str]:
    """The values of a setting that have names; data may be folders too.

    >>> values_of("encoder", "res"), values_of("train.sampler", "")
    (['resnet101', 'resnet18', 'resnet34', 'resnet50'], ['shuffled', 'with-replacement', 'class-balanced'])
    """
    from kontrast.recipe import Recipe

    key = key.removesuffix(".name")
    if key in NAMED:
        names = _plain(FAMILIES[NAMED[key]].names())
        if key == "data":
            with contextlib.suppress(OSError):
                beginning = sorted(_folder(incomplete).iterdir())
                names += [f"{entry}/" if entry.is_dir() else f"{entry}" for entry in beginning if _is_data(entry)]
        return _with_prefix(names, incomplete)
    if key == "run.device":
        return _with_prefix(DEVICES, incomplete)
    section, _, field = key.partition(".")
    kind = Recipe.model_fields[section].annotation if section in Recipe.model_fields else None
    fields: Mapping[str, Any] = getattr(kind, "model_fields", {})
    return _with_prefix(_words(fields[field].annotation), incomplete) if field in fields else []


def _words(annotation: Any) -> Iterator[str]:
    """The words that a type allows: those of a Literal, true and false."""
    if annotation is bool:
        yield from ("true", "false")
    elif get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    else:
        for inner in get_args(annotation):
            yield from _words(inner)


def _folder(incomplete: str) -> Path:
    """The folder whose entries are being typed."""
    return Path(incomplete.rpartition("/")[0] or ("/" if incomplete.startswith("/") else "."))


def _is_data(entry: Path) -> bool:
    return not entry.name.startswith(".") and (entry.is_dir() or entry.suffix in (".npz", ".npy"))


def _part_names(source: str | None, settings: Iterable[str]) -> dict[str, str]:
    """The name of each part: the recipe's, unless a setting says otherwise."""
    from kontrast.recipe import PARTS, Recipe
    from kontrast.recipes import recipe

    defaults = {name: Recipe.model_fields[name].default for name in PARTS}
    names = {name: part.name for name, part in defaults.items() if hasattr(part, "name")}
    with contextlib.suppress(ValueError, OSError):
        base = recipe(source) if source else None
        names |= {name: getattr(base, name).name for name in PARTS if base is not None}
    pairs = (setting.partition("=") for setting in settings)
    return names | {key.removesuffix(".name"): value for key, _, value in pairs if key.removesuffix(".name") in PARTS}


def _join(words: list[str]) -> list[str]:
    """The settings as they were typed, where bash has split them at =.

    >>> _join(["method", "=", "tcl", "seed=1"])
    ['method=tcl', 'seed=1']
    """
    settings: list[str] = []
    for word in words:
        if settings and (word == "=" or settings[-1].endswith("=")):
            settings[-1] += word
        else:
            settings.append(word)
    return settings


def _plain(names: Iterable[str]) -> list[str]:
    """Without ``timm/…``, of which the shell can offer the beginning."""
    return [name.removesuffix("…") for name in names]


def _with_prefix(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
