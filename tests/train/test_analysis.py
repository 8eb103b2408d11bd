"""What a report draws."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from kontrast import data, evaluate, models
from kontrast.pipeline import run_recipe
from kontrast.train import analysis, load, resolve
from kontrast.train.job import make_job
from tests.train.small import recipe


def test_arrays_and_geometry(tmp_path: Path) -> None:
    run = run_recipe(recipe("tcl", tmp_path))
    with np.load(run.path / "analysis.npz", allow_pickle=False) as found:
        arrays = {name: torch.from_numpy(found[name]) for name in found.files}
    digits = data.load("digits", limit=200, test_limit=100)
    encoder = load(run)
    test = evaluate.extract(encoder, digits.test, mean=digits.mean, std=digits.std)
    train = evaluate.extract(encoder, digits.train, mean=digits.mean, std=digits.std)
    torch.testing.assert_close(arrays["features"], test)
    assert torch.equal(arrays["labels"], digits.test.labels)
    accuracy = float((arrays["predictions"] == digits.test.labels).float().mean())
    assert abs(accuracy - run.value("knn20")) < 1e-6
    similar = F.normalize(test[arrays["query_rows"]], dim=1) @ F.normalize(train, dim=1).T
    assert all(len(set(row)) == 5 for row in arrays["neighbours"].tolist())
    # Cosines in float32: two that are this close may stand in either order.
    torch.testing.assert_close(similar.gather(1, arrays["neighbours"]), similar.topk(5).values, rtol=0, atol=1e-5)
    assert torch.equal(arrays["neighbour_labels"], digits.train.labels[arrays["neighbours"]])
    assert torch.equal(arrays["query_labels"], digits.test.labels[arrays["query_rows"]])
    assert torch.equal(arrays["query_images"], digits.test.inputs.read(arrays["query_rows"]))
    assert torch.equal(arrays["neighbour_images"][:, 0], digits.train.inputs.read(arrays["neighbours"][:, 0]))
    assert torch.equal(arrays["rows"], torch.arange(100))
    assert torch.equal(arrays["thumbnail_rows"], torch.arange(100))
    assert torch.equal(arrays["thumbnails"], digits.test.inputs.read(torch.arange(100)))
    assert arrays["sample_views"].shape == (8, 2, 1, 8, 8)
    assert arrays["sample_views"].dtype == torch.uint8
    record = json.loads((run.path / "analysis.json").read_text())
    lines = {line["name"]: line["value"] for line in record["geometry"]["features"]}
    from kontrast import geometry

    assert abs(lines["uniformity, t = 2"] - float(geometry.uniformity(test))) < 1e-5
    assert record["geometry"]["protocol"]["rows"] == 100
    assert record["geometry"]["protocol"]["neighbours"] == {"queries": "test", "searched": 200}


def test_rows_and_thumbnails_of_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontrast.train.analysis.MOST", 50)
    monkeypatch.setattr("kontrast.train.analysis.PICTURED", 20)
    run = run_recipe(recipe("supcon", tmp_path))
    digits = data.load("digits", limit=200, test_limit=100)
    with np.load(run.path / "analysis.npz", allow_pickle=False) as found:
        rows, pictured = torch.from_numpy(found["rows"]), torch.from_numpy(found["thumbnail_rows"])
        assert torch.equal(torch.from_numpy(found["labels"]), digits.test.labels[rows])
        assert torch.equal(torch.from_numpy(found["thumbnails"]), digits.test.inputs.read(rows[pictured]))
        assert len(rows) == 50
        assert torch.equal(torch.from_numpy(found["test_labels"]), digits.test.labels), "of all that were predicted"
        assert np.bincount(found["labels"][pictured]).tolist() == [2] * 10, "classes even"


def test_without_labels_or_test_rows(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 255, (60, 8, 8), dtype=np.uint8)
    np.save(tmp_path / "x.npy", images)
    changes = {"data": str(tmp_path / "x.npy"), "data.limit": None, "data.test_limit": None}
    run = run_recipe(recipe("simclr", tmp_path, **changes))
    with np.load(run.path / "analysis.npz", allow_pickle=False) as found:
        pictures = {"sample_images", "sample_views", "thumbnail_rows", "thumbnails", "query_images", "neighbour_images"}
        near = {"query_rows", "neighbours"}
        assert set(found.files) == {"features", "rows", "nearest", "positive"} | near | pictures
        assert found["features"].shape == (60, 16)
        x = found["features"] / np.linalg.norm(found["features"], axis=1, keepdims=True)
        similar = x @ x.T
        np.fill_diagonal(similar, -2)  # of all other rows
        for row, neighbours in zip(found["query_rows"], found["neighbours"], strict=True):
            assert row not in neighbours
            np.testing.assert_allclose(similar[row, neighbours], np.sort(similar[row])[:-6:-1], atol=1e-6)  # float32
        np.testing.assert_array_equal(found["query_images"][:, 0], images[found["query_rows"]])
        np.testing.assert_array_equal(found["neighbour_images"][:, 2, 0], images[found["neighbours"][:, 2]])
    asked = json.loads((run.path / "analysis.json").read_text())["geometry"]["protocol"]["neighbours"]
    assert asked == {"queries": "train", "searched": 60}


def test_neighbours_among_a_part_of_the_training_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontrast.train.analysis.SEARCHED", 20)
    draw = np.random.default_rng(0)
    images, labels = draw.integers(0, 255, (60, 8, 8), dtype=np.uint8), np.arange(60) % 3
    np.savez(tmp_path / "x.npz", x_train=images, y_train=labels)
    changes = {"data": str(tmp_path / "x.npz"), "data.limit": None, "data.test_limit": None}
    run = run_recipe(recipe("supcon", tmp_path, **changes))
    with np.load(run.path / "analysis.npz", allow_pickle=False) as found:
        assert len(np.unique(found["neighbours"])) <= 20
        assert not (found["neighbours"] == found["query_rows"][:, None]).any()
        np.testing.assert_array_equal(found["query_labels"], labels[found["query_rows"]])
        np.testing.assert_array_equal(found["neighbour_labels"], labels[found["neighbours"]])
        np.testing.assert_array_equal(found["neighbour_images"][:, :, 0], images[found["neighbours"]])
    asked = json.loads((run.path / "analysis.json").read_text())["geometry"]["protocol"]["neighbours"]
    assert asked == {"queries": "train", "searched": 20}


def test_separation_of_the_embeddings(tmp_path: Path) -> None:
    run = run_recipe(recipe("simclr", tmp_path, augment="none"))  # views that are the image itself
    with np.load(run.path / "analysis.npz", allow_pickle=False) as found:
        positive, nearest = found["positive"], found["nearest"]
    np.testing.assert_allclose(positive, np.ones(100), atol=1e-6)  # one rounding of a unit row's square
    assert nearest.shape == (100, 10)
    assert (np.diff(nearest, axis=1) <= 0).all()


@pytest.mark.parametrize("method", ["ce", "sc"])
def test_simplex_of_the_training_rows(method: str, tmp_path: Path) -> None:
    from kontrast import geometry

    run = run_recipe(recipe(method, tmp_path, head="none"))
    digits = data.load("digits", limit=200, test_limit=100)
    z = evaluate.extract(load(run), digits.train, mean=digits.mean, std=digits.std)
    expected = geometry.simplex(z, digits.train.labels)
    record = run.result["geometry"]["simplex"]
    assert record["embeddings"]["across_means"] == pytest.approx(expected.across_means, abs=1e-6)
    assert record["features"]["within"] == pytest.approx(expected.within, abs=1e-6)
    with np.load(run.path / "analysis.npz", allow_pickle=False) as found:
        np.testing.assert_allclose(found["between_means"], expected.cosines_means.numpy(), atol=1e-6)
        assert ("between_weights" in found.files) == (method == "ce")


def test_separation_from_the_memory_bank(tmp_path: Path) -> None:
    made = resolve(recipe("instance", tmp_path))
    job = make_job(made, torch.device("cpu"))
    arrays = analysis._of_bank(job)
    assert "bank_positive" not in analysis._of_bank(make_job(resolve(recipe("simclr")), torch.device("cpu")))
    assert arrays["bank_positive"].shape == (200,)
    assert arrays["bank_nearest"].shape == (200, 10)
    assert bool((arrays["bank_nearest"].diff(dim=1) <= 0).all()), "the nearest first"
    # Once every entry is its row's own view, the positive is 1; whatever came before, the network stays as it is.
    rows = job.train.limited_rows(analysis.MOST, made.seed)
    before = {name: tensor.clone() for name, tensor in job.method.online.state_dict().items()}
    views = analysis.FixedViews(job, job.train.subset(rows)).of(slice(0, 200))[:, 0]
    network = copy.deepcopy(job.method.online).train()
    bank = job.method.bank
    assert isinstance(bank, models.MemoryBank)
    with torch.no_grad():
        z = torch.cat([network(part) for part in torch.tensor_split(views, 7)])  # ⌈200 / 32⌉ batches
        bank.rows[rows] = torch.nn.functional.normalize(z, dim=1)
        found = analysis._of_bank(job)
    assert found["bank_positive"].numpy() == pytest.approx(1.0, abs=1e-5)
    similar = bank.rows[rows] @ bank.rows.T
    similar[torch.arange(200), rows] = -2
    assert found["bank_nearest"].numpy() == pytest.approx(similar.topk(10, dim=1).values.numpy(), abs=1e-5)
    for name, tensor in job.method.online.state_dict().items():
        assert torch.equal(tensor, before[name]), name
