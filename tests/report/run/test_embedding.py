"""The map."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kontrast.report.page import Figure
from kontrast.report.records import RunRecord, read
from kontrast.report.run import embedding
from kontrast.report.run.embedding import OTHER, ROWS, pca, records, rows, section, tsne, unit
from kontrast.runs import Contents, Run
from tests.report import made


def test_pca_is_the_plane_of_largest_variance() -> None:
    draw = np.random.default_rng(0)
    x = draw.standard_normal((50, 6)) * np.array([9.0, 5.0, 1.0, 0.5, 0.2, 0.1])
    at = pca(x)
    spread = np.linalg.svd(x - x.mean(0), compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(at, axis=0), spread[:2], rtol=1e-10)  # float64, well separated
    np.testing.assert_allclose(at[:, 0] @ at[:, 1], 0, atol=1e-9)
    assert pca(np.ones((4, 1))).shape == (4, 2)


def test_tsne_keeps_groups_apart_and_repeats() -> None:
    draw = np.random.default_rng(0)
    x = unit(np.repeat(np.eye(3, 8), 20, axis=0) + 0.05 * draw.standard_normal((60, 8)))
    at = tsne(x)
    np.testing.assert_array_equal(at, tsne(x))
    groups = at.reshape(3, 20, 2)
    inside = max(float(np.linalg.norm(group - group.mean(0), axis=1).max()) for group in groups)
    between = min(float(np.linalg.norm(groups[i].mean(0) - groups[j].mean(0))) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert between > 2 * inside


def test_equal_and_unusable_rows_do_no_harm() -> None:
    assert np.isfinite(tsne(unit(np.ones((20, 4))))).all()
    np.testing.assert_array_equal(unit(np.array([[0.0, 0.0], [np.nan, 2.0]])), [[0, 0], [0, 1]])


def test_points_have_place_class_prediction_and_picture(tmp_path: Path) -> None:
    spec = chart(tmp_path)
    first = made.rows(spec)[0]
    assert first["class"] == first["predicted"] == "cat"
    assert first["image"].startswith("data:image/")
    assert {"PCA x", "PCA y", "t-SNE x", "t-SNE y", "row"} <= first.keys()
    assert [param["name"] for param in spec["params"]] == ["map", "legend"]
    assert {tip["field"] for tip in spec["encoding"]["tooltip"]} == {"class", "predicted", "row", "image"}


def chart(path: Path, **options: object) -> dict:  # type: ignore[type-arg]
    found = section(read(made.folder(path / "run", **options)))  # type: ignore[arg-type]
    assert found is not None
    (figure,) = [part for part in found.parts if isinstance(part, Figure)]
    return dict(figure.spec)


def test_vectors_without_labels_have_neither_pictures_nor_colours(tmp_path: Path) -> None:
    spec = chart(tmp_path, images=False, labels=False)
    assert {"class", "predicted", "image"}.isdisjoint(made.rows(spec)[0])
    assert "shape" not in spec["encoding"]


def test_of_many_classes_some_are_coloured_and_any_can_be_picked(tmp_path: Path) -> None:
    spec = chart(tmp_path, classes=[f"c{i}" for i in range(30)], per_class=5)
    domain = spec["encoding"]["color"]["scale"]["domain"]
    assert len(domain) == 11
    assert domain[-1] == OTHER
    pick = next(param for param in spec["params"] if param["name"] == "pick")
    assert len(pick["bind"]["options"]) == 31


def test_predictions_of_a_part_of_the_test_rows() -> None:
    from kontrast.report.run.embedding import _predictions

    arrays = {"features": np.zeros((2, 3)), "predictions": np.array([5, 6, 7]), "rows": np.array([0, 2])}
    found = _predictions(RunRecord(Contents(Run("x"), arrays=arrays)))
    assert found is not None
    assert found.tolist() == [5, 7]
    del arrays["rows"]
    assert _predictions(RunRecord(Contents(Run("x"), arrays=arrays))) is None, "of which rows, nobody knows"


@pytest.mark.parametrize("labelled", [True, False])
def test_of_many_rows_some_with_classes_even(labelled: bool) -> None:
    arrays = {"features": np.zeros((3000, 2))}
    if labelled:
        arrays["labels"] = np.repeat([0, 1], [2900, 100])
    chosen = rows(RunRecord(Contents(Run("x"), arrays=arrays)))
    assert len(np.unique(chosen)) == ROWS
    if labelled:
        assert (arrays["labels"][chosen] == 1).sum() == 100


def test_no_features_no_section(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run", status="training")
    (path / "analysis.npz").unlink()
    assert section(read(path)) is None


def test_points_are_named_by_their_files(tmp_path: Path) -> None:
    run = read(made.folder(tmp_path / "run"))
    run.arrays["names"] = np.array([f"{i}.png" for i in range(len(run.arrays["features"]))])
    points = records(run, rows(run), {"PCA": pca(unit(run.arrays["features"]))})
    assert [point["file"] for point in points[:3]] == ["0.png", "1.png", "2.png"]
    assert "row" not in points[0]
    told = [tip["field"] for tip in embedding.chart(points, ["PCA"], [])["encoding"]["tooltip"]]
    assert told[:3] == ["class", "predicted", "file"]
