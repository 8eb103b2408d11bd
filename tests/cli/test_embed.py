"""``kontrast embed``: what comes out is what the encoder gives for inputs normalised as in its training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from typer.testing import CliRunner

import kontrast
from kontrast import data, models
from kontrast.cli import app
from kontrast.pipeline import run_recipe
from kontrast.train import Run
from kontrast.train.embedding import embed
from tests.cli.asking import ask, one_paragraph
from tests.data.pictures import write
from tests.train.exports.made import made
from tests.train.small import recipe

runner = CliRunner()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An encoder of grey images of 8×8 pixels."""
    return run_recipe(recipe("supcon", tmp_path_factory.mktemp("runs"), **{"train.epochs": 1}))


def embedded(run: Run, source: object, to: Path, *options: object) -> dict[str, np.ndarray[Any, Any]]:
    done = runner.invoke(app, ["embed", str(run.path), str(source), "--out", str(to), *map(str, options)])
    assert done.exit_code == 0, done.output
    assert f"written: {to}, " in done.stdout
    found = np.load(to, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return {"features": found}
    with found:
        return dict(found)


@torch.no_grad()
def expected(run: Run, pixels: Tensor) -> np.ndarray[Any, Any]:
    """By hand: uint8 ``[N, C, H, W]``, normalised with the statistics of the training data."""
    digits = data.load("digits", limit=200)
    mean, std = (torch.tensor(value).view(-1, 1, 1) for value in (digits.mean, digits.std))
    return kontrast.load(run)((pixels / 255 - mean) / std).numpy()


def same(features: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """To float32's rounding: batches of other sizes add up in another order."""
    np.testing.assert_allclose(features, wanted, rtol=1e-4, atol=1e-5)


def test_a_set_by_name(run: Run, tmp_path: Path) -> None:
    digits = data.load("digits")
    assert digits.test is not None
    found = embedded(run, "digits", tmp_path / "out.npz", "--split", "test", "--batch-size", 100)
    same(found["features"], expected(run, digits.test.inputs.read(torch.arange(360))))
    assert digits.test.labels is not None
    np.testing.assert_array_equal(found["labels"], digits.test.labels.numpy())


def test_an_npy_has_the_features_alone_and_limit_keeps_classes_even(run: Run, tmp_path: Path) -> None:
    rows = data.load("digits").train.limited(50)
    found = embedded(run, "digits", tmp_path / "out.npy", "--limit", 50, "--split", "train")
    same(found["features"], expected(run, rows.inputs.read(torch.arange(50))))
    labels = embedded(run, "digits", tmp_path / "out.npz", "--limit", 50, "--split", "train")["labels"]
    assert np.bincount(labels).tolist() == [5] * 10


def test_arrays_without_labels(run: Run, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "mine.npz", x_train=pixels)
    found = embedded(run, tmp_path / "mine.npz", tmp_path / "out.npz")
    assert found.keys() == {"features"}
    same(found["features"], expected(run, torch.from_numpy(pixels)[:, None]))


def test_a_folder_of_images(run: Run, tmp_path: Path) -> None:
    """Of the encoder's size, in grey: pixel for pixel. Labels are the folders, sorted."""
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 8), dtype=np.uint8)
    for i, image in enumerate(pixels):
        place = tmp_path / "photos" / ("b" if i < 3 else "a")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{i}.png")
    found = embedded(run, tmp_path / "photos", tmp_path / "out.npz")
    order = [3, 4, 5, 0, 1, 2]
    same(found["features"], expected(run, torch.from_numpy(pixels)[order, None]))
    assert found["labels"].tolist() == [0, 0, 0, 1, 1, 1]
    assert found["class_names"].tolist() == ["a", "b"]
    assert found["paths"].tolist() == ["a/3.png", "a/4.png", "a/5.png", "b/0.png", "b/1.png", "b/2.png"]


