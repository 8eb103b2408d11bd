"""``kontrast.run(data=…)`` with whatever ``data.load`` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import kontrast
from kontrast.data import load
from kontrast.recipe import Recipe
from kontrast.train import subject_of
from tests.cli.asking import ask
from tests.data.pictures import noise

LABELS = ["cat", "dog"] * 12
VIEWS = [[{"name": "resized-crop", "scale": [0.5, 1]}, "flip"], {"name": "weak", "jitter": 0.4}]


def settings(out: Path) -> dict[str, Any]:
    return {
        "name": "mine", "augment": VIEWS, "encoder": {"name": "small-resnet", "width": 2}, "method": "supcon",
        "train": {"steps": 2, "batch_size": 8}, "evaluate": {"protocols": ["knn20"]},
        "run": {"out": str(out), "threads": 1, "progress": False, "monitor_every": 0, "device": "cpu"},
    }  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{i}.png" for i in range(24)]
    for i, path in enumerate(paths):
        Image.fromarray(noise(18 + i % 3, 20, seed=i)).save(path)
    return paths


def test_files_and_labels_are_trained_on_resumed_and_done(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of several sizes, cropped at decoding by a listed view."""
    recipe, out = settings(tmp_path / "runs"), tmp_path / "runs"
    run = kontrast.run(recipe, data=(files, LABELS), **{"augment.size": 16})
    assert run.status == "done"
    stored = Recipe.read(run.path / "recipe.yaml")
    assert stored.data.given == "a list of 24 image files and labels"
    assert stored.data.digest is not None
    assert stored.augment.described[0] == [
        {"name": "resized-crop", "scale": [0.5, 1.0], "ratio": [0.75, 4 / 3]},
        {"name": "flip", "p": 0.5},
    ]
    before = (run.path / "run.json").stat().st_mtime_ns
    assert kontrast.run(run.path, data=(files, LABELS)).path == run.path
    assert kontrast.run(run.path).path == run.path, "what is done needs no data"
    assert (run.path / "run.json").stat().st_mtime_ns == before
    with np.load(run.path / "analysis.npz") as arrays:
        assert set(arrays["query_names"].tolist()) == {path.name for path in files}

    (run.path / "result.json").unlink()  # not done: the data are wanted again
    with pytest.raises(ValueError, match="were given from Python"):
        kontrast.run(run.path)
    told = ask(monkeypatch, capsys, "train", run.path)
    assert told.status == 2
    assert f"kontrast.run('{run.path}', data=…)" in told.err
    assert kontrast.run(run.path, data=list(zip(files, LABELS, strict=True))).path == run.path
    assert (run.path / "result.json").exists()
    assert [path.name for path in out.iterdir()] == [run.path.name]


def test_other_data_are_another_folder_and_a_typo_leaves_none(tmp_path: Path) -> None:
    pictures = [Image.fromarray(noise(16, 16, seed=i)) for i in range(24)]
    recipe = {**settings(tmp_path), "method": "simclr"}
    first = kontrast.run(recipe, data=pictures)
    other = kontrast.run(recipe, data=[*pictures[:-1], Image.fromarray(noise(16, 16, seed=99))])
    assert first.path != other.path
    assert first.recipe.data.given == "a list of 24 PIL images"
    with pytest.raises(ValueError, match="did you mean 'temperature'"):
        kontrast.run(recipe, data=pictures, **{"method.temprature": 1})
    assert {path.name for path in tmp_path.iterdir()} == {first.path.name, other.path.name}


def test_a_data_set_is_evaluated_and_can_be_given_again(tmp_path: Path) -> None:
    rows = np.stack([noise(16, 16, seed=i) for i in range(24)])
    data = load((rows, LABELS), test=(rows[:10], LABELS[:10]))
    run = kontrast.run(settings(tmp_path), data=data)
    assert {record["name"] for record in run.result["results"]} == {"knn20", "raw pixels: knn20"}
    with pytest.raises(ValueError, match="were given from Python"):
        subject_of(run)
    assert subject_of(run, data=data).test.shape[0] == 10
    with (
        pytest.warns(UserWarning, match="are not those of the recipe"),
        pytest.raises(ValueError, match="learned from other data than these"),
    ):
        subject_of(run, data=(rows, LABELS))
