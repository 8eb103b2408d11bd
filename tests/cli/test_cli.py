"""The command line as a whole: warnings are lines, each once."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from kontrast.cli._console import options, plain_warnings
from tests.cli.asking import ask, written


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """A folder of images with a broken one among them, of which every command warns."""
    from PIL import Image

    for i in range(8):
        place = tmp_path / "photos" / "ab"[i % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (30 * i, 0, 0)).save(place / f"{i}.png")
    (tmp_path / "photos" / "a" / "broken.png").write_bytes(b"no image")
    return tmp_path


def test_a_warning_is_one_line_without_its_source(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.train.exports.made import made

    made(few / "run", "mlp", (3, 8, 8))
    monkeypatch.setattr("kontrast.cli._console.warning_texts", set())
    monkeypatch.delenv("KONTRAST_DEBUG", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # here they are errors
        plain = ask(monkeypatch, capsys, "embed", few / "run", few / "photos", "-o", few / "x.npz")
    assert plain.status == 0, plain.err
    warned = [line for line in plain.err.splitlines() if "broken.png" in line]
    assert len(warned) == 1
    assert warned[0].startswith("warning: ")
    assert "UserWarning" not in plain.err
    assert ".py:" not in plain.err
    assert len(np.load(few / "x.npz")["features"]) == 8


def test_each_text_once_and_pythons_own_way_is_put_back(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kontrast.cli._console.warning_texts", set())
    monkeypatch.setitem(options, "debug", False)
    monkeypatch.delenv("KONTRAST_DEBUG", raising=False)
    before = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        places: list[str] = []
        warnings.showwarning = mine = lambda message, category, filename, *more: places.append(filename)
        with plain_warnings():
            for text in ("two rows [of 5]", "two rows [of 5]", "three rows"):
                warnings.warn(text, UserWarning, stacklevel=1)
            assert capsys.readouterr().err == "warning: two rows [of 5]\nwarning: three rows\n"
            options["debug"] = True
            warnings.warn("three rows", UserWarning, stacklevel=1)
            assert places == [__file__], "with --debug it says where from"
        assert warnings.showwarning is mine
    assert warnings.showwarning is before


def test_names_of_folders_are_printed_on_one_line_without_a_terminals_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = written(tmp_path)
    answer = ask(monkeypatch, capsys, "train", path, "--dry-run", "--out", f"{tmp_path}/two\nlines\x1b[31m")
    assert answer.status == 0
    assert "\x1b" not in answer.out
    assert r"/two\nlines\x1b[31m/" in answer.out.splitlines()[-1]
