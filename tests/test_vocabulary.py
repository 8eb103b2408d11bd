"""What is read from the source without importing is what the imported parts have, for every part of every family."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from kontrast import augment, data, evaluate, losses, methods, models, optim, vocabulary
from kontrast.recipe import Part, Recipe
from kontrast.registry import Family
from kontrast.train import exports, loggers, monitors, resolve
from kontrast.train.resolving import _encoder_options, _head_options
from kontrast.vocabulary import check, check_data, check_name, check_options, names, options, summary
from tests.train.small import recipe

IMPORTED: dict[str, Callable[[], Iterable[str]]] = {
    "loss": lambda: [name.replace("_", "-") for name in Family(losses.__name__).names()],
    "method": methods.names,
    "data set": data.names,
    "encoder": models.names,
    "head": lambda: list(models.HEADS),
    "augmentation": lambda: augment.NAMES,
    "operation": lambda: augment.OPERATIONS,
    "optimiser": optim.optimizer_names,
    "schedule": optim.schedule_names,
    "protocol": evaluate.names,
    "monitor": monitors.names,
    "logger": loggers.names,
    "export": lambda: Family(exports.__name__).names(),
}


def of_protocol(name: str) -> dict[str, Any]:
    fields = dataclasses.fields(evaluate.PROTOCOLS[name])
    return {f.name: None if f.default is dataclasses.MISSING else f.default for f in fields}


OPTIONS: dict[str, Callable[[str], dict[str, Any]]] = {
    "method": methods.options_of,
    "encoder": lambda name: _encoder_options(Part(name=name)),
    "head": _head_options,
    "augmentation": augment.options_of,
    "operation": augment.operation_options,
    "optimiser": lambda name: {"lr": None, **optim.options_of(name)},
    "schedule": optim.schedule_options,
    "protocol": of_protocol,
}
PARTS = [(family, name) for family in OPTIONS for name in names(family) if "…" not in name]


def test_every_family_is_known_and_tested() -> None:
    assert IMPORTED.keys() == {*vocabulary.FOLDERS, *vocabulary.TABLES}


@pytest.mark.parametrize("family", IMPORTED)
def test_names_are_those_of_the_imported_family(family: str) -> None:
    assert sorted(names(family)) == sorted(IMPORTED[family]())


@pytest.mark.parametrize(("family", "name"), PARTS, ids=lambda value: str(value))
def test_options_and_defaults_are_those_of_the_imported_part(family: str, name: str) -> None:
    assert options(family, name) == OPTIONS[family](name)


@pytest.mark.parametrize("family", vocabulary.FOLDERS)
def test_every_file_says_what_it_is(family: str) -> None:
    assert all(summary(family, name) for name in names(family))


WRONG: list[dict[str, object]] = [
    {"method.name": "supcom"},
    {"method.temprature": 0.1},
    {"method.tau": 0.1},
    {"encoder": "resnet81"},
    {"encoder.widht": 3},
    {"head": "sec"},
    {"head.outt": 3},
    {"optim": "sdg"},
    {"optim.learning_rate": 0.1},
    {"optim.momentum": "much"},
    {"schedule": "cosin"},
    {"schedule.late": 1, "schedule.name": "cosine"},
    {"augment": "crop-flop"},
    {"augment.views.0.pading": 1},
    {"augment.views": ["flip", "crop-flip"]},
    {"augment.views": [["flop"], "crop-flip"]},
    {"augment.views": [["weak"], "crop-flip"]},
    {"augment.views": [[{"name": "resized-crop", "scales": 1}], "crop-flip"]},
    {"augment.views": [[{"name": "resized-crop", "size": 8}], "crop-flip"]},
    {"evaluate.protocols": ["knn21"]},
    {"evaluate.protocols": [{"name": "probe", "epoch": 3}]},
    {"run.monitors": ["uniformty"]},
    {"run.loggers": ["tensorbord"]},
]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_the_early_check_says_what_the_full_one_says(change: dict[str, object], monkeypatch: Any) -> None:
    wrong = recipe("supcon", **change)
    with pytest.raises(ValueError) as early:  # noqa: PT011 (the two texts are compared)
        check(wrong)
    with pytest.raises(ValueError) as late:  # noqa: PT011
        resolve(wrong)
    assert str(early.value) == str(late.value)


def test_what_resolves_passes() -> None:
    from kontrast import recipes

    for name in recipes.names():
        check(recipes.find(name))
    check(recipe("supcon", encoder="timm/anything"))
    check(recipe("supcon", **{"schedule.name": "warmup_cosine"}))  # methods, optimisers and schedules take _ for -


def test_the_data_are_a_set_or_a_path(tmp_path: Path) -> None:
    for good in ("fashion-mini", "fashion_mini", str(tmp_path)):
        check_data(recipe("supcon").override({"data.name": good}))
    for wrong in ("fashion-mny", str(tmp_path / "photos"), str(tmp_path / "rows.npz")):
        asked = recipe("supcon").override({"data.name": wrong})
        with pytest.raises((ValueError, OSError)) as early:
            check_data(asked)
        with pytest.raises((ValueError, OSError)) as late:
            data.load(wrong)
        assert (type(early.value), str(early.value)) == (type(late.value), str(late.value))


def test_a_name_and_an_option_have_their_nearest() -> None:
    with pytest.raises(ValueError, match="no head 'wang_liu'; did you mean 'wang-liu'"):
        check_name("head", "wang_liu", names("head"))
    with pytest.raises(ValueError, match=r"optim 'sgd' has no option 'learning_rate'; did you mean 'lr'\?"):
        check_options("optim", "sgd", {"learning_rate": 1}, {"lr": None})


def test_nothing_is_imported_for_it() -> None:
    code = (
        "import sys\nfrom kontrast import vocabulary as v, recipes\n"
        "for family in (*v.FOLDERS, *v.TABLES):\n"
        "    for name in v.names(family):\n"
        "        family in v.FOLDERS and v.summary(family, name)\n"
        "        family in ('loss', 'data set', 'monitor', 'logger', 'export') or v.options(family, name)\n"
        "[v.check(recipes.find(name)) for name in recipes.names()]\n"
        "print([m for m in ('torch', 'numpy', 'torchvision') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_recipe_is_what_is_checked() -> None:
    asked = Recipe.of({"method": "supcon", "train": {"epochs": 1}})
    check(asked)