def test_parquet_says_where_it_is_from(run: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    to = tmp_path / "out.parquet"
    done = runner.invoke(app, ["embed", str(run.path), "digits", "-o", str(to), "--limit", "30", "--split", "train"])
    assert done.exit_code == 0, done.output
    assert f"written: {to}, 30 rows of 16" in done.stdout
    found = parquet.read_table(to)
    rows = data.load("digits").train.limited(30)
    same(np.array(found["features"].to_pylist(), dtype=np.float32), expected(run, rows.inputs.read(torch.arange(30))))
    assert found["class"].to_pylist() == [str(label) for label in found["label"].to_pylist()]
    about = json.loads(found.schema.metadata[b"kontrast"])
    assert about["run"] == json.loads((run.path / "run.json").read_text())["hash"]
    assert (about["data"], about["split"], about["card"]["feature_dim"]) == ("digits", "train", 16)


@pytest.mark.parametrize("sizes", [(24, 24), (24, 30)])
def test_other_images_are_brought_to_its_size_and_channels(run: Run, tmp_path: Path, sizes: tuple[int, int]) -> None:
    (tmp_path / "photos").mkdir()
    for i, side in enumerate(sizes):
        Image.new("RGB", (side, side), (90 * i, 90 * i, 90 * i)).save(tmp_path / "photos" / f"{i}.png")
    found = embedded(run, tmp_path / "photos", tmp_path / "out.npz")
    plain = torch.tensor([0, 90], dtype=torch.uint8)[:, None, None, None].expand(2, 1, 8, 8)
    same(found["features"], expected(run, plain))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["digits", "--out", "x.txt"], "to=x.txt: must end in .npz, .npy or .parquet"),
        (["digits", "--out", "nowhere/x.npz"], "there is no folder nowhere to write x.npz into"),
        (["digits", "--out", "x.npz", "--split", "unlabelled"], "digits has no split 'unlabelled'; it has train, test"),
        (["digits", "--out", "x.npz", "--split", "__class__"], "digits has no split '__class__'"),
        (["digits", "--out", "x.npz", "--device", "gpu"], "run.device='gpu': "),
        (["nowhere", "--out", "x.npz"], "'nowhere' is neither a set nor a path"),
        (["vectors.npy", "--out", "x.npz"], "holds vectors (5,)"),
    ],
)
def test_mistakes(
    run: Run,
    tmp_path: Path,
    words: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("vectors.npy", np.zeros((20, 5), dtype=np.float32))
    answer = ask(monkeypatch, capsys, "embed", run.path, *words)
    assert (answer.status, one_paragraph(answer.err)) == (2, True)
    assert says in answer.err
    assert not Path("x.npz").exists()


def test_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Standardised with the training data's statistics, not their own; other lengths are an error."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(3, 2, (100, 5)).astype(np.float32), np.arange(100) % 4
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x[:40], y_test=y[:40])
    changes = {"data.limit": None, "data.test_limit": None, "augment": "vector-noise", "train.epochs": 1}
    run = run_recipe(recipe("supcon", tmp_path, data=str(tmp_path / "mine.npz"), **changes))
    np.save(tmp_path / "new.npy", x[:10])
    found = embedded(run, tmp_path / "new.npy", tmp_path / "out.npz")
    trained = data.load(tmp_path / "mine.npz")
    mean, std = torch.tensor(trained.mean), torch.tensor(trained.std)
    with torch.no_grad():
        same(found["features"], kontrast.load(run)((torch.from_numpy(x[:10]) - mean) / std).numpy())
    np.save(tmp_path / "long.npy", np.zeros((20, 6), dtype=np.float32))
    for source, says in ((tmp_path / "long.npy", "holds vectors (6,)"), ("digits", "holds images (1, 8, 8)")):
        answer = ask(monkeypatch, capsys, "embed", run.path, source, "--out", tmp_path / "x.npz")
        assert answer.status == 2
        assert f"{says}; this encoder takes vectors (5,)" in answer.err


def test_a_folder_that_is_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(monkeypatch, capsys, "embed", tmp_path, "digits", "--out", tmp_path / "x.npz")
    assert answer.status == 2
    assert "has no model.json; expected the folder of a finished run" in answer.err


