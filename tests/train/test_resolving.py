"""Recipes with nothing left to guess."""

from __future__ import annotations

import pytest

from kontrast import methods
from kontrast.recipe import Recipe
from kontrast.train.resolving import resolve
from tests.train.small import ALL, recipe


@pytest.mark.parametrize("method", ALL)
def test_every_option_is_written_out_and_resolving_again_changes_nothing(method: str) -> None:
    whole = resolve(recipe(method))
    assert whole.method.options.keys() == methods.options_of(method).keys()
    assert whole.encoder.options.keys() == {
        *("pretrained", "norm", "allow_missing"),
        *("hidden", "features", "depth", "batch_norm"),
    }
    assert whole.optim.options.keys() >= {"lr", "momentum", "weight_decay"}
    assert resolve(whole) == whole
    assert Recipe.of(whole.model_dump(mode="json")) == whole


def test_a_default_left_out_or_written_is_the_same_run() -> None:
    written = recipe("tcl", **{"method.k1": 5000.0, "method.temperature": 0.1, "optim.momentum": 0.9})
    assert resolve(written).hash == resolve(recipe("tcl")).hash


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method.name": "supcom"}, "no method 'supcom'; did you mean 'supcon'"),
        ({"encoder": "resnet81"}, "no encoder 'resnet81'; did you mean 'resnet18'"),
        ({"encoder.widht": 3}, "encoder 'mlp' has no option 'widht'"),
        ({"head": "sec"}, "no head 'sec'; did you mean 'sce'"),
        ({"head.outt": 3}, "head 'wang-liu' has no option 'outt'; did you mean 'out'"),
        ({"optim.momentun": 3}, "optimiser 'sgd' has no option 'momentun'; did you mean 'momentum'"),
        ({"optim": "sdg"}, "no optimiser 'sdg'"),
        ({"schedule": "cosin"}, "no schedule 'cosin'; did you mean 'cosine'"),
        ({"augment": "crop-flop"}, "augment.views.0: no preset 'crop-flop'; did you mean 'crop-flip'"),
        ({"augment.views.0.pading": 1}, "preset 'crop-flip' has no option 'pading'; did you mean 'padding'"),
        ({"augment.views.1.scale": 2}, "augment.views.1: scale must be a pair"),
        ({"augment.views": [["flop"], "weak"]}, "augment.views.0: no operation 'flop'; did you mean 'flip'"),
        (
            {"augment.views": ["weak", [{"name": "flip", "q": 1}]]},
            "augment.views.1: operation 'flip' has no option 'q'",
        ),
        (
            {"augment.views": ["resized-crop", "flip"]},
            "a view of operations is a list: augment.views=.*one list for each view",
        ),
        ({"evaluate.protocols": ["knn21"]}, "no protocol 'knn21'"),
        ({"optim.lr": 0}, "optim.lr=0: must be a number above 0"),
        ({"optim.lr": None}, "optim.lr=None"),
        ({"run.monitors": ["uniformty"]}, "no monitor 'uniformty'; did you mean 'uniformity'"),
        ({"run.loggers": ["tensorbord"]}, "no logger 'tensorbord'; did you mean 'tensorboard'"),
    ],
)
def test_errors_come_before_anything_is_loaded(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        resolve(recipe("supcon", **change))


@pytest.mark.parametrize(("method", "views"), [("simclr", 1), ("sce", 3), ("instance", 2), ("tcl-self", 1)])
def test_the_number_of_views_must_be_the_methods(method: str, views: int) -> None:
    with pytest.raises(ValueError, match=rf"augment.views has {views} views? of each sample: must have"):
        resolve(recipe(method, **{"augment.views": ["crop-flip"] * views}))


def test_timm_takes_its_own_options() -> None:
    made = resolve(recipe("supcon", encoder="timm/resnet18").override({"encoder.drop_rate": 0.1}))
    of_start = {"pretrained": None, "norm": None, "allow_missing": None}
    assert made.encoder.options == {**of_start, "channels_last": True, "drop_rate": 0.1}


def test_views_are_written_out() -> None:
    short = recipe().override({"augment.views": [["flip", {"name": "resized-crop", "scale": 0.5}], "weak"]})
    long = recipe().override(
        {
            "augment.views": [
                [{"name": "flip", "p": 0.5}, {"name": "resized-crop", "scale": [0.5, 1], "ratio": [0.75, 4 / 3]}],
                {"name": "weak", "scale": None, "jitter": None},
            ]
        }
    )
    assert resolve(short).augment == resolve(long).augment
    assert resolve(short).hash == resolve(long).hash
    assert resolve(resolve(short)) == resolve(short)
    stronger = recipe().override(
        {"augment.views": [["flip", {"name": "resized-crop", "scale": 0.5}], {"name": "weak", "jitter": 0}]}
    )
    assert resolve(stronger).hash != resolve(short).hash
