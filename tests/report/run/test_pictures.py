"""Neighbours and views."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kontrast.report.page import Gallery
from kontrast.report.run.collect import Run, collect
from kontrast.report.run.pictures import MOST, neighbours, views
from tests.report import made


def gallery(run: Run) -> Gallery:
    found = neighbours(run)
    assert found is not None
    (part,) = found.parts
    assert isinstance(part, Gallery)
    return part


def test_right_and_wrong_neighbours_the_wrong_first(tmp_path: Path) -> None:
    found = gallery(collect(made.folder(tmp_path / "run")))
    # Row 1 is a dog with neighbours dog, cat, dog, dog, cat; row 0 a cat among cats.
    assert [strip.first.label for strip in found.strips] == ["dog", "cat"]
    assert [strip.tone for strip in found.strips] == ["bad", "good"]
    assert [picture.tone for picture in found.strips[0].others] == ["good", "bad", "good", "good", "bad"]
    assert [picture.label for picture in found.strips[0].others] == ["dog", "cat", "dog", "dog", "cat"]
    assert "8 of 10 neighbours have the query's class" in found.caption


def test_of_many_queries_the_worst_and_the_best(tmp_path: Path) -> None:
    run = collect(made.folder(tmp_path / "run", per_class=40))
    count = 60
    run.arrays["query_rows"] = np.arange(count)
    run.arrays["neighbour_labels"] = np.where(np.arange(count) < 20, 9, np.arange(count) % 3)[:, None].repeat(5, 1)
    run.arrays["query_images"] = np.zeros((count, 1, 4, 4), dtype=np.uint8)
    run.arrays["neighbour_images"] = np.zeros((count, 5, 1, 4, 4), dtype=np.uint8)
    strips = gallery(run).strips
    assert [strip.tone for strip in strips] == ["bad"] * (MOST // 2) + ["good"] * (MOST // 2)


def test_queries_whose_class_is_unknown_are_neither(tmp_path: Path) -> None:
    run = collect(made.folder(tmp_path / "run"))
    run.arrays["rows"] = np.arange(100, 124)
    found = gallery(run)
    assert {picture.tone for strip in found.strips for picture in strip.others} == {""}
    assert found.only == ""


def test_views_are_named_by_their_presets(tmp_path: Path) -> None:
    run = collect(made.folder(tmp_path / "run"))
    run.recipe["augment"] = {"views": [{"name": "weak"}, {"name": "strong"}]}
    found = views(run)
    assert found is not None
    part = found.parts[0]
    assert isinstance(part, Gallery)
    assert [picture.label for picture in part.strips[0].others] == ["weak", "strong"]


def test_vectors_have_no_pictures(tmp_path: Path) -> None:
    run = collect(made.folder(tmp_path / "run", images=False))
    assert neighbours(run) is None
    assert views(run) is None
