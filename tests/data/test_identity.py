"""Tests of kontrast.data.identity."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

from kontrast.data import Memory, Split, bind, from_arrays, load, separate_data
from kontrast.data.dataset import Rows
from kontrast.data.identity import check_in_reach, describe_source, digest_data, identity
from kontrast.recipe import Recipe
from tests.data.pictures import noise, write


def test_rows_labels_and_their_number() -> None:
    x, y = torch.arange(40.0).view(20, 2), torch.arange(20) % 3
    mine = identity(Split(Memory(x), y))
    assert mine == identity(Split(Memory(x.clone()), y.clone()))
    others = [Split(Memory(x + 1), y), Split(Memory(x), (y + 1) % 3), Split(Memory(x)), Split(Memory(x[:19]), y[:19])]
    assert len({mine, *(identity(split) for split in others)}) == 5


def test_every_value_counts() -> None:
    x = torch.zeros(500, 3)
    mine = identity(Split(Memory(x)))
    for row in (0, 7, 250, 499):
        changed = x.clone()
        changed[row, 1] = 1
        assert identity(Split(Memory(changed))) != mine
    some = torch.arange(10)
    assert identity(Split(Rows(Memory(x), some))) != identity(Split(Rows(Memory(x), some + 1)))


@pytest.mark.parametrize("cached", [False, True])
def test_an_image_file_that_was_replaced(tmp_path: Path, cached: bool) -> None:
    for i in range(3):
        write(tmp_path / "images" / "a" / f"{i}.png", (9 + i, 12))

    def now(*, times: bool) -> str:
        options = {"cache": tmp_path / "cache", "size": 8} if cached else {}
        return identity(load(tmp_path / "images", labelled=False, **options).train, times=times)

    before = {times: now(times=times) for times in (False, True)}
    assert {times: now(times=times) for times in (False, True)} == before
    os.utime(tmp_path / "images" / "a" / "1.png", (1e9, 1e9))
    assert now(times=False) == before[False], "a copy of the same"
    assert (now(times=True) == before[True]) == cached
    write(tmp_path / "images" / "a" / "1.png", (40, 30))
    assert now(times=False) != before[False]


def test_inputs_of_another_kind_are_known_by_some_rows() -> None:
    class Own:
        shape = (2,)

        def __init__(self, values: torch.Tensor) -> None:
            self.values = values

        def __len__(self) -> int:
            return len(self.values)

        def read(self, indices: torch.Tensor, crop: object = None, seeds: object = None) -> torch.Tensor:
            return self.values[indices]

    x = torch.rand(30, 2)
    assert identity(Split(Own(x))) == identity(Split(Own(x.clone())))
    assert identity(Split(Own(x))) != identity(Split(Own(x + 1)))


RECIPE = Recipe.of({"name": "mine", "method": "supcon", "train": {"epochs": 1}})
PIXELS = np.stack([noise(8, 8, seed=i) for i in range(6)])
LABELS = [0, 1, 0, 1, 0, 1]


class Drawn(Dataset[Any]):
    """Six images; ``random`` ones are other images each time."""

    def __init__(self, random: bool = False) -> None:
        self.random = random

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        pixels = torch.from_numpy(PIXELS[index].copy()).permute(2, 0, 1)
        return pixels.roll(int(torch.randint(1, 100, ())), 1) + torch.randint(
            2, (1,)
        ).byte() if self.random else pixels, index % 2


def hash_of(source: Any, **settings: Any) -> str:
    return bind(RECIPE.override({f"data.{k}": v for k, v in settings.items()}), source)[0].hash


def test_the_same_content_is_the_same_run_whatever_object_it_comes_in() -> None:
    pictures = [Image.fromarray(p) for p in PIXELS]
    forms: list[Any] = [
        (PIXELS, LABELS),
        (torch.from_numpy(PIXELS), torch.tensor(LABELS)),
        {"x_train": PIXELS, "y_train": np.array(LABELS)},
        load((PIXELS, LABELS)),
        (pictures, LABELS),
        list(zip(pictures, LABELS, strict=True)),
        Drawn(),
    ]
    assert {hash_of(form) for form in forms} == {hash_of(forms[0])}
    assert len({bind(RECIPE, form)[0].data.given for form in forms}) == len(forms)


def test_other_content_is_another_run() -> None:
    other = PIXELS.copy()
    other[5, 7, 7, 2] ^= 1
    found = [
        hash_of((PIXELS, LABELS)),
        hash_of((other, LABELS)),
        hash_of((PIXELS, LABELS[::-1])),
        hash_of((PIXELS, ["a", "b"] * 3)),
        hash_of(PIXELS),
        hash_of((PIXELS[::-1].copy(), LABELS)),
        hash_of({"x_train": PIXELS, "y_train": LABELS, "x_test": PIXELS, "y_test": LABELS}),
        hash_of((PIXELS, LABELS), size=4),
        RECIPE.hash,
    ]
    assert len(set(found)) == len(found)


def test_files_count_by_their_bytes(tmp_path: Path) -> None:
    paths = []
    for i in range(3):
        paths.append(tmp_path / f"{i}.png")
        Image.fromarray(noise(8 + i, 8, seed=i)).save(paths[-1])
    first = hash_of(paths)
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert hash_of([tmp_path / "copy" / path.name for path in paths]) == first
    assert hash_of(load(paths)) == first
    assert hash_of(paths[::-1]) != first
    Image.fromarray(noise(8, 8, seed=9)).save(paths[0])
    assert hash_of(paths) != first


def test_items_that_stay_in_their_object_are_all_looked_at() -> None:
    pictures = [Image.fromarray(noise(8 + i % 3, 8, seed=i)) for i in range(100)]
    data = load(pictures)
    assert not isinstance(data.train.inputs, Memory)
    first = digest_data(data)
    assert digest_data(load(pictures)) == first
    pictures[97] = Image.fromarray(noise(8 + 97 % 3, 8, seed=1000))
    assert digest_data(load(pictures)) != first


def test_random_items_are_warned_of() -> None:
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="the items of the Drawn change from one reading to the next"):
        bind(RECIPE, Drawn(random=True))


def test_the_recipe_says_what_it_was_and_a_name_takes_its_place() -> None:
    recipe, data = bind(RECIPE, (PIXELS, LABELS))
    assert recipe.data.name == data.name == "arrays"
    assert recipe.data.given == "numpy uint8 [6, 8, 8, 3] and labels"
    assert recipe.data.digest == digest_data(data)
    assert Recipe.of(recipe.model_dump()).hash == recipe.hash
    named = recipe.override(["data=fashion-mini"])
    assert (named.data.given, named.data.digest, named.hash) == (None, None, RECIPE.hash)
    check_in_reach(RECIPE)
    with pytest.raises(
        ValueError, match=r"were given from Python \(numpy uint8 .*kontrast.run\('runs/mine-.*', data=…\)"
    ):
        check_in_reach(recipe)
    with pytest.warns(UserWarning, match="are not those of the recipe"):
        bind(recipe, (PIXELS, LABELS[::-1]))


@pytest.mark.parametrize(
    ("overrides", "found", "rest"),
    [
        ({"data": "photos/"}, False, {"data": "photos/"}),
        ({"data": Path("photos")}, False, {"data": "photos"}),
        ({"data": {"name": Path("photos"), "size": 8}}, False, {"data": {"name": "photos", "size": 8}}),
        ({"data": {"sise": 8}}, False, {"data": {"sise": 8}}),
        ({"data": ["a.png"], "seed": 1}, True, {"seed": 1}),
        ({"data": {"name": ["a.png"], "size": 8}}, True, {"data": {"size": 8}}),
        ({"data.name": ["a.png"], "data.size": 8}, True, {"data.size": 8}),
        ({"data": {"features": [[1.0]], "labels": [0]}}, True, {}),
        ({}, False, {}),
    ],
)
def test_which_overrides_are_data(overrides: dict[str, Any], found: bool, rest: dict[str, Any]) -> None:
    source, left = separate_data(overrides)
    assert (source is not None, left) == (found, rest)


def test_what_it_is() -> None:
    assert describe_source(["a.png", "b.png"]) == "a list of 2 image files"
    assert describe_source((["a.png"], [0])) == "a list of 1 image files and labels"
    assert describe_source(torch.zeros(2, 3)) == "a tensor float32 [2, 3]"
    assert describe_source(Drawn()) == "a Drawn of 6 items"
    assert describe_source(from_arrays(np.eye(3))) == "the DataSet 'arrays': 3 vectors (3,) without labels"
