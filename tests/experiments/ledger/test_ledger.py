"""A ledger: files by design, merging, what is refused; cells that somebody else ran."""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path
from typing import Any

import pytest

import kontrast
from kontrast import experiments
from kontrast.experiments import outcome
from kontrast.experiments.baselines import RAW, UNTRAINED, baselines_of
from kontrast.experiments.experiment import Experiment
from kontrast.experiments.ledger import Design, Entry, Ledger, check_import, read_file, recipe_hash
from kontrast.experiments.plan import plan
from tests.experiments.ledger.test_entry import ORIGIN, entry
from tests.experiments.test_plan import experiment

SMALL = experiment(measures=(outcome.accuracy("knn", "kNN", "knn20"),))


def test_designs() -> None:
    words = ["temperature=[0.1,0.2]", "train.epochs=20", "run.device=cuda", "optim.lr=0.1"]
    made = Design.of(SMALL, "cpu", words)
    assert made == Design("small", "cpu", {"optim.lr": 0.1, "train.epochs": 20}), "neither axes nor how it is run"
    assert made.name != Design("small", "cpu").name == "small-cpu"
    assert made.name == Design.of(SMALL, "cpu", list(reversed(words))).name
    assert Design.of(SMALL, "cpu", made.words) == made
    odd = Design("small", "cpu", {"a": None, "b": "x y", "c": [1, "2"], "d": True})
    assert Design.of(SMALL, "cpu", odd.words) == odd


def test_cells_are_kept_by_design_and_in_order(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "deep" / "ledger")
    cells = [entry(at={"temperature": t}, seed=s) for s in (1, 0) for t in (1.0, 0.05)]
    done = ledger.merge([*cells, entry(preset="paper"), entry(baseline="raw pixels", at={})])
    assert (len(done.added), done.same, done.replaced) == (6, [], [])
    assert [file.name for file in ledger.files()] == ["demo-cpu.jsonl", "demo-paper.jsonl"]
    found = ledger.entries(Design("demo", "cpu"))
    assert [(e.baseline, e.at.get("temperature"), e.seed) for e in found] == [
        ("raw pixels", None, 0),
        (None, 0.05, 0),
        (None, 0.05, 1),
        (None, 1.0, 0),
        (None, 1.0, 1),
    ]
    assert len(ledger.rows(Design("demo", "cpu"))) == 4, "without the baseline"
    assert ledger.entries(Design("demo", "smoke")) == []
    before = ledger.file(Design("demo", "cpu")).read_bytes()
    again = Ledger(ledger.path).merge(reversed(cells))
    assert len(again.same) == 4
    assert ledger.file(Design("demo", "cpu")).read_bytes() == before, "the same cells are the same bytes"


def test_one_more_cell_is_one_more_line(tmp_path: Path) -> None:
    ledger, file = Ledger(tmp_path), tmp_path / "demo-cpu.jsonl"
    ledger.merge([entry(seed=0), entry(seed=2)])
    before = file.read_text().splitlines()
    ledger.merge([entry(seed=1)])
    after = file.read_text().splitlines()
    assert [line for line in after if line not in before] == [entry(seed=1).line()]
    assert [line for line in after if line in before] == before


