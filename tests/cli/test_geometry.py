"""``kontrast geometry`` as a user runs it: files in, a table and JSON out, errors that say what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kontrast import geometry
from kontrast.cli import app, main
from kontrast.simplex import vertices

runner = CliRunner()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """features.npy, labels.npy and weights.npy: four noisy vertices of a simplex in 8 dimensions."""
    rng = np.random.default_rng(0)
    corners = vertices(4, 8, seed=0).numpy()
    labels = np.arange(200) % 4
    np.save(tmp_path / "features.npy", (corners[labels] + 0.1 * rng.normal(size=(200, 8))).astype(np.float32))
    np.save(tmp_path / "labels.npy", labels)
    np.save(tmp_path / "weights.npy", corners)
    return tmp_path


def measures(record: dict[str, object]) -> dict[str, dict[str, object]]:
    return {m["name"]: m for m in record["measures"]}  # type: ignore[index, union-attr, attr-defined]


def test_table_and_json_agree_with_the_functions(files: Path) -> None:
    done = runner.invoke(app, ["geometry", str(files / "features.npy"), str(files / "labels.npy")])
    assert done.exit_code == 0, done.output
    record = json.loads((files / "features.npy.geometry.json").read_text())
    found = measures(record)
    x, y = np.load(files / "features.npy"), np.load(files / "labels.npy")
    expected = geometry.uniformity(x, with_error=True)
    assert found["uniformity, t = 2"]["value"] == pytest.approx(expected.value, abs=1e-6)
    assert found["uniformity, t = 2"]["error"] == pytest.approx(expected.error, rel=1e-4)
    assert found["uniformity, t = 2"]["theory"] == pytest.approx(geometry.uniformity_limit(8))
    assert found["tolerance"]["value"] == pytest.approx(geometry.tolerance(x, y), abs=1e-6)
    assert found["cosine of two class means"]["theory"] == pytest.approx(-1 / 3)
    assert f"{geometry.tolerance(x, y):.4f}" in done.output
    assert "written:" in done.output
    assert len(found) == len(record["measures"]), "names are unique"


def test_without_labels_only_what_features_allow(files: Path) -> None:
    done = runner.invoke(app, ["geometry", str(files / "features.npy"), "--json"])
    assert done.exit_code == 0, done.output
    found = measures(json.loads(done.stdout))
    assert "tolerance" not in found
    assert "effective rank" in found
    assert not (files / "features.npy.geometry.json").exists(), "--json writes no file"


def test_weights_add_their_lines(files: Path) -> None:
    arguments = [str(files / "features.npy"), str(files / "labels.npy"), "--weights", str(files / "weights.npy")]
    done = runner.invoke(app, ["geometry", *arguments, "--json"])
    found = measures(json.loads(done.stdout))
    assert found["cosine of two weights"]["value"] == pytest.approx(-1 / 3, abs=1e-6)
    assert found["NC4, not the nearest mean"]["value"] == 0


def test_an_npz_and_a_run_folder_carry_their_labels(files: Path) -> None:
    x, y = np.load(files / "features.npy"), np.load(files / "labels.npy")
    run = files / "run"
    run.mkdir()
    np.savez(run / "analysis.npz", features=x, labels=y, other=np.zeros(3))
    for path in (run, run / "analysis.npz"):
        found = measures(json.loads(runner.invoke(app, ["geometry", str(path), "--json"]).stdout))
        assert found["tolerance"]["value"] == pytest.approx(geometry.tolerance(x, y), abs=1e-6)


def test_every_form_of_file_is_taken(files: Path) -> None:
    """Words and whole numbers as floats for labels; x_train, y_train, of which the rows for testing are left out."""
    x, y = np.load(files / "features.npy"), np.load(files / "labels.npy")
    names = np.array(["ant", "bee", "cow", "dog"])
    np.save(files / "words.npy", names[y])
    np.save(files / "floats.npy", y.astype(float))
    np.savez(files / "labels.npz", labels=y, other=y[:2])
    np.savez(files / "train.npz", x_train=x, y_train=names[y], x_test=x[:9], y_test=names[y][:9])
    np.savez(files / "embedded.npz", features=x, labels=y, class_names=names, paths=names[y])
    forms = [("features.npy", name) for name in ("words.npy", "floats.npy", "labels.npz")]
    for form in (*forms, ("train.npz",), ("embedded.npz",)):
        done = runner.invoke(app, ["geometry", *(str(files / name) for name in form), "--json"])
        assert done.exit_code == 0, done.output
        record = json.loads(done.stdout)
        assert record["rows"] == 200
        assert measures(record)["tolerance"]["value"] == pytest.approx(geometry.tolerance(x, y), abs=1e-6)


def test_anchors_are_sampled_by_the_seed(files: Path) -> None:
    arguments = ["geometry", str(files / "features.npy"), "--json", "--anchors", "50", "--seed"]
    first, again, other = (json.loads(runner.invoke(app, [*arguments, seed]).stdout) for seed in "112")
    name = "penalty entropy, τ = 0.1"
    assert first == again
    assert measures(first)[name]["value"] != measures(other)[name]["value"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: "missing.npy", r"there is no file .*missing\.npy"),
        (lambda p: (p / "x.txt").write_text("1 2") and "x.txt", r"neither \.npy nor \.npz"),
        (lambda p: (p / "x.npy").write_bytes(b"junk") and "x.npy", "cannot be read as a numpy file"),
        (lambda p: np.save(p / "x.npy", np.array([{}], dtype=object)) or "x.npy", "cannot be read as a numpy file"),
        (lambda p: np.save(p / "x.npy", np.zeros(3)) or "x.npy", r"accepted: \[N, D\]"),
        (lambda p: np.save(p / "x.npy", np.full((40, 2), np.nan)) or "x.npy", "NaN or infinity in 40 of 40 rows"),
        (lambda p: np.savez(p / "x.npz", a=np.zeros(3)) or "x.npz", "holds a: must hold features and labels, or"),
        (lambda p: (p / "folder").mkdir() or "folder", "has no analysis.npz: must be a finished run"),
    ],
)
def test_errors_say_what_to_do(
    make, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["kontrast", "geometry", str(tmp_path / make(tmp_path))])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    seen = capsys.readouterr().err
    assert "Traceback" not in seen
    assert re.search(says, seen), seen


def test_a_run_named_by_a_dot_gets_its_json_inside(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(files / "analysis.npz", features=np.load(files / "features.npy"))
    monkeypatch.chdir(files)
    done = runner.invoke(app, ["geometry", "."])
    assert done.exit_code == 0, done.output
    assert (files / "geometry.json").exists()


def test_few_rows_are_a_note_in_table_and_json(files: Path) -> None:
    np.save(files / "few.npy", np.load(files / "features.npy")[:12])
    done = runner.invoke(app, ["geometry", str(files / "few.npy")])
    assert "note: rows that uniformity is computed on: 12, fewer than 30" in done.output
    record = json.loads((files / "few.npy.geometry.json").read_text())
    assert any("uniformity" in note for note in record["notes"])


def test_a_folder_that_is_not_there_is_told_before_measuring(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = str(files / "nowhere" / "out.json")
    monkeypatch.setattr("sys.argv", ["kontrast", "geometry", str(files / "features.npy"), "--write", target])
    with pytest.raises(SystemExit) as stop:
        main()
    seen = capsys.readouterr().err
    assert stop.value.code == 2
    assert "must be in a folder that exists" in seen
    assert "measuring" not in seen


def test_json_says_what_was_measured(files: Path) -> None:
    arguments = [str(files / "features.npy"), str(files / "labels.npy"), "--weights", str(files / "weights.npy")]
    record = json.loads(runner.invoke(app, ["geometry", *arguments, "--t", "3", "--json"]).stdout)
    assert record["t"] == 3
    assert record["weights"].endswith("weights.npy")
    assert measures(record)["cosine to the class's weight, angular"]["theory"] == 1
