"""Map-style objects of every kind of item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from kontrast.data.images import from_value
from kontrast.data.objects import Items, from_object
from kontrast.data.options import Options
from kontrast.data.records import Memory
from tests.data.pictures import noise


class Listed(Dataset[Any]):
    """Items of a list, as torch's map-style sets give them."""

    def __init__(self, items: list[Any], names: list[str] | None = None) -> None:
        self.items = items
        if names:
            self.classes = names

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


PICTURES = [Image.fromarray(noise(6, 5, seed=i)) for i in range(4)]
EXPECTED = torch.stack([torch.from_numpy(noise(6, 5, seed=i).copy()).permute(2, 0, 1) for i in range(4)])


@pytest.mark.parametrize(
    "items",
    [
        [(p, i % 2) for i, p in enumerate(PICTURES)],
        [(np.asarray(p), np.int64(i % 2)) for i, p in enumerate(PICTURES)],
        [(t, torch.tensor(i % 2)) for i, t in enumerate(EXPECTED)],
        [[t.double() / 255, i % 2] for i, t in enumerate(EXPECTED)],
    ],
)
def test_pairs_of_any_kind(items: list[Any]) -> None:
    data = from_object(Listed(items), Options())
    assert isinstance(data.train.inputs, Memory)
    assert torch.equal(data.train.inputs.values, EXPECTED)
    assert data.train.labels is not None
    assert data.train.labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("items", [list(PICTURES), [(p,) for p in PICTURES], list(EXPECTED)])
def test_images_alone_have_no_labels(items: list[Any]) -> None:
    data = from_object(Listed(items), Options())
    assert data.train.labels is None
    assert torch.equal(data.train.inputs.read(torch.arange(4)), EXPECTED)


def test_names_and_a_second_object_for_testing() -> None:
    items = [(p, i % 2) for i, p in enumerate(PICTURES)]
    data = from_object(Listed(items, ["no", "yes"]), Options(), test=Listed(items[:1]))
    assert data.class_names == ["no", "yes"]
    assert data.test is not None
    assert len(data.test) == 1
    with pytest.raises(ValueError, match="expected the same"):
        from_object(Listed(items), Options(), test=Listed([(torch.zeros(3, 9, 9), 0)]))


def test_vectors() -> None:
    data = from_object(TensorDataset(torch.eye(3), torch.tensor([0, 1, 1])), Options())
    assert data.kind == "vector"
    assert torch.equal(data.train.inputs.read(torch.tensor([2])), torch.eye(3)[2:])
    assert from_object([[1.0, 2.0], [3.0, 4.0]], Options()).train.inputs.shape == (2,)


def test_what_does_not_fit_or_differs_is_read_each_time() -> None:
    data = from_object(Listed([(p, 0) for p in PICTURES]), Options(memory=100))
    assert isinstance(data.train.inputs, Items)
    assert torch.equal(data.train.inputs.read(torch.arange(4)), EXPECTED)
    mixed = from_object(Listed([PICTURES[0], Image.new("L", (9, 7))]), Options())
    assert isinstance(mixed.train.inputs, Items)
    assert mixed.train.inputs.shape is None
    with pytest.raises(ValueError, match="differ in size"):
        mixed.train.inputs.read(torch.tensor([0]))
    crop = mixed.train.inputs.read(torch.tensor([0, 1]), lambda image, seed: image[:, :4, :4], [0, 0])
    assert crop.shape == (2, 3, 4, 4), "grey among coloured ones becomes RGB"
    sized = from_object(Listed([PICTURES[0], Image.new("L", (9, 7))]), Options(size=4))
    lazily = from_object(Listed([PICTURES[0], Image.new("L", (9, 7))]), Options(size=4, memory=10))
    assert isinstance(lazily.train.inputs, Items)
    rows = torch.arange(2)
    assert torch.equal(lazily.train.inputs.read(rows), sized.train.inputs.read(rows))


GREY = [Image.fromarray(noise(6, 5, seed=9)[..., 0]) for _ in range(2)]


@pytest.mark.parametrize("memory", [10**9, 0])
@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize("kind", [lambda p: p, np.asarray, from_value])
def test_one_coloured_image_makes_all_rgb(kind: Callable[[Any], Any], size: int | None, memory: int) -> None:
    options = Options(size=size, memory=memory)
    rows = from_object([(kind(p), i) for i, p in enumerate([*GREY, PICTURES[0], GREY[0]])], options).train.inputs
    expected = from_object([*(p.convert("RGB") for p in GREY), PICTURES[0], GREY[0].convert("RGB")], options)
    assert isinstance(rows, Items if memory == 0 else Memory)
    assert rows.shape == (3, size or 6, size or 5)
    assert torch.equal(rows.read(torch.arange(4)), expected.train.inputs.read(torch.arange(4)))


def test_images_that_no_longer_fit_as_rgb_are_read_each_time() -> None:
    assert isinstance(from_object([*GREY], Options(memory=60)).train.inputs, Memory)
    data = from_object([*GREY, PICTURES[0]], Options(memory=200))  # 2·30 as grey and 90, but 270 as RGB
    assert isinstance(data.train.inputs, Items)


@pytest.mark.parametrize("memory", [10**9, 0])
def test_a_coloured_split_makes_the_other_rgb(memory: int) -> None:
    for first, second in ((GREY, PICTURES), (PICTURES, GREY)):
        data = from_object(first, Options(memory=memory), test=second)
        assert data.test is not None
        assert data.train.inputs.shape == data.test.inputs.shape == (3, 6, 5)
        assert data.train.inputs.read(torch.arange(2)).shape == data.test.inputs.read(torch.arange(2)).shape
        assert len(data.mean) == 3


@pytest.mark.parametrize("memory", [10**9, 0])
def test_channels_asked_for(memory: int) -> None:
    luma = torch.stack([from_value(p.convert("L")) for p in PICTURES])
    for items in (PICTURES, list(EXPECTED)):
        data = from_object(items, Options(channels=1, memory=memory))
        assert torch.equal(data.train.inputs.read(torch.arange(4)), luma)
        assert len(data.mean) == 1
    assert from_object(GREY, Options(channels=3, memory=memory)).train.inputs.shape == (3, 6, 5)


def test_labels_can_be_left_out() -> None:
    items = [(p, torch.eye(4)[i]) for i, p in enumerate(PICTURES)]
    with pytest.raises(ValueError, match=r"item 0 has a label of shape \[4\].*argmax"):
        from_object(items, Options())
    data = from_object(items, Options(labelled=False, memory=0))
    assert data.train.labels is None
    assert torch.equal(data.train.inputs.read(torch.arange(4)), EXPECTED)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(PICTURES)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Stream(), "map-style Dataset"),
        (Listed([]), "is empty"),
        (Listed([{"image": 1}]), "item 0 is a dict of 'image'"),
        (Listed([("a.png", 0)]), "item 0: an image is str"),
        (Listed([(PICTURES[0], 0), PICTURES[1]]), "1 of 2 items have labels"),
        (Listed([torch.zeros(2), torch.zeros(3)]), "vectors of one length"),
        (Listed([torch.randn(3, 4, 4)]), "before they are normalised"),
    ],
)
def test_wrong_objects_say_what_is_expected(source: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_object(source, Options())
