"""Choose a recipe by facts of the data: what ``kontrast train photos/`` does where no recipe is named.

    facts of the data, settings, device  →  `choose`  →  choices, each with its reason  →  `recipe_of`
    seconds of a step, minutes           →  `length`  →  the choice of ``train.epochs``

Everything here is a rule: the same facts give the same choices. What is measured (the time of a step) comes in as a
number, and `length` rounds it down to a coarse grid. A setting that the user gives is not chosen, and what depends on
it follows it: ``method=simclr`` gets views and a temperature for training without labels, labels or not.

A method starts from its small recipe (`kontrast.recipes.small`: loss, head, number of views). How the rest was chosen:
docs/experiments/trials.md, "photos".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import yaml

from kontrast.recipe import Part, Recipe
from kontrast.recipes import small
from kontrast.registry import FAMILIES

if TYPE_CHECKING:
    from kontrast.data.facts import Facts, Sides

MINUTES = 10.0  # for which the length is chosen by default
SHARE = 0.8  # of the minutes that training may take; reading, evaluation and report take the rest
EPOCHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 500, 600, 800, 1000)  # fmt: skip  # noqa: E501
STEPS = tuple(sorted(digit * 10**power for power in range(6) for digit in (1, 2, 5)))
WARMUP = 0.05  # of the epochs, at most ten of them
LOGGED = 50  # monitors look so often at a run, if an epoch is shorter

FEWEST = 8  # images that anything is learned from
UNLABELLED = 10  # rows without labels for one with, from which on they are learned from
FEW = 300  # below this a word of warning, without pretrained weights
TEST_SHARE = 0.2  # held out where there is no test split
UNEVEN = 2.0  # rows of the largest class for one of the smallest, from which on batches are balanced
MOST_CLASSES = 64  # in a balanced batch
WIDTH = 32  # of the small encoder
FEATURES = 256  # of the small encoder without labels, which a linear probe makes use of
BATCH, BATCH_PRETRAINED = 128, 32  # a view of 224 pixels needs some 60 MB of activations
RATES = {"optim.lr": 0.2, "optim.weight_decay": 5e-4, "optim.nesterov": True}
PRETRAINED_RATES = {
    "optim.lr": 1e-3, "optim.weight_decay": 1e-4, "optim.layer_decay": 0.7, "train.clip": 1.0
}  # fmt: skip
MOST_PRETRAINED = 30  # epochs
SCALE = 0.4  # the least share of the area that a crop keeps
WEAK_TARGET = ("sce", "ressl")  # methods whose target sees a weak view
SMALL, LARGE, LARGE_GPU = 48, 96, 160  # pixels: images up to SMALL keep their size, larger ones are brought to LARGE
PRETRAINED = 224  # pixels for pretrained encoders that do not say otherwise
MEMORY = 2_000_000_000  # bytes of pixels that `kontrast.data.Options` keeps in memory

Setting = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Choice:
    """Settings that were chosen together, and why.

    Args:
        settings: Values by dotted key, in the order of `Recipe.override`.
        reason: Why, in a few words.

    >>> print(Choice({"encoder": "small-resnet", "encoder.width": 32}, "small images"))
    encoder=small-resnet encoder.width=32: small images
    """

    settings: Mapping[str, Any]
    reason: str

    def __str__(self) -> str:
        return f"{' '.join(words(self.settings))}: {self.reason}"


# ------------------------------------------------------------------------------------------------ the choices


def image_size(
    sides: Sides | None,
    asked: Mapping[str, Any],
    *,
    checkpoint: int | None = None,
    rows: int | None = None,
    device: Setting = "cpu",
) -> Choice | None:
    """Which size images are brought to; None if they keep theirs (vectors, small images), or for a checkpoint's.

    Args:
        sides: The sides of the images; None for vectors.
        asked: The user's settings by dotted key, and those of a pretrained start.
        checkpoint: Pixels of the images of a pretrained start, to which the run brings them by itself.
        rows: About how many images there are; None if that is not known.
        device: "cpu" or "gpu".

    >>> from kontrast.data.facts import Sides
    >>> print(image_size(Sides(200, 224), {}))
    data.size=96: shorter sides are about 224 pixels; 96 take 5 times less time
    >>> image_size(Sides(32, 32, square=True), {}) is None
    True
    """
    if sides is None or "data.size" in asked:
        return None
    if _start(asked):
        if checkpoint is not None:
            return None
        size, reason = PRETRAINED, "what most pretrained encoders expect; the weights do not say"
    elif sides.median <= SMALL:
        size, reason = sides.least, "small images, which are not of one square size"
        if sides.square:
            return None
    else:
        size = min(LARGE if device == "cpu" else LARGE_GPU, sides.median)
        times = round((sides.median / size) ** 2)
        gain = f"; {size} take {times} times less time" if times > 1 else ""
        reason = f"shorter sides are about {sides.median} pixels{gain}"
        if sides.square and sides.median == size:
            return None
    settings: dict[str, Any] = {"data.size": size}
    if rows is not None and rows * 3 * size * size > MEMORY and "run.cache" not in asked:
        settings["run.cache"] = True
        reason += "; decoded once into a cache file, as they do not fit into memory"
    return Choice(settings, reason)


def choose(facts: Facts, asked: Mapping[str, Any], *, device: Setting = "cpu") -> list[Choice]:
    """Choose everything but the length.

    Args:
        facts: What the data are like, loaded with the size of `image_size`.
        asked: The user's settings by dotted key; they are not chosen.
        device: "cpu" or "gpu".

    Returns:
        The choices. Those that the user took are not among them.

    Raises:
        ValueError: There are too few rows to learn from.

    >>> from kontrast.data.facts import Facts
    >>> photos = Facts(name="photos", rows=600, shape=(3, 96, 96), class_sizes=(60,) * 10, test_rows=200)
    >>> [choice.settings for choice in choose(photos, {"method": "tcl"})][0]
    {'encoder': 'small-resnet', 'encoder.width': 32}
    """
    if facts.rows < FEWEST:
        raise ValueError(
            f"{facts.name} has {facts.rows} training rows: must have at least {FEWEST} to learn from. For so few take "
            "the features of an encoder that is trained already (kontrast embed)"
        )
    method = _method(facts, asked)
    name = method.settings["method"]
    split = asked.get("data.split", method.settings.get("data.split", "train"))
    made = [
        method,
        _test_rows(facts),
        _view_size(facts, asked),
        _encoder(facts, asked, name, device),
        _views(facts, asked, name),
        _batch(facts, asked, name, split),
        _optimiser(facts, asked, name),
    ]
    return without(made, asked)


def _method(facts: Facts, asked: Mapping[str, Any]) -> Choice:
    name, reason = asked.get("method"), "as asked"
    settings: dict[str, Any] = {}
    sizes = facts.class_sizes
    if name is not None:
        pass
    elif facts.classes < 2:
        name = "simclr"
        reason = "the images have no labels" if not sizes else "there is one class, so labels tell nothing apart"
    elif facts.unlabelled_rows >= UNLABELLED * facts.rows:
        name, settings = "simclr", {"data.split": "unlabelled"}
        reason = f"{facts.unlabelled_rows:,} rows without labels for {facts.rows:,} with, whose labels evaluate it"
    elif sorted(sizes)[len(sizes) // 2] < 2:
        name, reason = "simclr", "most classes have one image, so labels pair none"
    else:
        least, most = min(sizes), max(sizes)
        each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        name, reason = "supcon", f"{facts.classes} classes of {each} {facts.kind}s"
    if name == "simclr":
        settings = {"method.temperature": 0.2, **settings}
    return Choice({"method": name, **settings}, reason)


def _test_rows(facts: Facts) -> Choice:
    if not _needs_test_rows(facts):
        return Choice({}, "")
    reason = "there are no test rows with labels: a fifth of each class is held out to judge by, always the same rows"
    return Choice({"data.test": TEST_SHARE}, reason)


def _view_size(facts: Facts, asked: Mapping[str, Any]) -> Choice:
    """The size of views where images could not be brought to one size."""
    if facts.kind == "vector" or facts.shape is not None:
        return Choice({}, "")
    size = PRETRAINED if _start(asked) else LARGE
    return Choice({"augment.size": size}, "images of several sizes, cropped when they are read")


def _encoder(facts: Facts, asked: Mapping[str, Any], method: str, device: Setting) -> Choice:
    if "encoder" in asked:
        return Choice({}, "")
    if facts.kind == "vector":
        return Choice({"encoder": "mlp"}, "the rows are vectors")
    if device == "gpu":
        return Choice({"encoder": "resnet18"}, "there is a GPU, and no pretrained weights were given")
    reason = f"images of {_side(facts)} pixels on a CPU, and no pretrained weights were given"
    wide = {} if _needs_labels(method) else {"encoder.features": FEATURES}
    return Choice({"encoder": "small-resnet", "encoder.width": WIDTH, **wide}, reason)


def _views(facts: Facts, asked: Mapping[str, Any], method: str) -> Choice:
    if "augment" in asked or "augment.views" in asked:
        return Choice({}, "")
    if facts.kind == "vector":
        return Choice({"augment": "vector-noise"}, "vectors: noise makes their views")
    if facts.shape and facts.shape[0] == 1 and _side(facts) <= SMALL:
        name = "crop-flip" if _needs_labels(method) else "whole-object"
        return Choice({"augment": name}, "small grey images: views that keep the whole object")
    settings = {"augment": "strong", "augment.scale": SCALE, "augment.blur": 0}
    reason = "crops, mirrored, in other colours (if sides matter: augment.flip=0; if colours do: augment.jitter=0)"
    if _start(asked) and _needs_labels(method):
        return Choice({"augment": "weak", "augment.scale": SCALE}, "crops, mirrored (if sides matter: augment.flip=0)")
    if method in WEAK_TARGET:
        strong = {"name": "strong", "scale": SCALE, "blur": 0}
        settings = {"augment.views": [{"name": "weak", "scale": SCALE}, strong]}
    return Choice(settings, reason)


def _batch(facts: Facts, asked: Mapping[str, Any], method: str, split: str) -> Choice:
    """Batch size and sampler."""
    rows = facts.unlabelled_rows if split == "unlabelled" else _rows_left(facts, asked)
    most = int(asked.get("train.batch_size") or min(BATCH_PRETRAINED if _start(asked) else BATCH, rows))
    sampler, classes = asked.get("train.sampler"), max(facts.classes, 1)
    per_class = max(2, most // classes)
    fits = 2 <= classes <= min(MOST_CLASSES, most // 2) and ("train.batch_size" not in asked or most % classes == 0)
    uneven = facts.imbalance >= UNEVEN
    if sampler == "class-balanced" or (sampler is None and _needs_labels(method) and uneven and fits):
        why = f"classes differ {facts.imbalance:.0f} times in size, so " if uneven else ""
        reason = f"{why}{per_class} rows of each class are in a batch"
        return Choice({"train.sampler": "class-balanced", "train.batch_size": per_class * classes}, reason)
    reason = f"of {rows:,} training rows" if most < rows else f"all {rows:,} training rows: there are no more"
    return Choice({"train.batch_size": most, "train.sampler": "shuffled"}, reason)


def _rows_left(facts: Facts, asked: Mapping[str, Any]) -> int:
    """The rows to train on, without those held out to test and to validate: of each class, as they are held out."""
    test = asked.get("data.test", TEST_SHARE if _needs_test_rows(facts) else None)
    validation = asked.get("data.validation")
    left = 0
    for size in facts.class_sizes or (facts.rows,):
        if test:
            size -= min(max(1, round(test * size)), size - 1)
        left += size - max(1, round(validation * size)) if validation else size
    return left


def _needs_test_rows(facts: Facts) -> bool:
    return not facts.test_rows and facts.classes >= 2 and max(facts.class_sizes) >= 2


def _optimiser(facts: Facts, asked: Mapping[str, Any], method: str) -> Choice:
    if "optim" in asked:
        return Choice({}, "")
    if _start(asked):
        reason = "gentle, as kontrast adapt, which also keeps the encoder as it is where training makes it worse"
        return Choice({"optim": "adamw", **PRETRAINED_RATES}, reason)
    return Choice({"optim": "sgd", **RATES}, "from random weights")


def _needs_labels(method: str) -> bool:
    return bool(FAMILIES["method"].declared(method, "needs_labels"))


def _side(facts: Facts) -> int:
    """Pixels a side of what the encoder sees."""
    return min(facts.shape[1:]) if facts.shape else LARGE


def _start(asked: Mapping[str, Any]) -> Any:
    """The pretrained start, if there is one."""
    return asked.get("encoder.pretrained")


# ------------------------------------------------------------------------------------------------ the length


def length(seconds_per_step: float, steps_per_epoch: int, minutes: float, most: int = EPOCHS[-1]) -> Choice:
    """How long to train: as many epochs of `EPOCHS` as fit, at least some steps.

    Args:
        seconds_per_step: Measured on this machine.
        steps_per_epoch: Batches of one pass.
        minutes: What the whole run may take.
        most: The most epochs.

    >>> print(length(0.1, 5, 10))
    train.epochs=800: about 6.7 of the 10 minutes, by a few steps of 0.1 s
    >>> print(length(3.0, 1000, 10))
    train.steps=100: one pass of 1,000 steps of 3 s is longer than 10 minutes: more with --minutes
    """
    seconds = 60 * minutes * SHARE
    whole = seconds_per_step * steps_per_epoch
    step = f"{seconds_per_step:.2g} s"
    if seconds < whole * EPOCHS[0]:
        steps = max((n for n in STEPS if n * seconds_per_step <= seconds), default=1)
        reason = (
            f"one pass of {steps_per_epoch:,} steps of {step} is longer than {minutes:g} minutes: more with --minutes"
        )
        return Choice({"train.steps": steps}, reason)
    epochs = max(n for n in EPOCHS if n * whole <= seconds and n <= most)
    used = epochs * whole / 60
    reason = f"about {used:.2g} of the {minutes:g} minutes, by a few steps of {step}"
    if epochs == most and used < minutes / 2:
        reason = f"the most that is chosen: more passes over so few rows rarely help (about {used:.2g} minutes)"
    return Choice({"train.epochs": epochs}, reason)


def schedule(epochs: float, asked: Mapping[str, Any]) -> Choice:
    """Along a cosine after a short warm-up; for a pretrained start the head learns first, if there is time.

    >>> schedule(200, {}).settings, schedule(5, {}).settings["schedule.warmup_epochs"]
    ({'schedule': 'warmup-cosine', 'schedule.warmup_epochs': 10.0}, 0.25)
    >>> schedule(5, {"encoder.pretrained": True}).settings["train.head_first"]
    0.5
    """
    warmup = round(min(WARMUP * epochs, 10.0), 3)
    settings = {"schedule": "warmup-cosine", "schedule.warmup_epochs": warmup}
    if _start(asked) and epochs >= 2:
        return Choice({**settings, "train.head_first": 0.5}, "first the head alone; a short warm-up, then down to 0")
    return Choice(settings, "a short warm-up, then down to 0")


def look_every(steps_per_epoch: int, steps: int) -> int | None:
    """``run.monitor_every`` for a run of so many steps, so that monitors take no larger part of short epochs.

    >>> look_every(5, 4000), look_every(100, 1000) is None
    (80, True)
    """
    return None if steps <= LOGGED * steps_per_epoch else steps // LOGGED


# ------------------------------------------------------------------------------------------------ words


def words(settings: Mapping[str, Any]) -> list[str]:
    """Settings as they are typed.

    >>> words({"optim.lr": 0.1, "augment.views": [{"name": "weak"}]})
    ['optim.lr=0.1', 'augment.views=[{name: weak}]']
    """
    return [f"{key}={_word(value)}" for key, value in settings.items()]


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("\n").removesuffix("\n...")


def without(choices: Iterable[Choice], asked: Mapping[str, Any]) -> list[Choice]:
    """The choices without the settings that the user gives, and without those that are then empty.

    >>> without([Choice({"optim": "sgd", "optim.lr": 0.2}, "why")], {"optim.lr": 0.1})
    [Choice(settings={'optim': 'sgd'}, reason='why')]
    """
    rest = [replace(c, settings={k: v for k, v in c.settings.items() if k not in asked}) for c in choices]
    return [choice for choice in rest if choice.settings]


def recipe_of(source: str, name: str, choices: Sequence[Choice], asked: Mapping[str, Any]) -> Recipe:
    """The recipe of choices and settings; its description has the reasons.

    Args:
        source: ``data.name``.
        name: A short name of the data.
        choices: The choices, with the method's among them unless it is asked for.
        asked: The user's settings by dotted key, which win.

    Returns:
        The recipe, not resolved.

    Raises:
        ValueError: A setting is wrong.

    >>> asked = {"encoder": "resnet18", "train.epochs": 5}
    >>> recipe = recipe_of("photos/", "photos", [Choice({"method": "tcl"}, "labels")], asked)
    >>> recipe.name, recipe.train.epochs
    ('tcl-photos', 5)
    >>> recipe.about
    'Chosen by kontrast train for photos. method=tcl: labels. Asked for: encoder=resnet18 train.epochs=5.'
    """
    settings = {key: value for choice in choices for key, value in choice.settings.items()}
    method = FAMILIES["method"].canonical({**settings, **asked}["method"])
    given = {key: value for key, value in asked.items() if not key.startswith("run.") and key not in ("data", "name")}
    reasons = [f"{choice}." for choice in choices if not all(key.startswith("run.") for key in choice.settings)]
    about = " ".join([f"Chosen by kontrast train for {name}.", *reasons])
    about += f" Asked for: {' '.join(words(given))}." if given else ""
    short = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip("-.") or "data"
    base = {"name": f"{method}-{short}"[:80], "about": about, "data": source}
    start = _small(method).model_copy(update={"encoder": Part(name="none")})  # its options are not another encoder's
    return start.override({**base, **settings, **asked, "method": method})


def command(source: str, choices: Sequence[Choice], asked: Mapping[str, Any]) -> str:
    """The command line that gives the same recipe, with nothing left to choose.

    >>> print(command("my photos/", [Choice({"method": "tcl"}, ""), Choice({"train.epochs": 5}, "")], {"seed": 1}))
    kontrast train tcl 'data=my photos/' train.epochs=5 seed=1
    """
    settings = {key: value for choice in choices for key, value in choice.settings.items()}
    given = {key: value for key, value in asked.items() if key != "data"}
    whole = {**settings, **given}
    method = whole.pop("method")
    return shlex.join(["kontrast", "train", str(method), f"data={source}", *words(whole)])


def warnings_of(facts: Facts, asked: Mapping[str, Any]) -> list[str]:
    """What the user should know of the data before training.

    Args:
        facts: The facts; where rows are held out to test on, with those as test rows.
        asked: The user's settings by dotted key, and those of a pretrained start.

    >>> from kontrast.data.facts import Facts
    >>> warnings_of(Facts(name="photos", rows=600, class_sizes=(300, 300), test_rows=200, copies=3), {})
    ['3 of the 200 test images are training images too: every accuracy is too high by that. Remove them from one of the two']
    """  # noqa: E501
    found = []
    if facts.copies or facts.near_copies:
        kinds = [f"{facts.copies:,} of the {facts.test_rows:,} test images are training images too"] * bool(
            facts.copies
        )
        more = (
            f"{facts.near_copies:,} {'more ' if facts.copies else ''}look like a resized or re-encoded training image"
        )
        kinds += [more] * bool(facts.near_copies)
        found.append(f"{', '.join(kinds)}: every accuracy is too high by that. Remove them from one of the two")
    if facts.classes == 1:
        found.append("all images are in one class; for labels put them into one subfolder a class")
    if facts.classes >= 2 and min(facts.class_sizes) < 5:
        small_ones = sum(size < 5 for size in facts.class_sizes)
        found.append(f"{small_ones:,} of {facts.classes:,} classes have fewer than 5 images: expect little for them")
    if facts.rows < FEW and facts.unlabelled_rows < FEW and not _start(asked) and facts.kind == "image":
        found.append(
            f"{facts.rows:,} images are few to learn from without pretrained weights: give an encoder that has seen "
            "more (encoder=timm/… encoder.pretrained=FILE)"
        )
    if not facts.classes and facts.kind == "image":
        found.append(
            "without labels there is no accuracy to judge by: look at the map and the neighbours in the report"
        )
    return found


def _small(method: str) -> Recipe:
    return small.RECIPES[f"{FAMILIES['method'].canonical(method)}-fashion-mini"]
