"""Neighbours and views."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from kontrast.report.page import Gallery, Page, Picture, Section, Strip, render
from kontrast.report.records import RunRecord, read
from kontrast.report.run.pictures import MOST, neighbours, views
from tests.report import made


def gallery(run: RunRecord) -> Gallery:
    found = neighbours(run)
    assert found is not None
    (part,) = found.parts
    assert isinstance(part, Gallery)
    return part


def test_right_and_wrong_neighbours_the_wrong_first(tmp_path: Path) -> None:
    found = gallery(read(made.folder(tmp_path / "run")))
    # Row 1 is a dog with neighbours dog, cat, dog, dog, cat; row 0 a cat among cats.
    assert [strip.first.label for strip in found.strips] == ["dog", "cat"]
    assert [strip.tone for strip in found.strips] == ["bad", "good"]
    assert [picture.tone for picture in found.strips[0].others] == ["good", "bad", "good", "good", "bad"]
    assert [picture.label for picture in found.strips[0].others] == ["dog", "cat", "dog", "dog", "cat"]
    assert "8 of 10 neighbours have the query's class" in found.caption


def test_of_many_queries_the_worst_and_the_best(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run", per_class=40))
    count = 60
    run.arrays["query_rows"] = np.arange(count)
    run.arrays["neighbours"] = np.zeros((count, 5), dtype=np.int64)
    run.arrays["neighbour_labels"] = np.where(np.arange(count) < 20, 9, np.arange(count) % 3)[:, None].repeat(5, 1)
    run.arrays["query_images"] = np.zeros((count, 1, 4, 4), dtype=np.uint8)
    run.arrays["neighbour_images"] = np.zeros((count, 5, 1, 4, 4), dtype=np.uint8)
    strips = gallery(run).strips
    assert [strip.tone for strip in strips] == ["bad"] * (MOST // 2) + ["good"] * (MOST // 2)


def test_queries_whose_class_is_unknown_are_neither(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    run.arrays["rows"] = np.arange(100, 124)
    found = gallery(run)
    assert {picture.tone for strip in found.strips for picture in strip.others} == {""}
    assert found.only == ""


def test_views_are_named_by_their_presets(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    with (path / "recipe.yaml").open("a") as file:
        file.write("augment: {views: [weak, strong]}\n")
    run = read(path)
    found = views(run)
    assert found is not None
    part = found.parts[0]
    assert isinstance(part, Gallery)
    assert [picture.label for picture in part.strips[0].others] == ["weak", "strong"]


def test_vectors_have_no_pictures(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run", images=False))
    assert neighbours(run) is None
    assert views(run) is None


def test_without_a_test_split_training_images_are_asked_for(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    assert gallery(run).caption.startswith("Left: a test image. Right: its nearest training images by cosine.")
    file = run.contents.run.analysis_file
    analysis = json.loads(file.read_text())
    analysis["geometry"]["protocol"] = {"split": "train", "neighbours": {"queries": "train", "searched": 12345}}
    file.write_text(json.dumps(analysis))
    said = gallery(read(run.path)).caption
    assert said.startswith("Left: a training image, because there is no test split. Right: the nearest other training")
    assert "of 12,345" in said
    assert "test image," not in said


def test_without_labels_neighbours_are_rows_and_neither_right_nor_wrong(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    for name in ("labels", "neighbour_labels"):
        del run.arrays[name]
    run.arrays["neighbours"] = np.arange(10).reshape(2, 5)
    found = gallery(run)
    assert [picture.label for picture in found.strips[1].others] == [f"row {j}" for j in range(5, 10)]
    assert {strip.tone for strip in found.strips} == {""}
    assert {picture.tone for strip in found.strips for picture in strip.others} == {""}
    assert found.only == ""


def test_classes_of_queries_that_the_map_does_not_have(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    run.arrays["rows"], run.arrays["query_labels"] = np.arange(100, 124), np.array([2, 1])
    assert [strip.first.label for strip in gallery(run).strips] == ["owl", "dog"]
    del run.arrays["query_labels"]
    run.arrays["test_labels"] = np.array([1, 2])
    assert sorted(strip.first.label for strip in gallery(run).strips) == ["dog", "owl"]


def test_files_name_unlabelled_neighbours_and_are_told_on_hover(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    run.arrays["query_names"] = np.array(["test/a.png", "test/b.png"])
    run.arrays["neighbour_names"] = np.array([[f"train/{i}{j}.png" for j in range(5)] for i in range(2)])
    labelled = gallery(run).strips[1]  # row 0
    assert (labelled.first.label, labelled.first.about) == ("cat", "cat: test/a.png")
    assert labelled.others[2].about == "cat: train/02.png"
    for name in ("labels", "neighbour_labels", "rows"):
        run.arrays.pop(name)
    first = gallery(run).strips[0]
    assert (first.first.label, first.first.about) == ("test/a.png", "test/a.png")
    assert [picture.label for picture in first.others] == [f"train/0{j}.png" for j in range(5)]
    for name in ("query_names", "neighbour_names"):
        run.arrays.pop(name)
    assert [picture.label for picture in gallery(run).strips[0].others] == ["row 0"] * 5


def test_labels_are_shown_whole() -> None:
    """Nothing in the page's style cuts them."""
    name = "train/n01440764/n01440764_10592.JPEG"
    html = render(Page("a", "b", [Section("c", [Gallery([Strip(Picture("data:,", name), [])])])]))
    assert f"<small>{name}</small>" in html
    style = html.partition(".picture small {")[2].partition("}")[0]
    assert "overflow-wrap: anywhere" in style
    assert "hidden" not in style
    assert "nowrap" not in style


def test_views_of_operations_are_named_by_them(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "run")
    with (folder / "recipe.yaml").open("a") as file:
        file.write(
            "augment:\n  views:\n  - - name: resized-crop\n      scale: [0.5, 1]\n    - name: flip\n  - name: weak\n"
        )
    run = read(folder)
    assert run.messages == []
    found = views(run)
    assert found is not None
    assert isinstance(found.parts[0], Gallery)
    assert [picture.label for picture in found.parts[0].strips[0].others] == ["resized-crop, flip", "weak"]
