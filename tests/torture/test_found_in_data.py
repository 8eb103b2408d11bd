"""What `torture/inputs.py` found in images and arrays, and stays mended: tracebacks, wrong results, unclear errors."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from kontrast import augment, data, doctor, evaluate, geometry, losses
from kontrast.augment.decoding import CropAtDecoding
from kontrast.data.image_files import format_skipped
from kontrast.data.images import CentreCrop, ImageError, as_uint8, from_value
from kontrast.files import read_json, write_json
from kontrast.sklearn import ContrastiveEncoder

# ------------------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("source", [(8, 8), (5, 9), (1, 20), (40, 30)])
def test_a_width_of_one_pixel_is_resized_rightly(channels: int, source: tuple[int, int]) -> None:
    """torch's resizing of bytes gives a wrong column, or an internal error; within half a level of that of floats."""
    pixels = torch.randint(0, 256, (channels, *source), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    side = min(source)
    top, left = (source[0] - side) // 2, (source[1] - side) // 2
    middle = pixels[None, :, top : top + side, left : left + side].float()
    exact = F.interpolate(middle, (1, 1), mode="bilinear", antialias=True)[0]
    assert float((CentreCrop(1)(pixels).float() - exact).abs().max()) <= 0.5  # rounding
    whole = augment.RandomResizedCrop((4, 1), scale=(1.0, 1.0), ratio=(1.0, 1.0))
    crop = CropAtDecoding([whole])
    ((top, left, height, width),) = crop.boxes(*source, seed=0)
    part = pixels[None, :, top : top + height, left : left + width].float()
    exact = F.interpolate(part, (4, 1), mode="bilinear", antialias=True)[0]
    assert crop(pixels, 0).dtype == torch.uint8
    assert float((crop(pixels, 0).float() - exact).abs().max()) <= 0.5


@pytest.mark.parametrize("values", [np.zeros((4, 4), object), np.zeros((4, 4), complex), np.zeros((4, 4), "U1")])
def test_an_image_holds_numbers(values: Any) -> None:
    with pytest.raises(ImageError, match="must be numbers"):
        from_value(values)
    with pytest.raises(ImageError, match="must be uint8, or floats"):
        as_uint8(torch.zeros(2, 2, dtype=torch.complex64))


def test_images_of_every_unsigned_type_are_taken() -> None:
    for kind in (torch.uint16, torch.uint32, torch.uint64):
        top = 65535 if kind == torch.uint16 else 255
        assert as_uint8(torch.tensor([0, top], dtype=torch.int64).to(kind)).tolist() == [0, 255]
    assert from_value(np.full((2, 2), 7, ">i4")).unique().tolist() == [7]
    with pytest.raises(ImageError, match="must be 0 to 255"):
        as_uint8(torch.tensor([300], dtype=torch.int64).to(torch.uint32))


def test_names_of_files_are_told_on_one_line(tmp_path: Path) -> None:
    assert format_skipped([("two\nlines\x1b[2J.png", "no\nimage"), ("\udcff", "x")]).isprintable()
    names = ("two\nlines", "\x1b[31mred", "<script>")
    for name in names:
        for split in ("train", "test"):
            (tmp_path / split / name).mkdir(parents=True)
            Image.new("L", (4, 4)).save(tmp_path / split / name / "a\tb.png")
            (tmp_path / split / name / "broken\r.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match="skipped 3 of 6 image files") as caught:
        loaded = data.load(tmp_path)
    assert all(str(warning.message).isprintable() for warning in caught)
    assert loaded.class_names == sorted(names)
    (tmp_path / "test" / "other\n").mkdir()
    Image.new("L", (4, 4)).save(tmp_path / "test" / "other\n" / "a.png")
    with (
        pytest.raises(ValueError, match="the training folder lacks") as refused,
        pytest.warns(match="skipped"),
    ):
        data.load(tmp_path)
    assert str(refused.value).isprintable()


def test_names_that_are_no_text_go_into_files(tmp_path: Path) -> None:
    """A class named by bytes that are no UTF-8 ended a run when its results were written."""
    folder = tmp_path / os.fsdecode(b"photos \xff")
    for name in (b"\xfe", b"\xff"):
        (folder / os.fsdecode(name)).mkdir(parents=True)
        Image.new("L", (4, 4)).save(folder / os.fsdecode(name) / "a.png")
    loaded = data.load(folder)
    assert loaded.class_names == ["\\udcfe", "\\udcff"]
    write_json(tmp_path / "a.json", {"name": loaded.name, "note": loaded.note, "path": str(folder)})
    assert read_json(tmp_path / "a.json", "mend it")["path"] == str(folder), "as it was: the path still leads there"


# ------------------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([b"\xff", b"b"], "bytes that are not UTF-8"),
        ([[1], [1, 2]], "y_train is not an array"),
        ([np.inf, 1.0], "must be [N] whole numbers or strings"),
        ([1e300, 1.0], "must be [N] whole numbers or strings"),
        (np.array([2**64 - 1, 0], np.uint64), "must be whole numbers below 2⁶³"),
        (np.ma.masked_array([0, 1], [True, False]), "1 masked entries; expected none"),
    ],
)
def test_labels_that_would_become_others_are_refused(labels: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        data.load((np.eye(2), labels))


def test_labels_of_both_splits_are_of_one_kind() -> None:
    with pytest.raises(ValueError, match="must both hold strings, or both numbers"):
        data.load((np.eye(2), [0, 1]), test=(np.eye(2), ["0", "1"]))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (np.zeros((3, 0)), "must have at least one number in each row"),
        (np.zeros((3, 0, 4)), "must have at least one number in each row"),
        (torch.zeros(3, 2, dtype=torch.complex64), "must be real numbers, images or vectors"),
        (np.ma.masked_array(np.eye(2), np.eye(2) > 0), "2 masked entries"),
        ([[1.0, None], [1.0, 2.0]], "must be numbers"),
        ([torch.tensor([1.0, float("nan")]), torch.zeros(2)], "item 0 is [1.0, nan]: must be finite numbers"),
        ([np.array([1.0, np.inf])], "must be finite numbers"),
        ([[[b"a", b"b"]]], "item 0 is [b'a', b'b']: must be numbers"),
    ],
)
def test_rows_that_are_none_are_refused(rows: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        data.load(rows if isinstance(rows, list) else (rows, None))


def test_whole_numbers_of_any_size_are_numbers() -> None:
    """numpy has two types for 64 bits without sign, and torch takes one."""
    rows = [[2**64 - 1, 2**64 - 2], [2**64 - 3, 2**64 - 4]]
    assert data.load((np.array(rows), None)).train.inputs.read(torch.tensor([0])).tolist() == [[2.0**64, 2.0**64]]
    with pytest.raises(ValueError, match="must have at least one pixel"):
        data.load([np.zeros((0, 0)), np.zeros((0, 0))])


def test_few_training_rows_leave_the_number_of_classes() -> None:
    """`limit=1` left one class, and test labels beyond it."""
    loaded = data.load((np.eye(6), np.arange(6) % 3), test=(np.eye(6), np.arange(6) % 3), limit=1)
    assert loaded.num_classes == 3


def test_a_damaged_head_of_an_npy_file_is_said(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(3))
    content = bytearray((tmp_path / "a.npy").read_bytes())
    content[content.index(b"fortran") + 1] = 0x96
    content[content.index(b"}") + 4] = ord("]")
    (tmp_path / "a.npy").write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"a\.npy cannot be read as arrays") as caught:
        data.load(tmp_path / "a.npy")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("kind", ["datetime64[s]", "object", "U3", "complex64"])
