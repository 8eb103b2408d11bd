"""Facts of data → choices: a table, and what holds of every row of it."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from kontrast.data.facts import Facts, Sides
from kontrast.recipe import parse
from kontrast.recipes import choosing
from kontrast.recipes.choosing import Choice, choose, command, image_size, length, recipe_of, warnings_of
from kontrast.train import resolve

PHOTO, PIXELS, GREY = (3, 96, 96), (3, 32, 32), (1, 28, 28)
TEN = (60,) * 10


def chosen(facts: Facts, asked: dict[str, Any] | None = None, **how: Any) -> dict[str, Any]:
    return {key: value for choice in choose(facts, asked or {}, **how) for key, value in choice.settings.items()}


@pytest.mark.parametrize(
    ("facts", "asked", "expected"),
    [
        (Facts(name="photos", rows=600, shape=PHOTO, class_sizes=TEN, test_rows=200), {},
         {"method": "supcon", "train.batch_size": 128, "train.sampler": "shuffled", "augment": "strong"}),
        (Facts(name="photos", rows=600, shape=PHOTO), {}, {"method": "simclr", "method.temperature": 0.2}),
        (Facts(name="one class", rows=600, shape=PHOTO, class_sizes=(600,)), {}, {"method": "simclr"}),
        (Facts(name="faces", rows=600, shape=PHOTO, class_sizes=(1,) * 580 + (10, 10)), {}, {"method": "simclr"}),
        (Facts(name="few labels", rows=50, shape=PHOTO, class_sizes=(25, 25), test_rows=9, unlabelled_rows=900), {},
         {"method": "simclr", "data.split": "unlabelled", "train.batch_size": 128}),
        (Facts(name="no test", rows=600, shape=PHOTO, class_sizes=TEN), {}, {"data.test": 0.2}),
        (Facts(name="tiny", rows=40, shape=PHOTO, class_sizes=(20, 20)), {},
         {"data.test": 0.2, "train.batch_size": 32}),
        (Facts(name="uneven", rows=1030, shape=PHOTO, class_sizes=(1000, 30), test_rows=50), {},
         {"train.sampler": "class-balanced", "train.batch_size": 128}),
        (Facts(name="uneven", rows=1060, shape=PHOTO, class_sizes=(1000, 30, 30), test_rows=50), {},
         {"train.sampler": "class-balanced", "train.batch_size": 126}),
        (Facts(name="uneven, many", rows=5000, shape=PHOTO, class_sizes=(4, 46) * 100, test_rows=50), {},
         {"train.sampler": "shuffled", "train.batch_size": 128}),
        (Facts(name="uneven", rows=1060, shape=PHOTO, class_sizes=(1000, 30, 30), test_rows=50),
         {"train.batch_size": 64}, {"train.sampler": "shuffled"}),
        (Facts(name="pairs", rows=100, shape=PHOTO, class_sizes=(2,) * 50), {},
         {"data.test": 0.2, "train.batch_size": 50}),
        (Facts(name="validated", rows=100, shape=PHOTO), {"data.validation": 0.3}, {"train.batch_size": 70}),
        (Facts(name="uneven", rows=1030, shape=PHOTO, class_sizes=(1000, 30), test_rows=50), {"method": "simclr"},
         {"train.sampler": "shuffled"}),
        (Facts(name="grey", rows=10_000, shape=GREY, class_sizes=(1000,) * 10, test_rows=50), {},
         {"augment": "crop-flip", "method": "supcon"}),
        (Facts(name="grey", rows=10_000, shape=GREY), {}, {"augment": "whole-object"}),
        (Facts(name="vectors", rows=300, kind="vector", shape=(20,), class_sizes=(150, 150), test_rows=50), {},
         {"augment": "vector-noise", "encoder": "mlp"}),
        (Facts(name="on a GPU", rows=600, shape=PHOTO, class_sizes=TEN, test_rows=9), {"device": "gpu"},
         {"encoder": "resnet18"}),
        (Facts(name="of several sizes", rows=600, class_sizes=TEN, test_rows=9), {}, {"augment.size": 96}),
        (Facts(name="photos", rows=600, shape=PHOTO, class_sizes=TEN, test_rows=9), {"method": "sce"},
         {"method": "sce", "augment.views": [{"name": "weak", "scale": 0.4},
                                             {"name": "strong", "scale": 0.4, "blur": 0}]}),
    ],
    ids=lambda value: value.name if isinstance(value, Facts) else "",
)  # fmt: skip
def test_choices(facts: Facts, asked: dict[str, Any], expected: dict[str, Any]) -> None:
    how = {"device": asked.pop("device")} if "device" in asked else {}
    found = chosen(facts, asked, **how)
    assert {**found, **asked}.items() >= expected.items()
    assert ("data.test" in found) == (facts.classes > 1 and not facts.test_rows and max(facts.class_sizes) > 1)
    choices = [*choose(facts, asked, **how), Choice({"train.epochs": 1}, "")]
    assert all(choice.reason for choice in choices[:-1]), "each has its reason"
    recipe = resolve(recipe_of("photos/", facts.name, choices, asked))
    words = shlex.split(command("photos/", choices, asked))
    settings = dict(map(parse, words[3:]))
    assert settings.pop("data") == "photos/"
    again = {**settings, "method": words[2]}
    rest = choose(facts, again, **how)
    assert rest == [], "the command leaves nothing to choose"
    assert resolve(recipe_of("photos/", facts.name, rest, again)).hash == recipe.hash


def test_settings_win_and_what_depends_on_them_follows() -> None:
    facts = Facts(name="photos", rows=600, shape=PHOTO, class_sizes=TEN, test_rows=200)
    assert not chosen(facts, {"optim": "adamw"}).keys() & {"optim", "optim.lr"}
    assert chosen(facts, {"optim.lr": 1.0})["optim"] == "sgd"
    assert "encoder.width" not in chosen(facts, {"encoder": "resnet18"})
    assert chosen(facts, {"train.sampler": "class-balanced"})["train.batch_size"] == 120
    asked = {"optim.lr": 1.0, "method": "tcl", "augment.jitter": 0, "train.steps": 5}
    recipe = recipe_of("photos/", "photos", choose(facts, asked), asked)
    assert (recipe.method.name, recipe.optim.options["lr"], recipe.train.steps) == ("tcl", 1.0, 5)
    assert all(view["jitter"] == 0 for view in recipe.augment.described)
    pretrained = {"encoder": "resnet18", "encoder.pretrained": "weights.pt"}
    assert chosen(facts, pretrained)["optim.lr"] < chosen(facts)["optim.lr"]


@pytest.mark.parametrize(
    ("sides", "asked", "expected"),
    [
        (Sides(200, 224), {}, {"data.size": 96}),
        (Sides(3000, 3000, square=True), {}, {"data.size": 96}),
        (Sides(32, 32, square=True), {}, None),
        (Sides(32, 32), {}, {"data.size": 32}),
        (Sides(60, 60, square=True), {}, None),
        (Sides(60, 64), {}, {"data.size": 64}),
        (Sides(200, 224), {"data.size": 50}, None),
        (Sides(200, 300), {"encoder.pretrained": "weights.pt"}, {"data.size": 224}),
        (None, {}, None),
    ],
)
def test_sizes(sides: Sides | None, asked: dict[str, Any], expected: dict[str, Any] | None) -> None:
    made = image_size(sides, asked)
    assert (None if made is None else made.settings) == expected


def test_a_checkpoint_brings_its_size() -> None:
    assert image_size(Sides(200, 300), {"encoder.pretrained": True}, checkpoint=240) is None


def test_what_does_not_fit_into_memory_is_cached() -> None:
    rows = choosing.MEMORY // (3 * 96 * 96)
    assert "run.cache" not in image_size(Sides(200, 224), {}, rows=rows).settings
    assert image_size(Sides(200, 224), {}, rows=rows + 1).settings["run.cache"] is True


def test_the_length_is_a_step_of_a_coarse_grid() -> None:
    """Noise in the timing rarely moves it, and never beyond the minutes."""
    for seconds in (0.01, 0.1, 0.5):
        made = length(seconds, 5, 10).settings["train.epochs"]
        assert made in choosing.EPOCHS
        assert made * 5 * seconds <= 600 * choosing.SHARE
    assert length(0.1, 5, 10).settings == length(0.11, 5, 10).settings, "800 passes"
    assert length(0.1, 5, 20).settings["train.epochs"] == 1000 == choosing.EPOCHS[-1]
    assert length(10.0, 1000, 1).settings == {"train.steps": 2}
    assert length(1e5, 1000, 1).settings == {"train.steps": 1}
    growth = [b / a for a, b in zip(choosing.EPOCHS[4:], choosing.EPOCHS[5:], strict=False)]
    assert min(growth) > 1.15
    assert max(growth) < 1.4


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (Facts(name="a", rows=600, class_sizes=TEN, test_rows=200, copies=3, near_copies=2),
         "3 of the 200 test images are training images too, 2 more look like"),
        (Facts(name="a", rows=600, class_sizes=TEN, test_rows=200, copies=0, near_copies=2), "2 look like"),
        (Facts(name="a", rows=40, class_sizes=(20, 20), test_rows=4), "40 images are few"),
        (Facts(name="a", rows=600, class_sizes=(600,)), "one class"),
        (Facts(name="a", rows=600, class_sizes=(597, 3), test_rows=9), "1 of 2 classes have fewer than 5"),
        (Facts(name="a", rows=600), "without labels there is no accuracy"),
    ],
)  # fmt: skip
def test_warnings(facts: Facts, says: str) -> None:
    assert any(says in text for text in warnings_of(facts, {}))
    assert warnings_of(Facts(name="a", rows=600, class_sizes=TEN, test_rows=200, copies=0), {}) == []


def test_too_few_images_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"tiny has 5 training rows: must have at least 8 to learn from\. .*kontrast embed"
    ):
        choose(Facts(name="tiny", rows=5, shape=PHOTO, class_sizes=(3, 2)), {})
