"""What is seen of data before a recipe is chosen: sides from headers, classes, files that fail, copies."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast.data import Memory, Split, from_arrays, load
from kontrast.data import facts as facts_of
from kontrast.data.facts import Facts, Sides, copies, count_files, image_sides, is_files, listing_digest, look
from tests.data.pictures import classes, noise, write


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    classes(tmp_path / "photos" / "train", per_class=4, size=(90, 120))
    classes(tmp_path / "photos" / "test", per_class=2, size=(100, 80), names=("cat", "dog", "emu"))
    shutil.rmtree(tmp_path / "photos" / "test" / "emu")
    for i, path in enumerate(sorted((tmp_path / "photos" / "test").rglob("*.png"))):
        Image.fromarray(noise(100, 80, seed=100 + i)).save(path)
    return tmp_path / "photos"


def test_sides_are_read_from_headers(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*arguments: object) -> None:
        raise AssertionError("an image was decoded")

    monkeypatch.setattr("kontrast.data.images.from_pil", refuses)
    assert image_sides(str(photos)) == Sides(80, 90)
    assert image_sides([photos / "train/cat/0.png"]) == Sides(90, 90)
    (photos / "train/cat/0.png").write_bytes(b"nothing")
    assert image_sides(photos / "train") == Sides(90, 90), "what cannot be read has no side"
    square = write(photos.parent / "one.png", (16, 16))
    assert image_sides(square) == Sides(16, 16, square=True)


def test_sides_of_what_is_loaded() -> None:
    pictures = [Image.fromarray(noise(20 + i, 30, seed=i)) for i in range(5)]
    assert image_sides(pictures, load(pictures)) == Sides(20, 22)
    wide = from_arrays(np.zeros((4, 10, 20), dtype=np.uint8))
    assert image_sides(wide, wide) == Sides(10, 10)
    vectors = from_arrays(np.eye(4))
    assert image_sides(vectors, vectors) is None


def test_facts_of_a_folder(photos: Path) -> None:
    (photos / "train/cat/broken.jpg").write_bytes(b"nothing")
    (photos / "train/cat/notes.txt").write_text("no image")
    with pytest.warns(UserWarning, match="skipped 1 of 9"):
        data = load(photos, size=64)
    found = look(data, Sides(80, 90))
    assert found == Facts(
        name="photos", rows=8, shape=(3, 64, 64), sides=Sides(80, 90), class_sizes=(4, 4), test_rows=4, skipped=1,
        copies=0,
    )  # fmt: skip
    (photos / "train/cat/broken.jpg").unlink()
    bare = look(load(photos, size=64, labelled=False))
    assert (bare.classes, bare.test_rows, bare.imbalance) == (0, 0, 1.0)


def test_copies_in_the_test_rows_are_counted(photos: Path) -> None:
    """The same file under another name; the same picture, smaller and as JPEG; and one that is only alike."""
    train, test = photos / "train/cat", photos / "test/cat"
    shutil.copy(train / "0.png", test / "copy.png")
    Image.open(train / "1.png").resize((96, 72)).save(test / "small.jpg", quality=85)
    Image.fromarray(np.roll(np.asarray(Image.open(train / "2.png")), 30, 1)).save(test / "shifted.png")
    data = load(photos, size=64)
    assert copies(data.train, data.test) == (1, 1)
    assert (look(data).copies, look(data).near_copies) == (1, 1)


def test_small_images_are_compared_exactly_only() -> None:
    """At the size of a thumbnail, clothes and digits are all alike."""
    data = load("fashion-mini", limit=2000, test_limit=500)
    assert copies(data.train, data.test) == (0, 0)
    mixed = Split(Memory(torch.cat([data.test.inputs.values[:5], data.train.inputs.values[:3]])))
    assert copies(data.train, mixed) == (3, 0)


def test_what_takes_long_is_not_compared(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(photos / "train/cat/odd.png", (70, 70))
    of_several_sizes = load(photos)
    assert look(of_several_sizes).copies is None
    assert not look(of_several_sizes).in_memory
    monkeypatch.setattr(facts_of, "MOST_ROWS", 11)
    assert look(load(photos, size=64)).copies is None


def test_the_digest_of_a_listing(photos: Path) -> None:
    before = listing_digest(str(photos))
    assert (count_files(photos), is_files(str(photos))) == (12, True)
    shutil.copytree(photos, photos.parent / "elsewhere")
    assert listing_digest(photos.parent / "elsewhere") == before, "where it lies, and when it was copied, do not count"
    write(photos / "train/cat/9.png")
    after = listing_digest(photos)
    assert after != before
    (photos / "train/cat/9.png").write_bytes(b"")
    assert listing_digest(photos) not in (before, after)
    assert listing_digest("digits") is None
    assert count_files(np.zeros((3, 4, 4))) is None
