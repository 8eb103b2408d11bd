"""``kontrast ledger``: cells go in, are listed, come from somebody else, and pages are made of them alone."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kontrast import experiments
from kontrast.experiments.ledger import Design, Ledger
from kontrast.experiments.sweep import Sweep
from tests.cli.asking import Answer, ask
from tests.experiments.ledger.fixture import LEDGER

Asking = Callable[..., Answer]
TOY = ["graf-toy", "--preset", "smoke"]


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asking:
    """The command line, in this process."""
    return functools.partial(ask, monkeypatch, capsys)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished run folders of graf-toy: two settings, one seed; no encoder is trained."""
    out = tmp_path_factory.mktemp("runs")
    sweep = Sweep.of(experiments.find("graf-toy"), "smoke", out=out)
    for cell in sweep.cells:
        cell.perform()
    sweep.write()
    return out


def test_cells_go_in_and_are_listed(asking: Asking, runs: Path, tmp_path: Path) -> None:
    where = ["--ledger", str(tmp_path / "ledger")]
    status, text, told = asking("ledger", "add", *TOY, "--out", str(runs), *where)
    assert status == 0, told
    assert "2 of 2 runs are done" in told
    assert "2 cells added" in text
    status, text, told = asking("ledger", "add", str(runs / "graf-toy-smoke"), *where)  # the same, by its folder
    assert "0 cells added, 2 were there already" in text
    status, text, _ = asking("ledger", "list", *where, "--json")
    [line] = json.loads(text)["designs"]
    assert (line["experiment"], line["preset"], line["cells"], line["seeds"]) == ("graf-toy", "smoke", 2, 1)
    status, text, _ = asking("ledger", "list", *where)
    assert status == 0
    assert "graf-toy" in text


def test_a_page_is_made_of_the_ledger_alone(asking: Asking, runs: Path, tmp_path: Path) -> None:
    where = ["--ledger", str(tmp_path / "ledger")]
    asking("ledger", "add", *TOY, "--out", str(runs), *where)
    status, text, told = asking("reproduce", *TOY, "--only-read", "--out", str(tmp_path / "none"), *where, "--json")
    assert status == 0, told
    from_ledger, from_folders = json.loads(text), json.loads((runs / "graf-toy-smoke" / "result.json").read_text())
    assert from_ledger["ledger"] == {"cells": 2, "other_recipe": 0}
    assert from_ledger["status"] == {"done": 2}
    for key in ("places", "claims", "axes", "seeds"):
        assert from_ledger[key] == from_folders[key]
    made = tmp_path / "none" / "graf-toy-smoke"
    assert (made / "loss.vl.json").read_bytes() == (runs / "graf-toy-smoke" / "loss.vl.json").read_bytes()
    assert (made / "report.html").exists()
    assert "From the ledger: 2 runs" in (made / "table.md").read_text()


def test_cells_of_somebody_else(asking: Asking, runs: Path, tmp_path: Path) -> None:
    asking("ledger", "add", *TOY, "--out", str(runs), "--ledger", str(tmp_path / "theirs"))
    file, where = tmp_path / "theirs" / "graf-toy-smoke.jsonl", ["--ledger", str(tmp_path / "ours")]
    status, text, told = asking("ledger", "import", str(file), *where)
    assert status == 0, told
    assert "2 cells added" in text
    status, text, _ = asking("ledger", "import", str(file), *where)
    assert "2 were there already" in text
    other = tmp_path / "other.jsonl"
    other.write_text(file.read_text().replace('"collapse": ', '"collapse": 1'))
    status, text, told = asking("ledger", "import", str(other), *where)
    assert (status, text) == (2, "")
    assert "with other values" in told
    status, text, told = asking("ledger", "import", str(file), str(other), *where)
    assert status == 2
    assert "is also in" in told
    changed = tmp_path / "changed.jsonl"
    entry = Ledger(file.parent).entries(Design("graf-toy", "smoke"))[0]
    origin = entry.origin.model_copy(update={"recipe": "00000000"})
    changed.write_text(entry.model_copy(update={"origin": origin}).line())
    status, text, told = asking("ledger", "import", str(changed), "--ledger", str(tmp_path / "third"))
    assert status == 2
    assert "line 1: origin.recipe is 00000000" in told
    assert not (tmp_path / "third").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add", "train.epochs=5"], "WHAT=train.epochs=5: must begin with an experiment"),
        (["add", "wl-tabel-1"], "did you mean 'wl-table-1'"),
        (["import", "nowhere.jsonl"], "nowhere.jsonl"),
        (["import", "data=x"], "WHAT=data=x: must name files of a ledger"),
    ],
)
def test_errors_say_what_to_do(asking: Asking, tmp_path: Path, words: list[str], says: str) -> None:
    status, text, told = asking("ledger", *words, "--ledger", str(tmp_path / "ledger"))
    assert (status, text) == (2, "")
    assert says in told
    assert not (tmp_path / "ledger").exists()


def test_a_ledger_that_is_not_there_is_told(asking: Asking, tmp_path: Path) -> None:
    for words in (["--only-read"], []):
        status, _, told = asking("reproduce", *TOY, *words, "--ledger", str(tmp_path / "none"))
        assert status == 2
        assert "must be a folder that exists" in told


def test_what_the_ledger_has_is_not_run_again(asking: Asking, runs: Path, tmp_path: Path) -> None:
    where = ["--ledger", str(tmp_path / "ledger")]
    asking("ledger", "add", *TOY, "--out", str(runs), *where)
    status, text, told = asking("reproduce", *TOY, "--out", str(tmp_path / "new"), *where, "--json")
    assert status == 0, told
    assert "2 runs, 0 to do" in told
    assert json.loads(text)["ledger"] == {"cells": 2, "other_recipe": 0}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["graf-toy-smoke"]


def test_the_ledger_of_the_checkout_is_read_if_there_is_one(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(LEDGER, tmp_path / "docs" / "results" / "ledger")
    monkeypatch.chdir(tmp_path)
    status, text, told = asking("reproduce", *TOY, "--only-read", "--json")
    assert status == 0, told
    assert json.loads(text)["ledger"]["cells"] == 2


def test_a_damaged_ledger_is_told(asking: Asking, tmp_path: Path) -> None:
    (tmp_path / "graf-toy-smoke.jsonl").write_text('{"format": 7}\n')
    for words in (["reproduce", *TOY, "--only-read"], ["ledger", "list"]):
        status, text, told = asking(*words, "--ledger", str(tmp_path))
        assert (status, text) == (2, "")
        assert "graf-toy-smoke.jsonl, line 1: format: is 7" in " ".join(told.split())
