"""What a recipe names, made."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast.data import Memory, Split
from kontrast.recipe import Recipe
from kontrast.train.job import Job, held_out, keep_memory, load_data, make_job, warn_of_size
from kontrast.train.resolving import resolve
from tests.train.small import recipe

CPU = torch.device("cpu")


def job(made: Recipe) -> Job:
    return make_job(resolve(made), CPU)


def test_digits() -> None:
    made = job(recipe("supcon"))
    assert (made.size, len(made.train), made.steps_per_epoch, made.total_steps) == (8, 200, 6, 18)
    batch = made.augment(made.loader().batch(0, 0))
    assert batch.views.shape == (32, 2, 1, 8, 8)
    assert abs(float(batch.views.mean())) < 1.0
    again = made.augment(made.loader().batch(0, 0))
    assert torch.equal(again.views, batch.views)
    assert again.seed == batch.seed
    assert made.augment(made.loader().batch(0, 1)).seed != batch.seed
    assert not torch.equal(batch.views[:, 0], batch.views[:, 1])


def test_steps_instead_of_epochs() -> None:
    assert job(recipe("supcon", **{"train.epochs": None, "train.steps": 7})).total_steps == 7


def test_the_first_weights_are_the_seeds() -> None:
    torch.manual_seed(5)
    one = job(recipe("ce")).method.state_dict()
    torch.manual_seed(6)
    two, other = job(recipe("ce")).method.state_dict(), job(recipe("ce", seed=1)).method.state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["loss.weight"], other["loss.weight"])
    assert not torch.equal(one["network.head.linear.weight"], other["network.head.linear.weight"])


def test_pieces() -> None:
    assert job(recipe("supcon")).micro_batches() == 1
    assert job(recipe("supcon", **{"train.micro_batch": 10})).micro_batches() == 4
    assert job(recipe("supcon", **{"train.micro_batch": 100})).micro_batches() == 1


# ------------------------------------------------------------------------------------------------ test rows held out


def rows(folder: Path, *sizes: int) -> str:
    """A file of vectors without test rows: as many of each class."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    np.savez(folder / "rows.npz", x_train=np.arange(2 * len(labels)).reshape(-1, 2), y_train=labels)
    return str(folder / "rows.npz")


def test_test_rows_are_held_out_of_each_class_the_same_for_every_seed(tmp_path: Path) -> None:
    data = {"name": rows(tmp_path, 20, 10, 2, 1), "test": 0.2}
    settings = {"augment": ["vector-noise"] * 2, "train.batch_size": 4, "data.limit": None, "data.test_limit": None}
    made = recipe("supcon", tmp_path, **settings).override({f"data.{key}": value for key, value in data.items()})
    whole, *_ = load_data(made)
    assert whole.test.labels.bincount().tolist() == [4, 2, 1], "a class with one row keeps it"
    assert len(whole.train) + len(whole.test) == 33
    values = {tuple(row) for split in (whole.train, whole.test) for row in split.inputs.values.tolist()}
    assert len(values) == 33, "no row is in both"
    noisy = made.override({"seed": 1, "data.noise": 1.0, "data.limit": 8, "data.validation": 0.5})
    other, train, validation = load_data(noisy)
    assert torch.equal(other.test.inputs.values, whole.test.inputs.values), "whatever the seed, limit and noise"
    assert torch.equal(other.test.labels, whole.test.labels), "and their labels are right"
    assert (len(train), len(validation)) == (4, 4)
    assert job(made).data.test is not None


@pytest.mark.parametrize(
    ("sizes", "settings", "says"),
    [
        ((20, 10), {"data.name": "digits"}, "data.test=0.2: must be left out, as 'digits' has 360 test rows"),
        ((1, 1, 1), {}, "data.test=0.2: no class of these 3 rows has two"),
        ((20, 10), {"data.labelled": False}, "data.test=0.2: must be left out, as 'rows' has no labels"),
    ],
)
def test_where_there_are_no_rows_to_hold_out(
    sizes: tuple[int, ...], settings: dict[str, object], says: str, tmp_path: Path
) -> None:
    made = recipe("supcon", tmp_path, **{"data.name": rows(tmp_path, *sizes), "data.test": 0.2, **settings})
    with pytest.raises(ValueError, match=re.escape(says)):
        load_data(made)


