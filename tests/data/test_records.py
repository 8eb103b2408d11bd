"""Splits are read, cut and balanced by index; sets say what they are."""

from __future__ import annotations

import pytest
import torch

from kontrast.data.records import DataSet, Inputs, Memory, Rows, Split, each_cropped

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
    with pytest.raises(ValueError, match=r"images are uint8 \[N, C, H, W\], vectors float32"):
        Memory(values)


def test_a_crop_gets_each_image_with_its_own_seed() -> None:
    images = torch.zeros(3, 1, 2, 2, dtype=torch.uint8)
    out = Memory(images).read(torch.tensor([0, 1, 2]), lambda image, seed: image[:, :1, :1] + seed, [7, 8, 9])
    assert out[:, 0, 0, 0].tolist() == [7, 8, 9]
    with pytest.raises(ValueError, match="3 images needs as many seeds, one each; seen 2"):
        each_cropped(images, lambda image, seed: image, [1, 2])
    with pytest.raises(ValueError, match="nothing to crop"):
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
    with pytest.raises(ValueError, match="per_class is 6; expected 1 to 5"):
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
        (LABELS[:-1], r"expected torch.int64 \[85\]"),
        (LABELS.int(), "torch.int32"),
        (LABELS - 1, "count from 0; seen -1"),
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
    with pytest.raises(ValueError, match="limit is 0"):
        data.limit(0)
