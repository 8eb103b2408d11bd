"""A recipe in the papers' words: epochs, rates, τ and λ, as a methods section tells them. Made from the recipe alone.

>>> from kontrast import recipes
>>> from kontrast.train import resolve
>>> words = wording(resolve(recipes.find("instance-cifar10")))
>>> print(words["training"])
200 epochs, batch 128, each image once an epoch
>>> print(words["optimiser"])
SGD, momentum 0.9, learning rate 0.03, × 0.1 at epochs 160 and 190, weight decay 5e-4
>>> print(words["method"])
instance, ordinary loss, temperature τ = 0.2, memory bank of all training images with momentum 0.5
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from kontrast import augment, evaluate
from kontrast.methods import METHODS
from kontrast.optim import SCHEDULES
from kontrast.recipe import Augment, Part, Recipe
from kontrast.registry import STRENGTHS

NAMES = {"sgd": "SGD", "lars": "LARS", "adamw": "AdamW"}
ENCODERS = {"resnet18": "ResNet-18", "resnet34": "ResNet-34", "resnet50": "ResNet-50", "resnet101": "ResNet-101"}
STEMS = {"small": "3×3 stem of stride 1 without pooling", "large": "7×7 stem of stride 2 with pooling"}
SAMPLERS = {
    "shuffled": "each image once an epoch",
    "with-replacement": "drawn with replacement",
    "class-balanced": "as many of each class",
}
COUNTS = {1: "one view", 2: "two views", 3: "three views"}


def wording(recipe: Recipe) -> dict[str, str]:
    """Describe a resolved recipe in a few lines.

    Args:
        recipe: The recipe, resolved by `kontrast.train.resolve`.

    Returns:
        A line by topic ("data", "views", "network", "method", …); a topic without a line is left out.
    """
    lines = {
        "data": _data(recipe),
        "views": _views(recipe.augment, recipe.augment.size),
        "network": f"{_encoder(recipe.encoder)}; {_head(recipe.head)}",
        "method": _method(recipe.method),
        "training": _training(recipe),
        "optimiser": _optimiser(recipe.optim, recipe.schedule),
        "evaluation": "; ".join(map(_protocol, recipe.evaluate.protocols)),
    }
    return {topic: text for topic, text in lines.items() if text}


def number(value: float) -> str:
    """A number as the papers print it.

    >>> [number(x) for x in (5e-4, 0.03, 4096, 9e-3, 7.5e-5, 1.0, 0)]
    ['5e-4', '0.03', '4,096', '9e-3', '7.5e-5', '1', '0']
    """
    if value and abs(value) < 0.01:
        digits, power = f"{value:.3e}".split("e")
        return f"{float(digits):g}e{int(power)}"
    return f"{value:,.10g}"


def _data(recipe: Recipe) -> str:
    data = recipe.data
    parts = [data.name if data.given is None else f"{data.name}, given from Python as {data.given}"]
    if data.split != "train":
        parts.append("its unlabelled images")
    if data.size:
        parts.append(f"at {data.size} pixels")
    if data.limit:
        parts.append(f"{number(data.limit)} training rows")
    if data.noise:
        how = "always by another" if data.noise_kind == "changed" else "drawn anew"
        parts.append(f"{number(100 * data.noise)} % of the labels replaced, {how}")
    if data.validation:
        parts.append(f"{number(100 * data.validation)} % of the training rows held out")
    return ", ".join(parts)


def _views(augmentation: Augment, size: int | None) -> str:
    """Each view; where one preset comes with several options, all of them are named."""
    views = augmentation.views
    several = len(set(map(augment.title, augmentation.described))) < len(set(map(str, views)))
    each = [_preset(view, several) if isinstance(view, Part) else _operations(view) for view in views]
    count = COUNTS.get(len(views), f"{len(views)} views") + (f" at {size} pixels" if size else "")
    if len(set(each)) == 1:
        return f"{count}{', each' if len(each) > 1 else ''}: {each[0]}"
    return f"{count}: {' | '.join(each)}"


def _preset(view: Part, several: bool) -> str:
    strengths = dict.fromkeys(STRENGTHS)  # one that is not set is never named
    defaults = augment.options_of(view.name)
    if several:
        defaults = {key: value for key, value in defaults.items() if strengths.get(key, ...) is value}
    return augment.describe(view.name).rstrip(".") + _options(view, defaults)


def _operations(steps: tuple[Part, ...]) -> str:
    """A listed view: each operation with its options that are not the default's."""
    each = []
    for step in steps:
        defaults = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in augment.operation_options(step.name).items()
        }
        each.append(step.name + _options(step, defaults))
    return ", ".join(each)