@pytest.mark.parametrize(("size", "asked", "kept"), [(8, True, 1), (8, False, 0), (64, True, 1), (65, True, 0)])
def test_freed_memory_is_kept_for_small_images(
    size: int, asked: bool, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr("kontrast.train.job.keep_freed_memory", lambda: calls.append(1))
    keep_memory(replace(job(recipe("supcon", **{"run.keep_memory": asked})), size=size))
    assert len(calls) == kept


def photos(folder: Path, sizes: list[tuple[int, int]]) -> str:
    for i, (height, width) in enumerate(sizes):
        place = folder / "ab"[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (width, height), (i, 0, 0)).save(place / f"{i}.png")
    return str(folder)


def test_small_encoders_on_large_photos_are_warned_of(tmp_path: Path) -> None:
    several = photos(tmp_path / "several", [(300, 200), (240, 320), (500, 375), (90, 90)])
    changes = {"data": {"name": several}, "augment": ["weak", "weak"], "encoder": "small-resnet", "train.batch_size": 2}
    with pytest.warns(UserWarning, match=r"differ in size, so views are 224×224 .* Use data\.size=64") as seen:
        warn_of_size(job(recipe("simclr", **changes)))
    assert "about 12 times those of 64×64" in str(seen[0].message)
    stem = {**changes, "encoder": {"name": "resnet18", "stem": "small"}}
    with pytest.warns(UserWarning, match="encoder 'resnet18' is made for images of up to 64×64"):
        warn_of_size(job(recipe("simclr", **stem)))
    one = {**changes, "data": {"name": photos(tmp_path / "one", [(160, 160)] * 4)}}
    with pytest.warns(UserWarning, match=r"the images are 160×160 pixels.* data\.size=160 keeps this size"):
        warn_of_size(job(recipe("simclr", **one)))
    one["data"] = {"name": photos(tmp_path / "stl", [(96, 96)] * 4)}
    warn_of_size(job(recipe("simclr", **one)))  # a warning would be an error
    for asked in ({"data.size": 32}, {"data.size": 128}, {"augment.size": 224}, {"encoder": "resnet18"}):
        warn_of_size(job(recipe("simclr", **changes | asked)))


def test_views_smaller_than_the_images_are_for_training_only() -> None:
    made = job(recipe("simclr", augment=["weak", "crop-flip"], **{"augment.size": 6}))
    assert made.augment(made.loader().batch(0, 0)).views.shape[2:] == (1, 6, 6)
    assert made.size == 8, "what evaluation gives the encoder"


def test_held_out_is_even_over_classes_and_disjoint() -> None:
    made = job(recipe("supcon", **{"data.validation": 0.25}))
    assert made.validation is not None
    assert len(made.train) + len(made.validation) == 200
    assert made.validation.labels.bincount().tolist() == [5] * 10
    rows = {bytes(x.numpy().tobytes()) for x in made.train.inputs.read(torch.arange(len(made.train)))}
    held = {bytes(x.numpy().tobytes()) for x in made.validation.inputs.read(torch.arange(50))}
    assert not rows & held


def test_nothing_left_for_training() -> None:
    with pytest.raises(ValueError, match="leaves none for training"):
        held_out(Split(Memory(torch.zeros(3, 1)), torch.arange(3)), 0.5, 0)


def test_label_noise() -> None:
    clean, noisy = job(recipe("supcon")), job(recipe("supcon", **{"data.noise": 0.5}))
    assert int((clean.train.labels != noisy.train.labels).sum()) == 100


@pytest.mark.parametrize("sampler", ["with-replacement", "class-balanced"])
def test_samplers(sampler: str) -> None:
    made = job(recipe("supcon", **{"train.sampler": sampler, "train.batch_size": 40}))
    labels = made.loader().batch(0, 0).labels
    assert labels is not None
    assert (labels.bincount(minlength=10).tolist() == [4] * 10) == (sampler == "class-balanced")


def test_feature_vectors(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", x_train=5 + 3 * draw.normal(size=(64, 10)), y_train=np.arange(64) % 4)
    changes = {"data.limit": None, "data.test_limit": None}
    made = job(recipe("supcon", data=str(tmp_path / "x.npz"), augment="vector-noise", **changes))
    views = made.augment(made.loader().batch(0, 0)).views
    assert views.shape == (32, 2, 10)
    assert abs(float(views.mean())) < 0.3  # standardised: 640 numbers of deviation 1, five standard errors are 0.2
    with pytest.raises(ValueError, match=r"must be an encoder of vectors, .* Use encoder=mlp"):
        job(recipe("supcon", data=str(tmp_path / "x.npz"), augment="vector-noise", encoder="resnet18", **changes))
    with pytest.raises(ValueError, match=r"augment.views=crop-flip: must be for vectors"):
        job(recipe("supcon", data=str(tmp_path / "x.npz"), **changes))
    with pytest.raises(ValueError, match=r"evaluate.protocols=sce: must not augment images"):
        job(
            recipe(
                "supcon",
                data=str(tmp_path / "x.npz"),
                augment="vector-noise",
                **changes,
                **{"evaluate.protocols": "sce"},
            )
        )


def test_photographs_of_several_sizes_are_cropped_at_decoding(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(8):
            Image.new("RGB", (60 + i, 50), (30 * i, 0, 90)).save(tmp_path / "pets" / name / f"{i}.jpg")
    changes = {"data.limit": None, "data.test_limit": None, "augment.size": 32, "train.batch_size": 4}
    made = job(recipe("supcon", data=str(tmp_path / "pets"), augment="weak", encoder="small-resnet", **changes))
    assert made.crop is not None
    assert made.augment(made.loader().batch(0, 0)).views.shape == (4, 2, 3, 32, 32)
    assert made.method.encoder.in_channels == 3
    with pytest.raises(ValueError, match=r"crop-flip crops only images of one: bring them to one with data.size=32"):
        job(recipe("supcon", data=str(tmp_path / "pets"), encoder="small-resnet", **changes))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"train.batch_size": 500}, "train.batch_size=500: must be at most the number of training rows .200."),
        (
            {"train.sampler": "class-balanced", "train.batch_size": 33},
            "number of classes .10. when sampler=class-balanced. Use 30 or 40",
        ),
        ({"data.split": "unlabelled"}, "must be train, as digits has no unlabelled split"),
        ({"data": "nowhere/"}, "neither a set nor a path"),
        ({"data.labelled": False}, "method 'supcon' needs labels"),
    ],
)
def test_errors(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        job(recipe("supcon", **change))


def test_an_error_of_a_loss_names_the_methods_option() -> None:
    with pytest.raises(ValueError, match=r"^method\.temperature=-1: must be a finite number above 0"):
        make_job(resolve(recipe("simclr", **{"method.temperature": -1})), torch.device("cpu"))
    with pytest.raises(ValueError, match=r"^augment\.views has 1 view of each sample: must have 2"):
        resolve(recipe("simclr", **{"augment.views": ["none"]}))
