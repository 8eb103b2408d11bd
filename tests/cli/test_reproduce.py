"""``kontrast reproduce``: a small table, through the command line and real worker processes."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kontrast import experiments
from kontrast.cli._completion import complete_experiment
from kontrast.experiments.sweep import Sweep
from kontrast.recipes import published
from tests.cli.asking import Answer, ask, run_cells_here

Asking = Callable[..., Answer]


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asking:
    """The command line, in this process."""
    return functools.partial(ask, monkeypatch, capsys)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    run_cells_here(monkeypatch)


FEW = ["wl-table-1", "temperature=[0.1,1.0]", "--preset", "smoke", "--seeds", "2"]


def test_runs_resumes_and_shows(asking: Asking, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path)]
    status, text, told = asking("reproduce", *FEW, "--jobs", "1", *out)  # its worker is a process
    assert status == 0, told
    assert "4 runs, 4 to do" in told
    assert told.count("done in") == 6, "four runs and two baselines"
    assert "baseline=raw pixels" in told
    assert "rises, then falls" in text
    for temperature in (0.1, 1.0):  # the paper has no Fashion-MNIST
        assert f"{published.WANG_LIU['cifar10']['ordinary'][temperature]:.2f}" not in text
    sweep = Sweep.of(experiments.find("wl-table-1"), "smoke", [FEW[1]], seeds=2, out=tmp_path)
    assert sweep.missing == []
    status, text, told = asking("reproduce", *FEW, *out, "--json")
    assert status == 0
    assert "4 runs, 0 to do" in told
    summary = json.loads(text)
    assert summary["status"] == {"done": 4}
    assert summary["seeds"] == [0, 1]


@pytest.mark.usefixtures("in_this_process")
def test_a_failed_cell_is_told_and_does_not_stop_the_rest(asking: Asking, tmp_path: Path) -> None:
    few = ["wl-table-1", "temperature=[0.1,-1.0]", "--preset", "smoke", "--seeds", "1", "--out", str(tmp_path)]
    status, text, told = asking("reproduce", *few)
    assert status == 1
    assert "failed" in told
    assert "temperature" in told
    assert "1 done" in text
    assert "1 failed" in text


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["train.batch_size=100000"], "every run of wl-table-1 was refused: ValueError: train.batch_size=100000"),
        (["data=nowhere.npz"], "there is no file nowhere.npz"),
        (["optim.learning_rate=1"], "did you mean 'lr'?"),
    ],
)
def test_a_refused_sweep_leaves_nothing(asking: Asking, tmp_path: Path, settings: list[str], says: str) -> None:
    few = ["wl-table-1", "temperature=0.1", *settings, "--preset", "smoke", "--seeds", "1"]
    status, text, told = asking("reproduce", *few, "--out", str(tmp_path / "runs"))
    assert (status, text) == (2, "")
    assert says in told
    assert list(tmp_path.iterdir()) == []


def test_dry_run_shows_a_damaged_run_and_goes_on(asking: Asking, tmp_path: Path) -> None:
    sweep = Sweep.of(experiments.find("graf-toy"), "smoke", seeds=1, out=tmp_path)
    damaged = sweep.cells[0].path
    damaged.mkdir(parents=True)
    (damaged / "run.json").write_text("{", encoding="utf-8")
    status, text, told = asking(
        "reproduce", "graf-toy", "--preset", "smoke", "--seeds", "1", "--dry-run", "--out", str(tmp_path)
    )
    assert status == 0, told
    assert text.count("unusable") == 1
    assert "run.json" in text
    assert text.count("missing ") == len(sweep.cells) - 1


def test_dry_run_plans_and_estimates(asking: Asking, tmp_path: Path) -> None:
    status, text, _ = asking("reproduce", *FEW, "--dry-run", "--out", str(tmp_path))
    assert status == 0
    assert text.count("missing") == 4
    assert "4 runs, 4 to do; about " in text
    assert list(tmp_path.iterdir()) == []
    nowhere = ["data=svhn", f"run.data_root={tmp_path / 'none'}", "temperature=0.1", "--preset", "paper"]
    status, text, _ = asking("reproduce", "wl-table-1", *nowhere, "--dry-run", "--out", str(tmp_path))
    assert status == 0
    assert "no estimate" in text


def test_the_papers_own_table_is_judged(asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, text, _ = asking("reproduce", "wl-table-2", "--judge-paper")
    assert status == 0
    assert text.count("holds  data=") == 4
    assert "error from the residuals of the fit" in " ".join(text.split())
    status, text, _ = asking("reproduce", "wl-table-2", "--judge-paper", "--json")
    assert [found["verdict"] for found in json.loads(text)["claims"][0]["findings"]] == ["holds"] * 4
    _, text, _ = asking("reproduce", "graf-toy", "--judge-paper")
    assert "the paper prints no numbers that this claim reads" in text
    assert list(tmp_path.iterdir()) == []


def test_only_read_runs_nothing(asking: Asking, tmp_path: Path) -> None:
    status, text, _ = asking("reproduce", *FEW, "--only-read", "--out", str(tmp_path))
    assert status == 0
    assert "4 missing" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["wl-table-3"], "did you mean 'wl-table-"),
        (["wl-table-1", "train.epoch=1"], "did you mean 'epochs'"),
        (["wl-table-1", "--seeds", "0"], "must be 1 or more"),
        (["graf-toy", "optim.lr=1"], "no axis"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], message: str, asking: Asking, tmp_path: Path) -> None:
    status, _, told = asking("reproduce", *words, "--out", str(tmp_path))
    assert status == 2
    assert message in " ".join(told.split())


def test_names_are_completed_and_listed(asking: Asking) -> None:
    assert complete_experiment("wl-table") == ["wl-table-1", "wl-table-2"]
    status, text, _ = asking("list", "experiments")
    assert status == 0
    assert all(name in text for name in experiments.names())
