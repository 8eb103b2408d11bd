"""Tests of kontrast.data.dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kontrast.data.dataset import (
    CHUNK,
    SAMPLE,
    DataSet,
    Inputs,
    Memory,
    Options,
    Rows,
    Split,
    channel_statistics,
    crop_each,
    default_root,
)
from kontrast.data.image_files import Folder
from tests.data.pictures import write

LABELS = torch.tensor([0] * 50 + [1] * 30 + [2] * 5)
VALUES = torch.arange(85, dtype=torch.float32)[:, None]


def split() -> Split:
    return Split(Memory(VALUES), LABELS)


def rows(part: Split) -> list[int]:
    return part.inputs.read(torch.arange(len(part)))[:, 0].long().tolist()


def test_memory_reads_by_index_and_in_order() -> None:
    images = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 2, 2)
    memory = Memory(images)
    assert torch.equal(memory.read(torch.tensor([1, 0, 1])), images[[1, 0, 1]])
    assert memory.shape == (3, 2, 2)
    assert isinstance(memory, Inputs)
    assert isinstance(Rows(memory, torch.tensor([0])), Inputs)


@pytest.mark.parametrize(
    "values", [torch.zeros(2, 3, 4, 4), torch.zeros(2, 3, dtype=torch.float64), torch.zeros(3).byte()]
)
def test_memory_holds_uint8_images_or_float32_vectors_only(values: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"must be uint8 images \[N, C, H, W\] or float32 vectors"):
        Memory(values)


def test_a_crop_gets_each_image_with_its_own_seed() -> None:
    images = torch.zeros(3, 1, 2, 2, dtype=torch.uint8)
    out = Memory(images).read(torch.tensor([0, 1, 2]), lambda image, seed: image[:, :1, :1] + seed, [7, 8, 9])
    assert out[:, 0, 0, 0].tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match="seeds: must be 3, one for each image, when a crop is given; got 2"):
        crop_each(images, lambda image, seed: image, [1, 2])
    with pytest.raises(ValueError, match="only images can be cropped"):
        Memory(VALUES).read(torch.tensor([0]), lambda image, seed: image, [0])


def test_limited_is_even_deterministic_sorted_and_nested() -> None:
    few, more = split().limited(20, seed=3), split().limited(40, seed=3)
    assert few.labels is not None
    assert few.labels.bincount().tolist() == [8, 7, 5] or few.labels.bincount().tolist() == [7, 8, 5]
    assert rows(few) == sorted(rows(few)) == rows(split().limited(20, seed=3))
    assert set(rows(few)) < set(rows(more))
    assert rows(few) != rows(split().limited(20, seed=4))
    assert len(split().limited(1000)) == 85
    assert torch.equal(LABELS[rows(few)], few.labels)


def test_limited_without_labels_takes_any() -> None:
    part = Split(Memory(VALUES)).limited(10)
    assert len(part) == 10
    assert part.labels is None
    assert max(rows(part)) > 50, "not just the first rows"


def test_balanced_takes_exactly_so_many_and_says_if_it_cannot() -> None:
    part = split().balanced(5)
    assert part.labels is not None
    assert part.labels.bincount().tolist() == [5, 5, 5]
    with pytest.raises(ValueError, match="per_class=6: must be 1 to 5"):
        split().balanced(6)


def test_subsets_of_subsets_keep_their_rows() -> None:
    rows_of = Split(Rows(Memory(VALUES), torch.arange(84, -1, -1)), LABELS)
    part = rows_of.subset(torch.tensor([0, 84, 3])).subset(torch.tensor([2, 0]))
    assert rows(part) == [81, 84]
    assert isinstance(part.inputs, Rows)
    assert isinstance(part.inputs.inputs, Memory), "one indirection only"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:-1], r"must be torch.int64 \[85\]"),
        (LABELS.int(), "torch.int32"),
        (LABELS - 1, "labels=-1: must be 0 or more"),
    ],
)
def test_labels_are_checked(labels: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Split(Memory(VALUES), labels)


def test_asking_an_unlabelled_set_for_labels_says_who_asked() -> None:
    data = DataSet(name="x", train=Split(Memory(VALUES)), kind="vector", mean=(0.0,), std=(1.0,))
    assert not data.labelled
    assert repr(data) == "DataSet 'x': 85 vectors (1,) without labels"
    with pytest.raises(ValueError, match="SupCon needs labels and these 85 rows have none"):
        data.train.require_labels("SupCon")
    with pytest.raises(ValueError, match="the number of classes needs labels"):
        _ = data.num_classes


def test_limit_leaves_testing_whole_unless_told() -> None:
    data = DataSet(name="x", train=split(), test=split(), unlabelled=Split(Memory(VALUES)), mean=(0.0,), std=(1.0,))
    cut = data.limit(20)
    assert cut.test is not None
    assert cut.unlabelled is not None
    assert (len(cut.train), len(cut.test), len(cut.unlabelled)) == (20, 85, 20)
    smaller = data.limit(None, test=10)
    assert smaller.test is not None
    assert (len(smaller.train), len(smaller.test)) == (85, 10)
    with pytest.raises(ValueError, match="limit=0: must be"):
        data.limit(0)


def test_the_root_is_the_variables_or_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KONTRAST_DATA", str(tmp_path))
    assert default_root() == Options().where == tmp_path
    monkeypatch.delenv("KONTRAST_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root() == tmp_path / ".cache" / "kontrast"
    assert Options(root=Path("here")).where == Path("here")


def test_where_caches_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Options().cache_folder is None
    assert Options(cache="there").cache_folder == Path("there")
    assert Options(root=Path("here"), cache=True).cache_folder == Path("here/images")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Options(cache="~/there").cache_folder == tmp_path / "there"
    with pytest.raises(ValueError, match="cache is '~nobody-here/x', but there is no such user"):
        _ = Options(cache="~nobody-here/x").cache_folder


@pytest.mark.parametrize(
    ("given", "files", "limit"), [(None, 100, 10), (None, 5000, 50), (3, 5000, 3), (0, 9, 0), (0.1, 50, 5)]
)
def test_how_many_bad_files_are_allowed(given: float | None, files: int, limit: int) -> None:
    assert Options(max_bad=given).bad_limit(files) == limit


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"size": 2.5},
        {"channels": 4},
        {"check": "some"},
        {"max_bad": -1},
        {"max_bad": "few"},
        {"labelled": "no"},
        {"memory": "2GB"},
    ],
)
def test_wrong_options_say_what_is_expected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Options(**wrong)


def test_images_match_numpy_over_several_chunks() -> None:
    images = torch.randint(256, (CHUNK // 30 + 7, 3, 5, 4), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    mean, std = channel_statistics(Memory(images))
    x = images.numpy().astype(np.float64) / 255
    # Sums of integers are exact; a few roundings of the last division remain.
    np.testing.assert_allclose(mean, x.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std, x.std((0, 2, 3)), rtol=1e-10)


def test_vectors_with_a_large_offset_match_numpy() -> None:
    x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(0)) + torch.tensor([0.0, 1e4, -1e6])
    mean, std = channel_statistics(Memory(x))
    np.testing.assert_allclose(mean, x.double().mean(0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(std, x.double().std(0, correction=0), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_a_constant_channel_has_deviation_1(value: float) -> None:
    x = torch.full((3000, 2), value)
    x[:, 1] = torch.arange(3000)
    assert channel_statistics(Memory(x))[1][0] == 1
    assert channel_statistics(Memory(torch.full((4, 1, 2, 2), 200, dtype=torch.uint8)))[1] == (1.0,)


def test_what_is_not_in_memory_is_sampled_evenly() -> None:
    values = torch.zeros(10 * SAMPLE, 1)
    values[::10] = 1.0
    assert channel_statistics(Memory(values))[0] == pytest.approx((0.1,), rel=1e-12)
    assert channel_statistics(Rows(Memory(values), torch.arange(len(values))))[0] == (1.0,), "each tenth"


def test_files_of_different_sizes_are_sampled(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / f"{i}.png", (20 + i, 30), seed=i)) for i in range(5)]
    mean, std = channel_statistics(Folder(paths), size=20)
    assert len(mean) == len(std) == 3
    assert all(0 < m < 1 and 0 < s < 0.5 for m, s in zip(mean, std, strict=True))
    with pytest.raises(ValueError, match="must have at least one row"):
        channel_statistics(Memory(torch.zeros(0, 2)))
