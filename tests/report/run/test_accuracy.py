"""Protocols, classes and confusions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.report.page import Figure, Table
from kontrast.report.records import read
from kontrast.report.run.accuracy import MOST_CLASSES, confused, confusion, hardest, per_class, section
from tests.report import made


def test_confusion_has_shares_and_counts(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run", per_class=10))
    spec = confusion(run, hardest(run))
    cells = {(row["true"], row["predicted"]): row for row in made.rows(spec)}
    # Two of ten rows of each class are taken for the next.
    classes, following = ["cat", "dog", "owl"], ["dog", "owl", "cat"]
    assert cells.keys() == {*zip(classes, classes, strict=True), *zip(classes, following, strict=True)}
    assert cells["cat", "dog"]["share"] == pytest.approx(0.2)
    assert (cells["cat", "dog"]["rows"], cells["cat", "dog"]["of"], cells["cat", "dog"]["right"]) == (2, 10, False)
    assert confused(run) == [(0, 1, 2), (1, 2, 2), (2, 0, 2)]


def test_classes_stand_hardest_first(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    run = read(path)
    results = run.contents.result.results
    results[0] = results[0].model_copy(update={"per_class": [0.9, 0.1, None]})
    spec = per_class(run, hardest(run))
    assert spec["encoding"]["y"]["sort"] == ["dog", "cat"], "a class without test rows has no accuracy"


def test_many_classes_stay_readable(tmp_path: Path) -> None:
    names = [f"class {i}" for i in range(120)]
    run = read(made.folder(tmp_path / "run", classes=names))
    assert len(hardest(run)) == MOST_CLASSES
    found = section(run)
    assert found is not None
    figure = next(part for part in found.parts if isinstance(part, Figure) and part.name == "confusion")
    assert "The 40 of 120 classes with the most errors." in figure.caption
    assert "A row adds up to 100 %" not in figure.caption
    assert "Shares are of all rows of the class; columns of other classes are left out." in figure.caption
    assert {row["true"] for row in made.rows(figure.spec)} <= {names[label] for label in hardest(run)}


def test_the_table_has_every_protocol_and_guessing(tmp_path: Path) -> None:
    found = section(read(made.folder(tmp_path / "run")))
    assert found is not None
    table = found.parts[0]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["knn20", "guessing"]
    assert table.rows[1][1] == "33.33"


def test_not_evaluated_no_section(tmp_path: Path) -> None:
    assert section(read(made.folder(tmp_path / "run", labels=False))) is None
