"""A recipe that train would refuse is ill, with train's own error."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from kontrast import doctor, recipes
from kontrast.pipeline import run_recipe
from tests.doctor import patients


@pytest.mark.parametrize(
    ("method", "settings", "said"),
    [
        ("supcon", ("data.limit=20",), "train.batch_size=128: must be at most the number of training rows (20)"),
        ("supcon", ("train.sampler=class-balanced",), "must be a multiple of the number of classes (10)"),
        ("supcon", ("data=nowhere/at/all",), "neither a set nor a path"),
        ("simclr", ("augment.size=16", "augment.views=[weak, none]"), "the view 'none' does not crop"),
    ],
)
def test_train_says_the_same(method: str, settings: tuple[str, ...], said: str, tmp_path: Path) -> None:
    recipe = recipes.find(f"{method}-fashion-mini").override([*settings, f"run.out={tmp_path}", "run.progress=false"])
    found = doctor.examine_recipe(recipe)
    assert (found[0].rule, found[0].status) == ("refused", "problem"), "told before all"
    with pytest.raises(ValueError, match=re.escape(said)) as refusal:
        run_recipe(recipe)
    assert found[0].evidence == str(refusal.value)


def test_labels_that_are_needed_and_not_there(tmp_path: Path) -> None:
    np.savez(tmp_path / "bare.npz", x_train=np.random.default_rng(0).integers(0, 255, (64, 8, 8, 3), dtype=np.uint8))
    settings = (f"data={tmp_path / 'bare.npz'}", "train.batch_size=32", "evaluate.protocols=[]")
    found = patients.of_recipe("supcon", *settings)["refused"]
    assert found.status == "problem"
    assert "needs labels" in found.evidence
    assert patients.of_recipe("simclr", *settings)["refused"].status == "ok"


def test_what_train_takes() -> None:
    found = patients.of_recipe("supcon")["refused"]
    assert (found.status, found.evidence) == ("ok", "10,000 training rows, 1,170 steps")


def test_a_known_set_that_is_elsewhere_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> None:
        raise OSError("the files could not be downloaded")

    monkeypatch.setattr("kontrast.train.job.load", absent)
    found = patients.of_recipe("supcon")["refused"]
    assert found.status == "unknown"
    assert "could not be downloaded" in found.evidence
