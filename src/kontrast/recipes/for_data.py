"""A recipe for data: what ``kontrast train photos/`` and ``kontrast.run(data="photos/")`` do before they train.

    `request_of`     is it data (or a method's name) rather than a recipe? Nothing heavy is imported for it.
    `Request.check`  settings and data, before torch is imported
    `prepare`        look at the data → choose → time a few steps → a recipe, its reasons, and the loaded data

**The same call again finds its run.** How long an epoch takes varies from one minute to the next, so a second look
could choose another length, which is another run. So a run's run.json keeps what led to it (`Prepared.origin`: data,
settings, minutes, a digest of the files), and `prepare` takes the recipe of a run with the same origin, finished or
not, before it looks at the data at all.

**Names.** A recipe's name is a recipe, a method's name a method, a set's name a set, also where a folder has that name:
``./supcon`` or ``supcon/`` is the folder.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kontrast.files import expanded
from kontrast.recipe import Recipe, no_such_data, parse
from kontrast.recipes import choosing
from kontrast.recipes.choosing import Choice
from kontrast.registry import FAMILIES, quoted
from kontrast.runs import Run

if TYPE_CHECKING:
    from kontrast.data import DataSet
    from kontrast.data.facts import Facts, Sides

ARRAYS = (".npz", ".npy")
FILES = (".yaml", ".yml")
TIMED = 6  # steps


@dataclass(frozen=True)
class Request:
    """Data for which a recipe is to be chosen.

    Attributes:
        source: A set's name, a path, or an object that `kontrast.data.load` takes.
        settings: The user's settings by dotted key, the method among them if it is fixed; ``data`` is not.
        minutes: What the whole run may take.
    """

    source: Any
    settings: Mapping[str, Any]
    minutes: float = choosing.MINUTES

    @property
    def name(self) -> str:
        """The data in a word."""
        return f"a {type(self.source).__name__}" if self.is_object else str(self.source)

    @property
    def is_object(self) -> bool:
        """Whether the data came from Python, as an object."""
        return not isinstance(self.source, str)

    def check(self) -> None:
        """Check settings and data without importing torch.

        Raises:
            ValueError: An unknown key or option (the error names the nearest one), or data that do not exist.
        """
        if not 0 < self.minutes < 1e6:
            raise ValueError(f"minutes={self.minutes!r}: must be a number above 0, such as 10")
        views = [{"name": "vector-noise"} if self._asks_for_vectors else {"name": "weak"}] * 2
        method = self.settings.get("method", "supcon")
        length = {} if {"train.epochs", "train.steps"} & set(self.settings) else {"train.epochs": 1}
        start = Recipe.of({"method": {"name": str(method)}, "augment": views, "train": {"epochs": 1}})
        recipe = start.override({**self.settings, **length})
        recipe.check_parts()
        if not self.is_object and self.source not in FAMILIES["data set"] and not expanded(self.source).exists():
            raise ValueError(no_such_data(self.source))

    @property
    def _asks_for_vectors(self) -> bool:
        return self.settings.get("encoder") == "mlp"


@dataclass(frozen=True)
class Prepared:
    """A recipe for data, ready to be trained.

    Attributes:
        recipe: The resolved recipe.
        choices: What was chosen, with reasons; none for a run that was found.
        warnings: What the user should know of the data.
        data: The loaded data; None for a run that was found.
        origin: What led to the recipe, as run.json keeps it.
        command: The command line that gives the same recipe with nothing left to choose; empty for data from Python.
        about: The data in a line.
    """

    recipe: Recipe
    choices: Sequence[Choice] = ()
    warnings: Sequence[str] = ()
    data: DataSet | None = None
    origin: Mapping[str, Any] | None = None
    command: str = ""
    about: str = ""

    def lines(self) -> list[str]:
        """The data or the run that was found, a line for each choice, and the command line that repeats them."""
        if not self.choices:
            return [self.about]
        parts = [(" ".join(choosing.words(choice.settings)), choice.reason) for choice in self.choices]
        width = min(max(len(settings) for settings, _ in parts), 40)
        rest = [f"  {settings:<{width}}  {reason}" for settings, reason in parts]
        return [self.about, *rest, *([f"the same with nothing to choose: {self.command}"] if self.command else [])]


def request_of(
    source: Any,
    settings: Mapping[str, Any] | Sequence[str] = (),
    *,
    data: Any = None,
    minutes: float | None = None,
) -> Request | None:
    """The request that a source and settings are; None if the source is a recipe or a run.

    Args:
        source: The first word after ``kontrast train``, or None: then the data are in the settings. Paths may be
            `pathlib.Path`; whatever else `kontrast.data.load` takes is data too.
        settings: ``key=value`` settings, or a mapping of sections and dotted keys.
        data: An object to train on; a path or a set's name may stand in the settings.
        minutes: What the whole run may take.

    Returns:
        The request, or None.

    Raises:
        ValueError: A method's name without data, neither source nor data, an unknown name, or minutes for a recipe.

    >>> request_of("supcon", ["data=digits"]).settings, request_of("digits").source
    ({'method': 'supcon'}, 'digits')
    >>> request_of("supcon-fashion-mini") is None
    True
    """
    asked = _dotted(settings if isinstance(settings, Mapping) else dict(map(parse, settings)))
    place, is_method = asked.pop("data", None), False
    data = place if data is None else data
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if isinstance(source, str):
        from kontrast import recipes

        kind = _kind(source, recipes.names())
        if kind == "recipe":
            if minutes is not None:
                raise ValueError(
                    f"--minutes: must be left out for {quoted(source)}, a recipe, which says its own length. Use "
                    "train.epochs=, or name data to choose a recipe for"
                )
            return None
        is_method = kind == "method"
        if is_method:
            asked = {"method": FAMILIES["method"].canonical(source), **asked}
        elif data is not None:
            raise ValueError(
                f"data={quoted(data)}: must be left out, as {quoted(source)} is data already. Use one of them"
            )
        else:
            data = source
    elif isinstance(source, Recipe | Mapping) and not _is_arrays(source):
        return None
    elif source is not None:
        data = source
    if data is None:
        what = f"{source} is a method, and" if is_method else "without a recipe"
        example = f"kontrast train {source} data=photos/" if is_method else "kontrast train photos/"
        known = _recipes_of(source) if is_method else ""
        raise ValueError(f"{what} there must be data to train it on: {example}{known}")
    data = os.fspath(data) if isinstance(data, os.PathLike) else data
    return Request(data, asked, choosing.MINUTES if minutes is None else minutes)


def _kind(source: str, recipes: Sequence[str]) -> str:
    """What a word is: "recipe" (a name, a file, a run's folder), "method" or "data"."""
    if source in recipes:
        return "recipe"
    if source in FAMILIES["method"]:
        return "method"
    if source in FAMILIES["data set"]:
        return "data"
    path = expanded(source)
    if path.suffix in FILES or (path.is_dir() and (path / "recipe.yaml").exists()):
        return "recipe"
    if path.exists() or path.suffix.lower() in ARRAYS:
        return "data"
    raise ValueError(unknown(source))


def unknown(source: str) -> str:
    """The error for a word that is neither a recipe, a method, data nor a file.

    >>> print(unknown("supcom"))
    no recipe 'supcom'; did you mean 'supcon'? `kontrast list recipes` has them all; the name of a method (supcon data=photos/) or of a data set, a folder of images, an array file and a recipe in YAML work too
    """  # noqa: E501
    from kontrast import recipes

    place = expanded(source)
    beside: list[str] = []
    if place.parent.is_dir():
        with os.scandir(place.parent) as entries:
            beside = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    names = [*recipes.names(), *FAMILIES["method"].names(), *FAMILIES["data set"].names()]
    near = difflib.get_close_matches(place.name.lower(), [*names, *beside], n=1, cutoff=0.5)
    if "/" in source:
        near = difflib.get_close_matches(place.name, beside, n=1, cutoff=0.5)
        near = [str(place.parent / name) for name in near]
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return (
        f"no recipe {quoted(source)}{hint} `kontrast list recipes` has them all; the name of a method (supcon "
        "data=photos/) or of a data set, a folder of images, an array file and a recipe in YAML work too"
    )


def _recipes_of(method: str) -> str:
    from kontrast import recipes

    found = [name for name in recipes.names() if recipes.find(name).method.name == FAMILIES["method"].canonical(method)]
    return f"; or take a recipe of it: {', '.join(found)}" if found else ""


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys, a section's name under the section's: ``encoder.name`` is ``encoder``."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        key = key.removesuffix(".name")
        if isinstance(value, Mapping) and not key.startswith("augment.views"):
            flat |= {place.removesuffix(".name"): v for place, v in _dotted_below(key, value).items()}
        else:
            flat[key] = value
    return flat


def _dotted_below(key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _dotted_below(f"{key}.{name}", value) if isinstance(value, Mapping) else {f"{key}.{name}": value}
    return flat


def _is_arrays(source: Any) -> bool:
    from kontrast.data import separate_data

    if not isinstance(source, Mapping) or any(isinstance(value, str | Mapping) for value in source.values()):
        return False  # "train" names arrays, and a section of a recipe too, which has words and sections
    return separate_data({"data": source})[0] is not None


# ------------------------------------------------------------------------------------------------ look, choose, time


def prepare(request: Request) -> Prepared:
    """Look at the data, choose a recipe and its length; or take the recipe of the run that the same request led to.

    Args:
        request: The request, checked (`Request.check`).

    Returns:
        The recipe with its reasons, and the data.

    Raises:
        ValueError: The data cannot be read or are too few, or the settings do not fit them.

    >>> import tempfile
    >>> request = request_of("digits", {"train.steps": 2, "data.limit": 100, "run.out": tempfile.mkdtemp()})
    >>> prepared = prepare(request)
    >>> prepared.recipe.name, prepared.recipe.train.steps, prepared.about
    ('supcon-digits', 2, 'digits: 100 images of 8×8 pixels, 360 for testing in 10 classes')
    """
    from kontrast.data import bind

    _check_folder(request.source)
    origin = _origin(request)
    found = _find_run(request, origin)
    if found is not None:
        return Prepared(found, origin=origin, about=f"the same call led to {Run.of(found).path}")
    asked, source = dict(request.settings), request.source
    device = _device(asked)
    from kontrast.data.facts import look

    start, sizes, data, sides = _load(request, device)
    as_trained = None if start or "encoder.pretrained" in asked else data  # else read as the checkpoint wants it

    limits = asked.get("data.limit"), int(asked.get("seed", 0))
    seen = data.limit(*limits, test=asked.get("data.test_limit"))  # the run holds rows out first, and limits then
    facts = look(seen, sides)
    known = {**settings_of(start), **asked}
    choices = choosing.without([*start, *sizes, *choosing.choose(facts, known, device=device)], asked)
    name = data.name if request.is_object else source
    lengths = [key for key in ("train.epochs", "train.steps") if key in asked]
    short = {"train.epochs": 1} if lengths else {"train.steps": TIMED, "schedule": "constant"}
    rest = {key: value for key, value in asked.items() if not key.startswith("schedule") and key not in lengths}
    draft = choosing.recipe_of(name, data.name, choices, {**rest, **short})
    choices += _length(draft, asked, known, as_trained, request.minutes)
    from kontrast.train import resolve

    recipe = resolve(choosing.recipe_of(name, data.name, choices, asked))
    if request.is_object:
        recipe, as_trained = bind(recipe, source)
    told = [*choosing.warnings_of(_as_tested(facts, seen, recipe), known), *_changed(recipe, origin)]
    words = "" if request.is_object else choosing.command(source, choices, asked)
    return Prepared(
        recipe=recipe,
        choices=choices,
        warnings=told,
        data=as_trained,
        origin=origin,
        command=words,
        about=_describe(seen, sized=as_trained is not None),
    )


def _as_tested(facts: Facts, data: DataSet, recipe: Recipe) -> Facts:
    """The facts with the test rows that the recipe holds out, and their copies among the others."""
    from kontrast.data.facts import look
    from kontrast.train.job import with_test_rows

    if recipe.data.test is None:
        return facts
    held_out = look(with_test_rows(data, recipe.data.test))
    return replace(facts, test_rows=held_out.test_rows, copies=held_out.copies, near_copies=held_out.near_copies)


def _check_folder(source: Any) -> None:
    """A folder without images may have been meant as that of a run."""
    if isinstance(source, str) and source not in FAMILIES["data set"] and expanded(source).is_dir():
        from kontrast.data.image_files import list_images

        try:
            list_images(expanded(source))
        except ValueError as error:
            raise ValueError(
                f"{source} has no recipe.yaml; expected the folder of a run, or images to train on. {error}"
            ) from None


def _device(asked: Mapping[str, Any]) -> choosing.Setting:
    from kontrast.train import pick_device

    return "cpu" if pick_device(str(asked.get("run.device", "auto"))).type == "cpu" else "gpu"


def _load(request: Request, device: choosing.Setting) -> tuple[list[Choice], list[Choice], DataSet, Sides | None]:
    """The choices of a pretrained start and of the images' size, the data at that size, and the sides as stored."""
    from kontrast.data import DataSet, load
    from kontrast.data.facts import count_files, image_sides, is_files

    asked, source = request.settings, request.source
    options: dict[str, Any] = {"root": asked.get("run.data_root"), "cache": asked.get("run.cache") or None}
    options |= {key: asked[f"data.{key}"] for key in ("size", "channels", "labelled") if f"data.{key}" in asked}
    data = None if is_files(source) else load(source, **options)
    sides = image_sides(source, data)
    start = pretrained_start(asked, sides)
    known = {**settings_of(start), **asked}
    size = None
    if not isinstance(source, DataSet):
        rows = count_files(source)
        size = choosing.image_size(sides, known, checkpoint=_size_of(known), rows=rows, device=device)
    if size is not None:
        options |= {"size": size.settings["data.size"], "cache": size.settings.get("run.cache") or options["cache"]}
        data = None
    elif is_files(source) and known.get("encoder.pretrained") and "size" not in options:
        options["size"] = choosing.LARGE  # to look at: the run reads them as the checkpoint wants them
    if data is None:
        data = load(source, **options)
    return start, [] if size is None else [size], data, sides


def settings_of(choices: Sequence[Choice]) -> dict[str, Any]:
    """All settings of choices.

    >>> settings_of([Choice({"method": "tcl"}, ""), Choice({"seed": 1}, "")])
    {'method': 'tcl', 'seed': 1}
    """
    return {key: value for choice in choices for key, value in choice.settings.items()}


def pretrained_start(asked: Mapping[str, Any], sides: Sides | None) -> list[Choice]:
    """The encoder of weights that are given without it, or that timm's cache holds; none for a random start.

    Args:
        asked: The user's settings by dotted key.
        sides: The sides of the images. Small images are not brought to the size of pretrained encoders by themselves.

    Raises:
        ValueError: Weights are given, and not the encoder that they are of.

    >>> pretrained_start({"encoder": "resnet18"}, None)
    []
    """
    weights = asked.get("encoder.pretrained")
    if (
        "encoder" in asked
        or weights is False
        or (weights is None and (sides is None or sides.median <= choosing.SMALL))
    ):
        return []
    if weights is None:
        cached = timm_cache()
        if not cached:
            return []
        name, more = cached[0], f", the smallest of {len(cached)}" * (len(cached) > 1)
        reason = f"pretrained weights that are in timm's cache{more}; encoder=small-resnet starts at random"
        return [Choice({"encoder": f"timm/{name}", "encoder.pretrained": True}, reason)]
    run = Run(str(weights))
    if run.card_file.is_file():
        part = dict(run.card.encoder.model_dump())
        name = part.pop("name")
        options = {f"encoder.{key}": value for key, value in part.items()}
        return [Choice({"encoder": name, **options}, f"the encoder of {weights}")]
    raise ValueError(
        f"encoder.pretrained={weights}: must stand beside the encoder that the weights are of. Use encoder=resnet50, "
        "say, or encoder=timm/…"
    )


def timm_cache(root: Path | None = None) -> list[str]:
    """The names, with tags, of the weights in timm's cache (that of the Hugging Face hub), the smallest file first.

    Args:
        root: The cache; None: where the hub's client keeps it.

    Returns:
        The names; none if timm is not installed.

    >>> timm_cache(Path("no/such/folder"))
    []
    """
    if importlib.util.find_spec("timm") is None:
        return []
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    root = root or Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    found = []
    for folder in root.glob("models--timm--*.*"):
        files = [*folder.glob("snapshots/*/model.safetensors"), *folder.glob("snapshots/*/pytorch_model.bin")]
        found += [
            (file.stat().st_size, folder.name.removeprefix("models--timm--")) for file in files[:1] if file.exists()
        ]
    return [name for _, name in sorted(found)]


def _size_of(settings: Mapping[str, Any]) -> int | None:
    """Pixels of the images that a pretrained start was trained on; None if nobody knows, or for a random start."""
    from kontrast import models

    weights = models.find_weights(str(settings.get("encoder", "")), settings.get("encoder.pretrained"))
    return None if weights is None or weights.preprocessing is None else weights.preprocessing.size


def _length(
    draft: Recipe, asked: Mapping[str, Any], known: Mapping[str, Any], data: DataSet | None, minutes: float
) -> list[Choice]:
    """The length, if it is not asked for, and the schedule and the monitors, which depend on it."""
    import torch

    from kontrast.train import resolve
    from kontrast.train.job import make_job
    from kontrast.train.loop import time_steps

    made: list[Choice] = []
    if "train.epochs" in asked or "train.steps" in asked:
        per_epoch = make_job(resolve(draft), torch.device("cpu"), data).steps_per_epoch
    elif int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(
            "train.epochs: must be given under torchrun, as the length is measured in one process. Use "
            "train.epochs=100, say, or the command line that kontrast train --dry-run prints in one process"
        )
    else:
        seconds, per_epoch = time_steps(resolve(draft), data)
        starts = draft.encoder.options.get("pretrained")
        most = choosing.MOST_PRETRAINED if starts else choosing.EPOCHS[-1]
        made.append(choosing.length(seconds, per_epoch, minutes, most))
    train = {**(made[0].settings if made else {}), **asked}
    steps = train.get("train.steps") or train["train.epochs"] * per_epoch
    if "schedule" not in asked:
        made.append(choosing.schedule(steps / per_epoch, known))
    every = choosing.look_every(per_epoch, steps)
    if every is not None:
        made.append(
            Choice({"run.monitor_every": every}, "epochs are short: monitors look less often than once an epoch")
        )
    return choosing.without(made, asked)


def _describe(data: DataSet, *, sized: bool) -> str:
    """The data in a line; ``sized`` is whether they have the size that the run gives them."""
    text = repr(data).partition(": ")[2]
    shape = data.train.inputs.shape
    if data.kind == "image" and shape is not None:
        text = text.replace(f"images {shape}", f"images of {shape[2]}×{shape[1]} pixels" if sized else "images")
    return f"{data.name}: {text}"


def announce(prepared: Prepared) -> None:
    """Print the choices on standard error, unless the recipe wants no progress, and warn of problems of the data."""
    from kontrast import distributed
    from kontrast.train.progress import StderrConsole

    if distributed.launched_rank() != 0:
        return
    console = StderrConsole(quiet=not prepared.recipe.run.progress)
    for line in prepared.lines() if prepared.choices else ():
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for text in prepared.warnings:
        warnings.warn(text, UserWarning, stacklevel=3)


# ------------------------------------------------------------------------------------------------ the run before


def _origin(request: Request) -> dict[str, Any]:
    """What leads to a recipe: the same origin, the same run."""
    from kontrast.data.facts import listing_digest

    decisive = {key: value for key, value in sorted(request.settings.items()) if not key.startswith("run.")}
    source, files = request.source, None
    if request.is_object:
        from kontrast.data import load
        from kontrast.data.identity import describe_source, digest_data

        source, files = describe_source(request.source), digest_data(load(request.source))
    elif source not in FAMILIES["data set"]:
        from kontrast.runs.run import file_digest

        files = file_digest(source) or listing_digest(source)
        source = str(expanded(source).resolve())
    return {"data": source, "files": files, "settings": choosing.words(decisive), "minutes": request.minutes}


def _find_run(request: Request, origin: Mapping[str, Any]) -> Recipe | None:
    """The recipe of the newest run with this origin, with the settings of how it is run."""
    out = expanded(str(request.settings.get("run.out", "runs")))
    runs = [Run(file.parent) for file in out.glob("*-????????/run.json")]
    for run in sorted(runs, key=lambda run: run.state_file.stat().st_mtime, reverse=True):
        try:
            same = run.state.origin == origin
            recipe = run.recipe if same else None
        except (ValueError, OSError):  # damaged, and so of no use
            continue
        if recipe is not None:
            how = {key: value for key, value in request.settings.items() if key.startswith("run.")}
            return recipe.override({**how, "run.out": str(out)})
    return None


def _changed(recipe: Recipe, origin: Mapping[str, Any]) -> list[str]:
    """Say so if the run of this recipe learned from other files of the same folder."""
    run = Run.of(recipe)
    before = run.state.origin if run.state_file.exists() else None
    if before is None or before.get("data") != origin["data"] or before.get("files") == origin["files"]:
        return []
    return [
        f"{origin['data']} has changed since {run.path} was trained on it; give another --out, or remove that folder, "
        "to train on what is there now"
    ]