def test_image_files_by_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file or several: a row each, with the paths as they were given."""
    pixels = torch.randint(0, 256, (3, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    files = [tmp_path / f"{name}.png" for name in "cab"]
    for file, image in zip(files, pixels, strict=True):
        Image.fromarray(image[0].numpy()).save(file)
    one = embedded(run, files[0], tmp_path / "one.npz")
    assert one["paths"].tolist() == [str(files[0])]
    same(one["features"], expected(run, pixels[:1]))
    done = runner.invoke(app, ["embed", str(run.path), *map(str, files), "-o", str(tmp_path / "all.npz")])
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "all.npz") as found:
        assert found["paths"].tolist() == list(map(str, files))
        same(found["features"], expected(run, pixels))
    for to, given in (("list.npz", files), ("objects.npz", [Image.open(file) for file in files])):
        assert embed(run, given, tmp_path / to) == (3, 16)
        with np.load(tmp_path / to) as found:
            same(found["features"], expected(run, pixels))
    files[1].write_bytes(b"no image")
    for wrong, says in ((files, "cannot be read"), ([*files[:1], tmp_path / "gone.png"], "1 of 2 paths are not files")):
        told = ask(monkeypatch, capsys, "embed", run.path, *wrong, "-o", tmp_path / "no.npz")
        assert told.status == 2
        assert one_paragraph(told.err)
        assert says in told.err
        assert not (tmp_path / "no.npz").exists()


# ---------------------------------------------------------------------------------------------- encoders by name


def test_an_encoder_by_name_with_the_weights_of_a_file(tmp_path: Path) -> None:
    """No run is needed; the side is 24 pixels, the numbers are those of the folder, as the file says nothing."""
    torch.save(models.encoder("small-resnet", image_size=24, seed=1).state_dict(), tmp_path / "weights.pt")
    for i in range(3):
        write(tmp_path / "photos" / f"{i}.png", (24, 24), seed=i)
    words = ("--weights", str(tmp_path / "weights.pt"), "--out", str(tmp_path / "x.npz"))
    done = runner.invoke(app, ["embed", "small-resnet", str(tmp_path / "photos"), *words])
    assert done.exit_code == 0, done.output
    photos = data.load(tmp_path / "photos")
    mean, std = (torch.tensor(value).view(-1, 1, 1) for value in (photos.mean, photos.std))
    encoder = kontrast.load("small-resnet", pretrained=tmp_path / "weights.pt")
    with torch.no_grad():
        wanted = encoder((photos.train.inputs.read(torch.arange(3)) / 255 - mean) / std)
    with np.load(tmp_path / "x.npz") as found:
        same(found["features"], wanted.numpy())
        assert found["paths"].tolist() == ["0.png", "1.png", "2.png"]


def test_a_runs_weights_by_name_at_another_size(run: Run, tmp_path: Path) -> None:
    folder = made(tmp_path / "run", "small-resnet", (3, 20, 20))
    write(tmp_path / "photos" / "a.png", (40, 60))
    for encoder, more in ((str(folder), []), ("small-resnet", ["--weights", str(folder)])):
        for size in ([], ["--size", "16"]):
            to = tmp_path / f"{len(more)}{len(size)}.npy"
            words = ["embed", encoder, str(tmp_path / "photos"), "--out", str(to), *more, *size]
            done = runner.invoke(app, words)
            assert (done.exit_code == 0) == (not size or bool(more)), done.output
    same(np.load(tmp_path / "20.npy"), np.load(tmp_path / "00.npy"))
    smaller = kontrast.load("small-resnet", pretrained=folder, image_size=16).embed(tmp_path / "photos" / "a.png")
    same(np.load(tmp_path / "22.npy"), smaller.numpy())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["resnet18", "x"], "ENCODER=resnet18: is an encoder's name, and its weights must be named: --weights true"),
        (
            ["resnet81", "x"],
            "is neither the folder of a run nor an encoder's name; no encoder 'resnet81'; did you mean",
        ),
        (["mlp", "x", "--weights", "true"], "encoder.pretrained=true: nobody publishes weights for encoder mlp"),
        (["resnet18", "x", "--weights", "IMAGENET1K_V9"], "did you mean 'IMAGENET1K_V1'"),
        (["resnet18", "x", "--weights", "gone.pt"], "gone.pt"),
    ],
)
def test_an_encoder_that_there_is_not(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ask(monkeypatch, capsys, "embed", *words, "--out", "x.npy")
    assert answer.status == 2
    assert says in answer.err
    assert one_paragraph(answer.err)
