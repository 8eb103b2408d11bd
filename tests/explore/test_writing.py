"""The files of an exploration: one page, or a page with its pictures beside it, and the lists."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from kontrast import models
from kontrast.explore import collect, explore, reading, writing
from kontrast.explore.record import Exploration


@pytest.fixture(scope="module")
def found(folder: Path, encoder: models.Encoder) -> Exploration:
    return collect(reading.read(encoder, folder))


def test_lists_stand_beside_the_page(found: Exploration, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    files = writing.write(found, writing.check(tmp_path / "here" / "photos.html"))
    assert [file.name for file in files] == [
        "photos.html", "photos.parquet", "photos.duplicates.csv", "photos.outliers.csv", "photos.label-errors.csv",
        "photos.overlaps.csv",
    ]  # fmt: skip
    images = pandas.read_parquet(files[1])
    assert len(images) == 56
    assert images["name"].tolist() == list(found.catalogue.names or ())
    with files[2].open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["leak"], line["name"]) for line in lines[:2]] == [
        ("yes", "train/dog/2.png"),
        ("yes", "test/dog/leak.jpg"),
    ]
    with files[4].open(newline="") as file:
        assert next(csv.reader(file))[0] == "name", "a list without a line has its columns"


def test_many_images_have_their_pictures_beside(
    found: Exploration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = writing.check(tmp_path)
    inside = writing.write(found, page)[0].stat().st_size
    monkeypatch.setattr(writing, "ONE_FILE", 50)
    files = writing.write(found, page)
    assert [path.name for path in files[-1].iterdir()] == ["0000.jpg"]
    assert page.stat().st_size < inside - files[-1].joinpath("0000.jpg").stat().st_size
    assert "explore.pictures/0000.jpg" in page.read_text(encoding="utf-8")
    monkeypatch.setattr(writing, "ONE_FILE", 5000)
    writing.write(found, page)
    assert not files[-1].exists(), "pictures of a larger exploration do not stay"


def test_without_pyarrow_the_table_is_csv(found: Exploration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = writing.write(found, writing.check(tmp_path))[1]
    assert table.name == "explore.images.csv"
    assert len(table.read_text(encoding="utf-8").splitlines()) == 57


def test_from_python(folder: Path, encoder: models.Encoder, tmp_path: Path) -> None:
    found = explore(encoder, folder, tmp_path / "page.html", split="train")
    assert (tmp_path / "page.html").is_file()
    assert found.leaks == 0
    assert len(found.near_duplicates) == 2
    with pytest.raises(ValueError, match=r"must end in \.html, or be a folder"):
        explore(encoder, folder, tmp_path / "page.pdf")
