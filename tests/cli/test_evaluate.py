"""``kontrast evaluate`` as a user runs it: files in, a table or JSON out, errors that say what to do."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import kontrast
from kontrast import evaluate as stage
from kontrast.cli.evaluate import evaluate
from kontrast.pipeline import run_recipe
from kontrast.train import subject_on
from tests.data.pictures import classes
from tests.train.exports.made import made
from tests.train.small import recipe

runner = CliRunner()
app = typer.Typer()
app.command()(evaluate)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """features.npy [300, 8] and labels.npy of three overlapping classes, and 60 rows more for testing."""
    rng = np.random.default_rng(0)
    for name, rows in (("", 300), ("test_", 60)):
        labels = np.arange(rows) % 3
        x = np.eye(8)[labels] + 0.5 * rng.normal(size=(rows, 8))
        np.save(tmp_path / f"{name}features.npy", x.astype(np.float32))
        np.save(tmp_path / f"{name}labels.npy", labels)
    return tmp_path


def results(*arguments: object) -> list[dict]:
    done = runner.invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["results"]


def both(files: Path) -> list[object]:
    return [files / "features.npy", files / "labels.npy"]


def with_test(files: Path) -> list[object]:
    return [*both(files), "--test-features", files / "test_features.npy", "--test-labels", files / "test_labels.npy"]


def test_json_is_what_the_functions_find(files: Path) -> None:
    found = results(*with_test(files), "--protocol", "knn20", "--protocol", "logistic", "--seed", 3)
    x, y, xt, yt = (np.load(files / f"{n}.npy") for n in ("features", "labels", "test_features", "test_labels"))
    subject = stage.Subject.from_features(x, y, xt, yt)
    assert found == [stage.evaluate(subject, name, seed=3).record() for name in ("knn20", "logistic")]


def test_without_a_test_set_a_fifth_is_held_out_and_the_split_says_so(files: Path) -> None:
    (found,) = results(*both(files), "--protocol", "knn20", "--seed", 4)
    assert found["split"] == "20 % held out, class-balanced, seed 4"
    assert (found["train_rows"], found["test_rows"]) == (240, 60)
    assert [sum(row) for row in found["confusion"]] == [20, 20, 20]


def test_the_table_has_every_number_with_its_protocol(files: Path) -> None:
    done = runner.invoke(app, [*map(str, with_test(files)), "--protocol", "graf-means", "--protocol", "retrieval"])
    assert done.exit_code == 0, done.output
    assert "features.npy: 300 rows of 8 in 3 classes" in done.stdout
    assert "graf-means: linear classifier of the class means" in re.sub(r"\s+", " ", done.stdout)
    assert "retrieval: mAP@R 0." in done.stdout
    value = results(*with_test(files), "--protocol", "graf-means")[0]["value"]
    assert f"{100 * value:.2f}" in done.stdout


def test_the_usual_protocols_are_knn20_and_probe(files: Path) -> None:
    assert [found["name"] for found in results(*both(files))] == ["knn20", "probe"]


def test_archives(files: Path) -> None:
    x, y, xt, yt = (np.load(files / f"{n}.npy") for n in ("features", "labels", "test_features", "test_labels"))
    np.savez(files / "a.npz", features=x, labels=y, other=np.zeros(2))
    np.savez(files / "b.npz", x_train=x, y_train=y, x_test=xt, y_test=yt)
    assert results(files / "a.npz", "--protocol", "knn20") == results(*both(files), "--protocol", "knn20")
    assert results(files / "b.npz", "--protocol", "knn20") == results(*with_test(files), "--protocol", "knn20")


def test_what_embed_writes_is_taken_as_it_is(files: Path) -> None:
    """Labels of the test file too; where the two number their classes otherwise, names tell which is which."""
    x, y, xt, yt = (np.load(files / f"{n}.npy") for n in ("features", "labels", "test_features", "test_labels"))
    names = np.array(["cat", "dog", "owl"])
    np.savez(files / "f.npz", features=x, labels=y, class_names=names, paths=np.array(["p"] * 300))
    np.savez(files / "ft.npz", features=xt, labels=yt, class_names=names)
    np.savez(files / "other.npz", features=xt[yt > 0], labels=yt[yt > 0] - 1, class_names=names[1:])
    np.save(files / "words.npy", names[yt])
    asked = ("--protocol", "knn20", "--test-features")
    (found,) = results(files / "f.npz", *asked, files / "ft.npz")
    (apart,) = results(*with_test(files), "--protocol", "knn20")
    assert found["class_names"] == names.tolist()
    assert (found["value"], found["confusion"]) == (apart["value"], apart["confusion"])
    (worded,) = results(files / "f.npz", *asked, files / "test_features.npy", "--test-labels", files / "words.npy")
    assert worded == found
    (some,) = results(files / "f.npz", *asked, files / "other.npz")
    assert some["confusion"] == [[0, 0, 0], *found["confusion"][1:]]


def test_a_test_files_own_test_rows(files: Path) -> None:
    x, y, xt, yt = (np.load(files / f"{n}.npy") for n in ("features", "labels", "test_features", "test_labels"))
    np.savez(files / "b.npz", x_train=x[:50], y_train=y[:50], x_test=xt, y_test=yt)
    found = results(*both(files), "--protocol", "knn20", "--test-features", files / "b.npz")
    assert found == results(*with_test(files), "--protocol", "knn20")


def test_an_unlabelled_run_has_no_accuracies(tmp_path: Path) -> None:
    changes = {"data.labelled": False, "train.epochs": 1, "data.limit": 64, "train.batch_size": 32}
    run = run_recipe(recipe("simclr", tmp_path, **changes))
    done = runner.invoke(app, [str(run.path)])
    assert isinstance(done.exception, ValueError)
    assert "without them there are no accuracies" in str(done.exception)
    assert "method" not in str(done.exception)


def test_labels_may_be_words(files: Path) -> None:
    np.save(files / "words.npy", np.array(["cat", "dog", "owl"])[np.load(files / "labels.npy")])
    (found,) = results(files / "features.npy", files / "words.npy", "--protocol", "knn20")
    assert found["class_names"] == ["cat", "dog", "owl"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.npy", "labels.npy"], r"there is no file .*missing\.npy"),
        (["missing.npz"], r"there is no file .*missing\.npz"),
        (["features.npy"], "must have labels"),
        (["features.npy", "test_labels.npy"], "labels has 60 entries: must have one for each of the 300 rows"),
        (
            ["features.npy", "labels.npy", "--test-features", "test_features.npy"],
            "or use an .npz that has both",
        ),
        (["features.npy", "labels.npy", "--test-labels", "test_labels.npy"], "must go with --test-features"),
        (["features.npy", "several.npz"], r"holds a, b: must hold an array named labels, or one array alone"),
        (["several.npz"], "holds a, b: must hold features and labels, or x_train"),
        (["twice.npz"], "holds x_train and features, which mean the same"),
        (["broken.npz"], r"broken\.npz cannot be read as a numpy file"),
        (
            ["features.npy", "labels.npy", "--protocol", "knn"],
            "no protocol 'knn'; did you mean 'knn20'\\? Known: graf-linear",
        ),
        (["features.npy", "labels.npy", "--protocol", "tcl"], "trains on augmented images"),
        (["."], "expected the folder of a finished run"),
    ],
)
def test_errors_say_what_to_do(files: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    np.savez("several.npz", a=np.zeros(3), b=np.zeros(3))
    np.savez("twice.npz", x_train=np.eye(3), features=np.eye(3))
    Path("broken.npz").write_bytes(b"PK\x03\x04 and no more")
    done = runner.invoke(app, arguments)
    assert isinstance(done.exception, ValueError)  # which main() prints, with status 2
    assert re.search(says, str(done.exception)), str(done.exception)


def test_a_pipe_is_no_array_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npy")
    answer = runner.invoke(app, [str(tmp_path / "x.npy"), str(tmp_path / "x.npy")])
    assert "x.npy is a pipe, not a file" in str(answer.exception)


def test_any_encoder_on_any_data(tmp_path: Path) -> None:
    """By a run's folder and by name, on a folder that the run never saw; without test rows a fifth is held out."""
    run = made(tmp_path / "run", "small-resnet", (3, 12, 12))
    classes(tmp_path / "pets", per_class=10, size=(20, 30))
    for words in ([run], ["small-resnet", "--weights", run]):
        done = runner.invoke(
            app, [*map(str, (tmp_path / "pets", "--encoder", *words, "--protocol", "knn20", "--json"))]
        )
        assert done.exit_code == 0, done.output
        record = json.loads(done.stdout)
        assert record["encoder"] == str(words[0])
        assert record["preprocessing"]["size"] == 12
        encoder = kontrast.load(run)
        wanted = stage.evaluate(subject_on(encoder, tmp_path / "pets"), "knn20")
        assert record["results"][0]["value"] == wanted.value
        assert record["results"][0]["test_rows"] == 4
        assert "held out" in record["results"][0]["split"]


def test_an_encoder_takes_data_alone(files: Path, tmp_path: Path) -> None:
    for words, says in (
        ([*both(files), "--encoder", "resnet18", "--weights", "x.pt"], "takes DATA alone"),
        ([files / "features.npy", "--weights", "true"], "must go with --encoder"),
    ):
        with pytest.raises(ValueError, match=says):
            runner.invoke(app, list(map(str, words)), catch_exceptions=False)