def _encoder(part: Part) -> str:
    stem = part.options.get("stem")
    names = ("width", "depth", "hidden", "features", "pretrained", "norm")
    options = [f"{name} {value}" for name, value in part.options.items() if name in names and value]
    return ", ".join([ENCODERS.get(part.name, part.name), *([STEMS[stem]] if stem in STEMS else []), *options])


def _head(part: Part) -> str:
    options = part.options
    if "out" not in options:
        return "no projector"
    layers = options.get("layers", 1)
    hidden = "d" if options.get("hidden") is None else str(options["hidden"])
    norm = " with batch norm" if options.get("batch_norm") else ""
    return f"projector {'–'.join(['d', *[hidden] * (layers - 1), str(options['out'])])}{norm}"


def _method(part: Part) -> str:
    """Every option in words; what the loss does not use is left out."""
    words = METHODS[part.name].words(part.options, number=number)
    return f"{part.name}, {words}" if words else part.name


def _training(recipe: Recipe) -> str:
    train = recipe.train
    length = f"{number(train.epochs)} epochs" if train.epochs else f"{number(train.steps or 0)} steps"
    parts = [length, f"batch {number(train.batch_size)}", SAMPLERS[train.sampler]]
    if train.micro_batch:
        parts.append("in parts that fit memory" if train.micro_batch == "auto" else f"in parts of {train.micro_batch}")
    if train.precision != "float32":
        parts.append(train.precision)
    if train.fit_every:
        parts.append(f"until the training set is fitted (asked every {number(train.fit_every)} steps)")
    if train.patience:
        parts.append(f"at most {train.patience} validations without a better one")
    if train.freeze:
        stages = "first stage" if train.freeze == 1 else f"first {train.freeze} stages"
        parts.append("encoder frozen" if train.freeze == "all" else f"{stages} of the encoder frozen")
    if train.head_first:
        plural = "" if train.head_first == 1 else "s"
        parts.append(f"the head alone in the first {number(train.head_first)} epoch{plural}")
    if train.clip:
        parts.append(f"gradient norm at most {number(train.clip)}")
    if train.average:
        parts.append(f"evaluated: moving average of the weights with momentum {number(train.average)}")
    return ", ".join(parts)


def _optimiser(part: Part, schedule: Part) -> str:
    options = part.options
    parts = [NAMES.get(part.name, part.name)]
    if "momentum" in options:
        parts.append(f"{'Nesterov ' if options.get('nesterov') else ''}momentum {number(options['momentum'])}")
    course = SCHEDULES[schedule.name].words(schedule.options, lr=options["lr"], number=number)
    parts += [f"learning rate {number(options['lr'])}", schedule.name if course is None else course]
    if options.get("layer_decay"):
        parts.append(f"× {number(options['layer_decay'])} a stage of the encoder from the top")
    if options.get("head_lr"):
        parts.append(f"{number(options['head_lr'])} for the head")
    parts.append(f"weight decay {number(options['weight_decay'])}" if options["weight_decay"] else "no weight decay")
    if options.get("exclude_norm_and_bias") or options.get("exclude_bias_n_norm"):
        parts.append("norms and biases apart")
    return ", ".join(part for part in parts if part)


def _protocol(part: Part) -> str:
    """The protocol's own documentation: its title, and its settings where they are a paragraph of prose."""
    title = evaluate.PROTOCOLS.summary(part.name)
    text = importlib.import_module(evaluate.PROTOCOLS[part.name].__module__).__doc__ or ""
    _, *rest = (" ".join(piece.split()) for piece in text.strip().split("\n\n"))
    prose = rest[0] if rest and rest[0].startswith(("SGD", "Small")) else ""
    return f"{part.name}{_options(part, {})}: {' '.join([title, prose]).strip()}".rstrip(".")


def _options(part: Part, defaults: Mapping[str, Any]) -> str:
    """The options that differ from the defaults, in brackets."""
    options = [f"{name} {value}" for name, value in part.options.items() if defaults.get(name, ...) != value]
    return f" ({', '.join(options)})" if options else ""
