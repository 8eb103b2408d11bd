"""The plan: what the data and the clock decide, what a user decides, and clear words where nothing can be planned."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from kontrast.adaptation.planning import FEWEST_EPOCHS, MOST_EPOCHS, PATIENCE, SHARE, Plan, find_run, plan
from kontrast.data import from_arrays
from kontrast.runs import Run
from tests.adaptation.small import SETTINGS, adapt, fix_speed, frozen_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return frozen_start(tmp_path_factory.mktemp("start"))


def planned(start: Run, data: Any = "digits", *, minutes: float = 5.0, **changes: Any) -> Plan:
    named = {key: changes.pop(key) for key in ("method", "weights", "clock") if key in changes}
    settings = {**SETTINGS, "run.out": "no-such-folder", **changes}
    return plan(start.path, data, minutes=minutes, settings=settings, **named)


def test_time_decides_the_epochs(start: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fix_speed(monkeypatch, seconds=20.0)
    made = planned(start)
    left = 300 - made.request.end
    assert left * SHARE / 20 - 1.5 < (made.recipe.train.epochs or 0) < left * SHARE / 20
    assert planned(start, minutes=600).recipe.train.epochs == MOST_EPOCHS
    assert made.recipe.train.patience == PATIENCE
    assert any(line.startswith(f"train.epochs={made.recipe.train.epochs}: 20") for line in made.reasons)


def test_fewer_rows_where_no_epochs_fit(start: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(recipe: Any, data: Any = None) -> float:
        return (recipe.data.limit or 1437) * 0.1

    monkeypatch.setattr("kontrast.adaptation.planning.seconds_to_train", seconds)
    settings = {key: value for key, value in SETTINGS.items() if key != "data.limit"}
    made = plan(start.path, "digits", minutes=9.0, settings={**settings, "run.out": "no-such-folder"})
    assert 640 <= (made.recipe.data.limit or 0) < 1000
    assert (made.recipe.train.epochs or 0) >= FEWEST_EPOCHS - 1


def test_a_batch_is_as_large_as_memory_allows(start: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fix_speed(monkeypatch)
    assert planned(start).recipe.train.micro_batch is None
    monkeypatch.setattr("kontrast.train.micro_batch.free_memory", lambda device: 200_000)
    assert planned(start).recipe.train.micro_batch in (2, 4, 8, 16, 32)
    assert planned(start, **{"train.micro_batch": 48}).recipe.train.micro_batch == 48


def test_too_little_time_says_how_much(start: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fix_speed(monkeypatch, seconds=1000.0)
    with pytest.raises(ValueError, match=r"minutes=5: must be about 2\d.* here for one epoch of .* Use --minutes 2\d"):
        planned(start)


def test_what_is_given_stays(start: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fix_speed(monkeypatch)
    given = {"train.epochs": 7, "train.patience": 2, "data.validation": 0.2, "method.temperature": 0.3, "optim.lr": 0.5}
    recipe = planned(start, **given).recipe
    assert (recipe.train.epochs, recipe.train.patience, recipe.data.validation) == (7, 2, 0.2)
    assert (recipe.method.options["temperature"], recipe.optim.options["lr"]) == (0.3, 0.5)
    assert planned(start, method="tcl").recipe.method.name == "tcl"
    assert planned(start, **{"method": "simclr"}).recipe.method.name == "simclr"


def test_a_request_finds_its_run(start: Run, tmp_path: Path) -> None:
    run = adapt(start, tmp_path, **{"train.epochs": 1})
    again = planned(start, **{"train.epochs": 1, "run.out": str(tmp_path)})
    assert (again.recipe.hash, again.data) == (run.recipe.hash, None), "nothing is loaded or measured"
    other = planned(start, minutes=7.0, **{"train.epochs": 1, "run.out": str(tmp_path)})
    assert other.request.key != again.request.key
    assert find_run(again.recipe, again.request.key) == run
    assert find_run(again.recipe, "other") is None


def images(counts: list[int]) -> Any:
    labels = torch.tensor(list(itertools.chain.from_iterable([k] * n for k, n in enumerate(counts))))
    draws = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 255, (len(labels), 1, 8, 8), generator=draws, dtype=torch.uint8)
    return from_arrays(pixels, labels)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([5], "must have at least 8 training rows to learn, choose and judge by; got 5"),
        ([20], "must have at least two classes of two rows or more to judge by; got 1 class"),
        (
            [1] * 12,
            "must have at least two classes of two rows or more to judge by; got 0 classes with more than one row",
        ),
        ([19, 1], "got 1 classes with more than one row"),
    ],
)
def test_clear_words(start: Run, counts: list[int], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        planned(start, images(counts), **{"data.limit": None, "data.test_limit": None})


@pytest.mark.parametrize("counts", [[10, 10], [40, 3, 1], [100, 2, 2, 1]])
def test_tiny_and_unbalanced_sets_end_with_a_verdict(start: Run, tmp_path: Path, counts: list[int]) -> None:
    limits = {"data.limit": None, "data.test_limit": None, "train.epochs": 2}
    run = adapt(start, tmp_path, images(counts), **limits)
    assert run.verdict is not None
    assert run.verdict.shipped == "frozen"
    assert "smallest difference" in run.verdict.sentence or "could not have shown any" in run.verdict.sentence


def test_named_encoders_and_runs(start: Run) -> None:
    with pytest.raises(ValueError, match=r"weights=x: must be left out, as .* is a run, which has its own weights"):
        planned(start, weights="x")
    with pytest.raises(ValueError, match=r"method='sc'"):
        planned(start, method="sc")
    with pytest.raises(ValueError, match=r"minutes=0"):
        planned(start, minutes=0)
