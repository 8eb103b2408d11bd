"""Tests of kontrast.data.arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from kontrast.data.arrays import Items, from_arrays, from_file, from_mapping, from_object, number_labels, resize_images
from kontrast.data.dataset import DataSet, Memory, Options
from kontrast.data.images import from_value
from tests.data.pictures import noise

HWC = np.random.default_rng(0).integers(0, 256, (6, 9, 7, 3), dtype=np.uint8)
CHW = HWC.transpose(0, 3, 1, 2)


def values(data: DataSet) -> torch.Tensor:
    assert isinstance(data.train.inputs, Memory)
    return data.train.inputs.values


@pytest.mark.parametrize(
    "images",
    [HWC, CHW, torch.from_numpy(CHW.copy()), HWC.astype(np.int64), HWC.astype(np.float64) / 255,
     HWC.astype(np.float32) / 255,
     HWC.astype(np.uint16) * 257, HWC.astype(">i4"), HWC.tolist()],
)  # fmt: skip
def test_images_of_any_layout_and_type(images: Any) -> None:
    data = from_arrays(images)
    assert torch.equal(values(data), torch.from_numpy(CHW.copy()))
    assert data.kind == "image"
    np.testing.assert_allclose(data.mean, HWC.mean((0, 1, 2)) / 255, rtol=1e-12)


def test_grey_images() -> None:
    for grey in (HWC[..., 0], HWC[..., :1], CHW[:, :1]):
        assert values(from_arrays(grey)).shape == (6, 1, 9, 7)


def test_masks_are_black_and_white() -> None:
    assert values(from_arrays(HWC[..., 0] > 128)).unique().tolist() == [0, 255]


def test_channels_are_converted_and_labels_dropped() -> None:
    luma = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in HWC])
    grey = from_arrays(HWC, [-1] * 6, luma, [-1] * 6, channels=1, labelled=False, class_names=["a"])
    assert np.array_equal(values(grey)[:, 0], luma)
    assert len(grey.mean) == len(grey.std) == 1
    assert grey.test is not None
    assert grey.train.labels is grey.test.labels is grey.class_names is None
    coloured = from_arrays(luma, channels=3)
    assert torch.equal(values(coloured), torch.from_numpy(luma)[:, None].expand(-1, 3, -1, -1))
    assert len(coloured.mean) == 3


def test_an_open_layout_is_asked_for() -> None:
    square = np.zeros((2, 3, 8, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match=r"\[2, 3, 8, 3\], which could be either.*layout='HWC'"):
        from_arrays(square)
    assert values(from_arrays(square, layout="HWC")).shape == (2, 3, 3, 8)
    assert values(from_arrays(square, layout="CHW")).shape == (2, 3, 8, 3)
    with pytest.raises(ValueError, match="layout='NHWC': must be"):
        from_arrays(square, layout="NHWC")
    with pytest.raises(ValueError, match="as CHW has 9 channels"):
        from_arrays(HWC, layout="CHW")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint8, np.bool_])
def test_two_dimensions_are_vectors(dtype: Any) -> None:
    rows = np.eye(4, 3).astype(dtype)
    data = from_arrays(rows, [0, 1, 0, 1])
    assert data.kind == "vector"
    assert torch.equal(values(data), torch.eye(4, 3))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x_train": np.array(["a"])}, "must be numbers"),
        ({"x_train": np.zeros(3)}, r"shape \[3\]: must be images"),
        ({"x_train": np.array([[1.0, np.nan]])}, "1 of 1 rows of x_train are not finite"),
        ({"x_train": np.array([[1e300]])}, "not finite"),
        ({"x_train": HWC / 1.0}, "from 0 to 255: must be 0 to 1"),
        ({"x_train": np.zeros((2, 8, 8, 4), np.uint8)}, "neither 1 nor 3 channels"),
        ({"x_train": np.zeros((0, 3))}, "must have at least one row"),
        ({"x_train": HWC, "y_train": [0, 1]}, "y_train: must have 6 labels"),
        ({"x_train": HWC, "y_train": [0] * 6, "x_test": HWC, "y_test": [0]}, "y_test: must have 6 labels"),
        ({"x_train": [[1.0], [2.0, 3.0]]}, "x_train: must have rows of one shape"),
        ({"x_train": HWC, "x_test": HWC[:, 1:]}, r"shape \[3, 8, 7\]: must be \[3, 9, 7\]"),
        ({"x_train": HWC, "y_test": [0]}, "y_test: must be None"),
        ({"x_train": HWC, "y_train": np.eye(6)}, r"y_train of float64 \[6, 6\]: must be \[N\]"),
        ({"x_train": HWC, "y_train": [-1, 0, 1, 2, 3, 4]}, "labels=-1: must be 0 or more"),
        ({"x_train": HWC, "y_train": [0.5] * 6}, "whole numbers or strings"),
        ({"x_train": HWC, "y_train": [0] * 6, "x_test": HWC, "y_test": [1] * 6}, "1 classes are in the test labels"),
    ],
)  # fmt: skip
def test_wrong_arrays_say_what_is_expected(arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_arrays(**arrays)


@pytest.mark.parametrize(
    ("train", "names", "expected", "expected_names"),
    [
        ([0, 1, 2], None, [0, 1, 2], None),
        ([[0], [2], [1]], None, [0, 2, 1], None),
        ([1, 2, 10], None, [0, 1, 2], ["1", "2", "10"]),
        ([1.0, 0.0], None, [1, 0], None),
        ([True, False], None, [1, 0], None),
        (["dog", "cat"], None, [1, 0], ["cat", "dog"]),
        (np.array([b"dog", b"cat"]), None, [1, 0], ["cat", "dog"]),
        ([0, 2], ["a", "b", "c"], [0, 2], ["a", "b", "c"]),
        (["b", "b"], ["c", "b"], [1, 1], ["c", "b"]),
        (torch.tensor([1, 0], dtype=torch.int32), None, [1, 0], None),
    ],
)  # fmt: skip
def test_labels_become_numbers(train: Any, names: Any, expected: list[int], expected_names: list[str] | None) -> None:
    labels, test, found = number_labels(train, None, names)
    assert labels is not None
    assert labels.dtype == torch.int64
    assert labels.tolist() == expected
    assert test is None
    assert found == expected_names


def test_labels_that_do_not_fit_the_names() -> None:
    with pytest.raises(ValueError, match="must be 0 to 1 when there are 2 class_names"):
        number_labels([0, 5], None, ["a", "b"])
    with pytest.raises(ValueError, match="must be 0 to 1 when there are 2 class_names"):
        number_labels(["a", "x"], None, ["a", "b"])


def test_npz_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    names = np.array(["cat", "dog"])
    np.savez(
        path,
        x_train=HWC,
        y_train=[0, 1] * 3,
        x_test=HWC[:2],
        y_test=[1, 0],
        x_unlabelled=HWC,
        class_names=names,
        extra=1,
    )
    data = from_file(path)
    assert repr(data) == "DataSet 'mine': 6 images (3, 9, 7), 2 for testing, 6 unlabelled in 2 classes"
    assert data.class_names == ["cat", "dog"]
    assert torch.equal(values(data), torch.from_numpy(CHW.copy()))
    assert values(from_file(path, size=4)).shape == (6, 3, 4, 4)


def test_npy_is_unlabelled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", HWC)
    data = from_file(tmp_path / "a.npy")
    assert data.train.labels is None
    assert data.class_names is None
    assert data.test is None


def test_files_that_are_not_plain_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", x_train=np.array([{}], dtype=object))
    for name in ("objects.npy", "objects.npz"):
        with pytest.raises(ValueError, match="Python objects, which are not unpickled"):
            from_file(tmp_path / name)
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "cut.npz", x_train=HWC)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:-100])
    for name, why in (("text.npz", "first bytes"), ("empty.npy", "first bytes"), ("cut.npz", "")):
        with pytest.raises(ValueError, match=f"cannot be read as arrays: .*{why}") as caught:
            from_file(tmp_path / name)
        assert "Python objects" not in str(caught.value)
    with pytest.raises(ValueError, match="there is no file"):
        from_file(tmp_path / "absent.npz")


def test_mappings_and_their_names() -> None:
    data = from_mapping({"images": HWC, "labels": [0, 1] * 3})
    assert data.num_classes == 2
    with pytest.raises(ValueError, match=r"x_train: must be among the arrays, which are 'foo'. .*\('x_train'"):
        from_mapping({"foo": HWC})
    with pytest.raises(ValueError, match="x_train: must be given once"):
        from_mapping({"images": HWC, "x_train": HWC})


def test_resized_in_chunks_is_the_same_as_at_once() -> None:
    images = torch.randint(256, (1100, 1, 6, 5), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    assert torch.equal(resize_images(images, 3)[1050:], resize_images(images[1050:], 3))
    assert resize_images(images[:, :, :5], 5) is not None
    square = images[:, :, :5].contiguous()
    assert resize_images(square, 5) is square


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
    with pytest.raises(ValueError, match="as the training items"):
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