def test_a_conflict_names_both_and_writes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.merge([entry()])
    before = (tmp_path / "demo-cpu.jsonl").read_bytes()
    other = entry(values={"knn": 50.0}, origin=ORIGIN.model_copy(update={"recipe": "87654321", "commit": "def"}))
    with pytest.raises(ValueError, match="with other values") as told:
        ledger.merge([entry(preset="paper"), other])
    for word in ("temperature=0.1 seed=0", "demo-cpu.jsonl", "12345678", "87654321", "commit abc", "commit def"):
        assert word in str(told.value)
    assert (tmp_path / "demo-cpu.jsonl").read_bytes() == before
    assert not (tmp_path / "demo-paper.jsonl").exists()
    assert len(ledger.merge([other], replace=True).replaced) == 1
    assert ledger.entries(Design("demo", "cpu")) == [other]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (lambda a, b: f"{a}\n{{\n", "line 2: no JSON"),
        (lambda a, b: f"{a}\n\n{b}\n", "line 2: no JSON"),
        (
            lambda a, b: f"{a}\n{b}\n{a}\n",
            "line 3: demo --preset cpu data=digits temperature=0.1 seed=0 stands in line 1",
        ),
        (lambda a, b: f"{a}\n{b[:-9]}", "line 2: "),
        (lambda a, b: f"{a}\n{'x' * 200_000}\n", "line 2: is longer than 50,000 bytes"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(tmp_path: Path, lines: Any, says: str) -> None:
    file = tmp_path / "demo-cpu.jsonl"
    file.write_text(lines(entry().line(), entry(seed=1).line()))
    with pytest.raises(ValueError, match=re.escape(f"{file}, {says}")):
        Ledger(tmp_path).entries(Design("demo", "cpu"))
    with pytest.raises(ValueError, match="demo-cpu"):
        Ledger(tmp_path).merge([entry(seed=5)])


def test_a_cell_in_the_wrong_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo-cpu.jsonl").write_text(entry(preset="paper").line() + "\n")
    with pytest.raises(ValueError, match=r"line 1: is of demo-paper\.jsonl"):
        Ledger(tmp_path).entries(Design("demo", "cpu"))


def test_a_file_without_a_last_line_break_is_read(tmp_path: Path) -> None:
    (tmp_path / "demo-cpu.jsonl").write_text(entry().line())
    assert read_file(tmp_path / "demo-cpu.jsonl") == [(entry(), 1)]
    with pytest.raises(ValueError, match="is a folder, not a file"):
        read_file(tmp_path)


def _add(folder: str, seed: int) -> None:
    Ledger(Path(folder)).merge([entry(seed=seed)])


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_add, args=(str(tmp_path), seed)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [made.seed for made in Ledger(tmp_path).entries(Design("demo", "cpu"))] == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------------- cells of somebody else


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """The small experiment, among those that have a name."""
    monkeypatch.setattr(experiments, "find", lambda name: {"small": SMALL}[name])
    return SMALL


def supplied(words: tuple[str, ...] = (), **changes: Any) -> list[tuple[Entry, str]]:
    """What somebody with the same version would send: every cell of the plan."""
    found = []
    of = changes.pop("of", {})
    for i, cell in enumerate(plan(SMALL, "cpu", words)):
        at = {axis: value for axis, value in cell.at.items() if axis != "seed"}
        now = {"run": cell.path.name, "recipe": recipe_hash(cell), "version": kontrast.__version__}
        own = {"settings": Design.of(SMALL, "cpu", words).settings, "at": at, "seed": cell.at["seed"]}
        given = {"experiment": "small", "values": {"knn": 80.0}, "origin": ORIGIN.model_copy(update={**now, **of})}
        found.append((entry(**{**own, **given, **changes}), f"cells.jsonl, line {i + 1}"))
    return found


@pytest.mark.usefixtures("known")
def test_what_this_version_would_have_run_is_taken() -> None:
    check_import(supplied())
    check_import(supplied(("optim.lr=0.2", "temperature=[0.15,0.3]")))
    check_import(supplied(values={"knn": 80.0, "error:knn": 0.4}))
    check_import(untrained())
    check_import(untrained(("optim.lr=0.2", "temperature=[0.15,0.3]")))
    check_import(untrained(values={}))  # raw pixels of large images


def untrained(words: tuple[str, ...] = (), **changes: Any) -> list[tuple[Entry, str]]:
    """The baselines that somebody with the same version would send."""
    found = []
    of = changes.pop("of", {})
    for i, made in enumerate(baselines_of(plan(SMALL, "cpu", words))):
        at = {axis: value for axis, value in made.at.items() if axis != "seed"}
        now = {"run": made.cell.path.name, "recipe": made.hash, "version": kontrast.__version__}
        own = {"settings": Design.of(SMALL, "cpu", words).settings, "at": at, "seed": 0, "baseline": made.name}
        values = {"knn20": 40.0, "error:knn20": 0.5}
        given = {"experiment": "small", "values": values, "origin": ORIGIN.model_copy(update={**now, **of})}
        found.append((entry(**{**own, **given, **changes}), f"cells.jsonl, line {i + 1}"))
    return found


@pytest.mark.usefixtures("known")
def test_a_file_named_in_a_table_is_given_again() -> None:
    cells = supplied(("data=some/photos.npz", "temperature=0.1"))
    assert cells[0][0].at["data"] == "photos"
    check_import(cells, ["data=some/photos.npz"])
    with pytest.raises(ValueError, match="line 1"):
        check_import(cells)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"of": {"version": "0.0.9"}}, "origin.version is 0.0.9, this is"),
        ({"of": {"recipe": "00000000"}}, "origin.recipe is 00000000, and this version runs"),
        ({"settings": {"optim.lr": 0.3}}, "origin.recipe is"),
        ({"settings": {"optim.learning_rate": 0.3}}, "did you mean 'lr'"),
        ({"values": {"knm": 80.0}}, "values.kn"),
        ({"values": {}}, "values.knn: is missing"),
        ({"values": {"knn": 250.0}}, "values.knn is 250; expected a percentage"),
        ({"values": {"knn": 80.0, "error:knm": 0.4}}, "values.error:knm: is no measure"),
        ({"preset": "paper"}, "no preset 'paper'"),
        ({"at": {"data": "digits"}}, "is no cell of small"),
        ({"at": {"data": "digits", "temperature": 0.1, "more": 1}}, "is no cell of small"),
    ],
)
def test_anything_else_is_refused(changes: dict[str, Any], says: str) -> None:
    cells = supplied(**changes)[:1]
    with pytest.raises(ValueError, match=re.escape("cells.jsonl, line 1: ")) as told:
        check_import(cells)
    assert says in str(told.value)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", [RAW, UNTRAINED])
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"of": {"version": "0.0.9"}}, "origin.version is 0.0.9, this is"),
        ({"of": {"recipe": "00000000"}}, "origin.recipe is 00000000, and this version runs"),
        ({"settings": {"data.limit": 150}}, "origin.recipe is"),
        ({"baseline": "pixels"}, "is no baseline of small"),
        ({"at": {"data": "fashion-mini"}}, "origin.recipe is"),
        ({"at": {"data": "digits", "more": 1}}, "is no baseline of small"),
        ({"values": {"knn": 40.0}}, "values.knn20: is missing"),
        ({"values": {"knn20": 40.0, "probe": 40.0}}, "values.probe: is no protocol"),
        ({"values": {"knn20": -1.0}}, "values.knn20 is -1; expected a percentage"),
    ],
)
def test_other_baselines_are_refused(name: str, changes: dict[str, Any], says: str) -> None:
    [cell] = [made for made in untrained(**changes) if made[0].baseline in (name, changes.get("baseline"))][:1]
    with pytest.raises(ValueError, match=re.escape("cells.jsonl, line ")) as told:
        check_import([cell])
    assert says in str(told.value)
