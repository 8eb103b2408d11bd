"""Data without a recipe: what a word is, what is found again, and what is chosen for real folders."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kontrast
from kontrast.recipe import Recipe
from kontrast.recipes import for_data
from kontrast.recipes.for_data import prepare, pretrained_start, request_of, settings_of, timm_cache
from kontrast.runs import Run
from tests.data.pictures import classes, write

pytestmark = pytest.mark.filterwarnings("ignore:.*images are few", "ignore:.*without labels there is no accuracy")
SMALL: dict[str, Any] = {"encoder.width": 2, "evaluate.protocols": ["knn20"], "run.progress": False, "run.threads": 1}


@pytest.fixture(autouse=True)
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer than the runs, and are tested elsewhere."""
    monkeypatch.setattr("kontrast.pipeline.write_page", lambda run, **_: None)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return classes(tmp_path / "photos", per_class=10, size=(20, 20))


def asked(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {**SMALL, "run.out": str(tmp_path / "runs"), "train.epochs": 1, **more}


# ------------------------------------------------------------------------------------------------ words


def test_what_a_word_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("supcon", "digits", "supcon-fashion-mini", "photos", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "recipe.yaml").touch()
    assert request_of("supcon-fashion-mini") is None, "a recipe's name wins over a folder of this name"
    assert request_of("run") is None
    assert request_of("mine.yaml") is None
    assert request_of(Recipe.of({"method": "tcl", "train": {"epochs": 1}})) is None
    assert request_of({"method": "tcl", "train": {"epochs": 1}}) is None
    assert request_of("supcon", {"data": "photos"}).settings == {"method": "supcon"}
    assert request_of("tcl_self", {"data": "photos"}).settings == {"method": "tcl-self"}
    assert request_of("digits").source == "digits", "a set's name, as for data.load"
    for folder in ("./supcon", "supcon/", "./digits", "supcon-fashion-mini/", "photos", Path("photos")):
        assert request_of(folder).source == str(folder), "the folder"
    assert request_of(None, {"data": {"name": "photos", "size": 32}}).settings == {"data.size": 32}
    rows = np.zeros((9, 4, 4))
    assert request_of(rows).source is request_of(None, data=rows).source is rows
    assert request_of({"x_train": rows, "y_train": [0] * 9}).is_object


@pytest.mark.parametrize(
    ("source", "settings", "says"),
    [
        ("supcon", [], "supcon is a method, and there must be data to train it on: kontrast train supcon data=photos/; "
         "or take a recipe of it: supcon-"),
        (None, [], "without a recipe there must be data"),
        ("digits", ["data=photos"], "data='photos': must be left out, as 'digits' is data already"),
        ("supcn", [], "no recipe 'supcn'; did you mean 'supcon'?"),
        ("digitz", [], "did you mean 'digits'?"),
        ("supcon-fashion-mni", [], "did you mean 'supcon-fashion-mini'? `kontrast list recipes` has them all"),
        ("foto", [], "did you mean 'fotos'?"),
        ("./foto/", [], "did you mean 'fotos'?"),
        ("rows.npz", [], "there is no file rows.npz"),
        ("fotos", ["optim.learning_rate=1"], "did you mean 'lr'?"),
        ("fotos", ["method=spucon"], "did you mean 'supcon'?"),
        ("fotos", ["encoder=resnet81"], "did you mean 'resnet18'?"),
        ("fotos", ["epochs=1"], "did you mean 'train.epochs'?"),
    ],
)  # fmt: skip
def test_mistakes(
    source: str | None, settings: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fotos").mkdir()
    with pytest.raises(ValueError) as error:  # noqa: PT011 (its text is compared below)
        request_of(source, settings).check()
    assert says in str(error.value)


def test_minutes_are_for_data(photos: Path) -> None:
    with pytest.raises(ValueError, match="--minutes: must be left out for 'supcon-fashion-mini'"):
        request_of("supcon-fashion-mini", minutes=5)
    with pytest.raises(ValueError, match="minutes=-1: must be a number above 0"):
        request_of(photos, minutes=-1).check()


# ------------------------------------------------------------------------------------------------ found again


def test_the_same_call_finds_its_run_whatever_the_clock_says(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that took a second at first takes a tenth now: the run is the same, finished or not."""
    slow = {key: value for key, value in asked(tmp_path).items() if key != "train.epochs"}
    monkeypatch.setattr("kontrast.train.loop.time_steps", lambda recipe, data: (1.0, 1))
    first = kontrast.run(photos, minutes=0.05, **slow)
    assert first.recipe.train.epochs == 2
    monkeypatch.setattr("kontrast.train.loop.time_steps", lambda recipe, data: (0.1, 1))
    first.note("interrupted")
    first.result_file.unlink()
    again = kontrast.run(data=str(photos), minutes=0.05, **slow)
    assert (again.path, again.status, again.has_result) == (first.path, "done", True)
    other = prepare(request_of(photos, slow, minutes=0.1))
    assert other.recipe.train.epochs == 40, "other minutes, another run"
    assert prepare(request_of(photos, {**slow, "seed": 1}, minutes=0.05)).recipe.train.epochs == 20
    assert prepare(request_of("tcl", slow | {"data": str(photos)}, minutes=0.05)).recipe.train.epochs == 20
    where = prepare(request_of(photos, {**slow, "run.workers": 2}, minutes=0.05))
    assert where.recipe.train.epochs == 2, "how it is run does not count"
    assert where.recipe.run.workers == 2


def test_other_images_are_looked_at_again(photos: Path, tmp_path: Path) -> None:
    run = kontrast.run(photos, **asked(tmp_path))
    assert prepare(request_of(photos, asked(tmp_path))).choices == ()
    write(photos / "cat" / "new.png", (20, 20), seed=99)
    prepared = prepare(request_of(photos, asked(tmp_path)))
    assert prepared.choices
    if Run.of(prepared.recipe).path == run.path:
        assert any("has changed since" in text for text in prepared.warnings)


def test_under_torchrun_the_length_must_be_given(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    settings = asked(tmp_path)
    assert prepare(request_of(photos, settings)).recipe.train.epochs == 1
    del settings["train.epochs"]
    with pytest.raises(ValueError, match=r"train\.epochs: must be given under torchrun"):
        prepare(request_of(photos, settings))


# ------------------------------------------------------------------------------------------------ chosen


def test_the_command_repeats_it_exactly(photos: Path, tmp_path: Path) -> None:

    prepared = prepare(request_of(photos, asked(tmp_path)))
    words = shlex.split(prepared.command)
    again = prepare(request_of(words[2], words[3:]))
    assert again.recipe.hash == prepared.recipe.hash
    assert again.command == prepared.command
    assert "2 classes of 10 images" in prepared.recipe.about, "recipe.yaml has the reasons"
    assert "held out" in "\n".join(prepared.lines())


def test_copies_among_the_rows_that_are_held_out_are_told(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for i in range(10):
            write(tmp_path / "photos" / name / f"{i}.png", (60, 60), seed=i // 2)
    prepared = prepare(request_of(tmp_path / "photos", asked(tmp_path)))
    assert any("4 of the 4 test images are training images too" in text for text in prepared.warnings)


@pytest.mark.parametrize("form", ["folder", "file", "arrays", "paths", "set", "flat", "vectors"])
def test_every_form_of_data_is_trained_on(form: str, photos: Path, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 255, (40, 12, 20, 3), dtype=np.uint8), np.arange(40) % 2
    np.savez(tmp_path / "rows.npz", x_train=x[:30], y_train=y[:30], x_test=x[30:], y_test=y[30:])
    files = sorted(photos.rglob("*.png"))
    source: Any = {
        "folder": str(photos), "file": str(tmp_path / "rows.npz"), "arrays": (x, y), "set": "digits",
        "paths": (files, [path.parent.name for path in files]), "flat": str(photos / "cat"),
        "vectors": draw.normal(size=(40, 6)),
    }[form]  # fmt: skip
    settings = asked(tmp_path) | ({"data.limit": 50, "data.test_limit": 20} if form == "set" else {})
    if form == "vectors":
        del settings["encoder.width"]
    run = kontrast.run(data=source, **settings)
    assert run.status == "done"
    labelled = form not in ("flat", "vectors")
    assert run.recipe.method.name == ("supcon" if labelled else "simclr")
    assert bool(run.result["results"]) == labelled, "a verdict wherever there are labels"
    if labelled:
        held_out = form not in ("file", "set")
        assert (run.recipe.data.test is not None) == held_out
        assert run.result["results"][0]["split"] == ("held-out" if held_out else "test")
    assert kontrast.run(data=source, **settings).path == run.path


def test_the_held_out_rows_are_the_same_from_the_recipe_alone(photos: Path, tmp_path: Path) -> None:
    """The data were loaded to look at them; a run that is resumed from its folder loads them itself."""
    run = kontrast.run(photos, **asked(tmp_path, **{"data.limit": 10}))
    value = run.value("knn20")
    predictions = run.arrays(["query_predictions"])
    run.result_file.unlink()
    assert kontrast.run(run.path).value("knn20") == value
    assert {k: v.tolist() for k, v in run.arrays(["query_predictions"]).items()} == {
        k: v.tolist() for k, v in predictions.items()
    }


def test_choices_are_printed_with_their_reasons(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kontrast.run(photos, **asked(tmp_path, **{"run.progress": True}))
    told = capsys.readouterr().err
    assert "photos: 20 images of 20×20 pixels in 2 classes" in told
    assert "method=supcon" in told
    assert "2 classes of 10 images" in told
    assert "kontrast train supcon data=" in told


def test_one_class_or_too_few_images(tmp_path: Path) -> None:
    for i in range(5):
        write(tmp_path / "few" / f"{i}.png", (20, 20), seed=i)
    with pytest.raises(ValueError, match="few has 5 training rows: must have at least 8"):
        prepare(request_of(tmp_path / "few"))
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"none has no recipe\.yaml; expected the folder of a run, or images"):
        prepare(request_of(tmp_path / "none"))


# ------------------------------------------------------------------------------------------------ pretrained


def test_the_smallest_of_timms_cache_is_taken(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("resnet50.a1_in1k", 90), ("resnet18.a1_in1k", 40), ("vit.x", 0)):
        folder = tmp_path / "hub" / f"models--timm--{name}" / "snapshots" / "abc"
        folder.mkdir(parents=True)
        if size:
            (folder / "model.safetensors").write_bytes(b"x" * size)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(for_data.importlib.util, "find_spec", lambda name: object())
    assert timm_cache() == ["resnet18.a1_in1k", "resnet50.a1_in1k"]
    large = for_data.choosing.SMALL + 1
    sides: Any = dataclasses.make_dataclass("Sides", ["median"])
    assert settings_of(pretrained_start({}, sides(large))) == {
        "encoder": "timm/resnet18.a1_in1k", "encoder.pretrained": True
    }  # fmt: skip
    assert pretrained_start({}, sides(large - 1)) == [], "small images are not blown up"
    assert pretrained_start({"encoder": "small-resnet"}, sides(large)) == []
    assert pretrained_start({"encoder.pretrained": False}, sides(large)) == []
    monkeypatch.setattr(for_data.importlib.util, "find_spec", lambda name: None)
    assert timm_cache() == [], "without timm its weights are of no use"


def test_weights_of_a_run_bring_their_encoder(photos: Path, tmp_path: Path) -> None:
    run = kontrast.run(photos, **asked(tmp_path))
    start = settings_of(pretrained_start({"encoder.pretrained": str(run.path)}, None))
    assert start.items() >= {"encoder": "small-resnet", "encoder.width": 2}.items()
    rest = {key: value for key, value in asked(tmp_path).items() if key != "encoder.width"}
    other = kontrast.run("simclr", data=str(photos), **rest, **{"encoder.pretrained": str(run.path)})
    assert other.recipe.encoder.options["width"] == 2
    assert other.result["start"]["result"]["value"] == run.value("knn20")
    with pytest.raises(ValueError, match="must stand beside the encoder that the weights are of"):
        pretrained_start({"encoder.pretrained": str(tmp_path / "weights.pt")}, None)