def test_features_are_numbers_for_every_reader(kind: str) -> None:
    x = np.zeros((4, 3)).astype(kind)
    with pytest.raises(ValueError, match="must be numbers"):
        doctor.examine_features(x)
    with pytest.raises(ValueError, match=r"expected (an array or a tensor of )?numbers"):
        evaluate.Subject.from_features(x.tolist() if kind != "complex64" else x, [0, 1, 0, 1], x, [0, 1, 0, 1])


def test_features_of_any_float_are_examined() -> None:
    x = np.random.default_rng(0).normal(size=(40, 4))
    for kind in (np.longdouble, ">f8", np.float16):
        assert doctor.examine_features(x.astype(kind))


def test_a_loss_says_what_labels_it_takes() -> None:
    with pytest.raises(ValueError, match=r"several lengths; expected integers \[4\]"):
        losses.SupConLoss()(torch.eye(4), [[1], [1, 2]])


def test_the_estimator_says_that_labels_are_of_one_kind() -> None:
    with pytest.raises(ValueError, match="y holds values of several kinds: must be all numbers, or all strings"):
        ContrastiveEncoder(max_iter=1).fit(np.eye(4), np.array(["a", 1, None, "b"], dtype=object))


def test_a_masked_array_of_records_is_no_features() -> None:
    records = np.ma.masked_array(np.zeros((4, 6), dtype=[("a", "<i4"), ("b", "<f4")]))
    with pytest.raises(ValueError, match="features"):
        geometry.uniformity(records)
    with pytest.raises(ValueError, match="train"):
        evaluate.Subject.from_features(records, np.arange(4) % 2, np.eye(6)[:4], np.arange(4) % 2)
