"""Trials: scored on held-out training rows, blind to the test rows, done once, given up, failed, resumed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kontrast.data import load
from kontrast.evaluate import Subject, evaluate
from kontrast.experiments.tune import trials
from kontrast.experiments.tune.trials import Check, Outcome, find_half_way, reason_to_stop, run_trial, without_test_rows
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train import Stopped, Training, make_job, resolve
from tests.train.small import comparable, recipe

QUICK = {"data.validation": 0.2, "run.monitor_every": 0}


def small(out: Path, method: str = "supcon", **changes: Any) -> Recipe:
    return resolve(recipe(method, out, **{**QUICK, **changes}))


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def compared_with(others: Sequence[float]) -> Check:
    return lambda value, rows: reason_to_stop(value, others, rows)


def test_the_score_is_the_protocol_on_the_held_out_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    honest = trials.evaluate_job
    monkeypatch.setattr(trials, "evaluate_job", lambda job: kept.append(job) or honest(job))
    done = run_trial(small(tmp_path))
    (job,) = kept
    parts = job.train, job.validation
    assert [len(part) for part in parts] == [160, 40]
    x = [job.method.encoder.eval()(_normalised(part.inputs.read(torch.arange(len(part))), job)) for part in parts]
    subject = Subject.from_features(x[0].detach(), parts[0].labels, x[1].detach(), parts[1].labels)
    assert done.score == evaluate(subject, "knn20").value
    result = json.loads((done.folder / "result.json").read_text())
    assert result["results"][0]["split"] == "held out of the training rows"
    assert (result["results"][0]["train_rows"], result["results"][0]["test_rows"]) == (160, 40)


def _normalised(x: torch.Tensor, job: Any) -> torch.Tensor:
    mean, std = (torch.tensor(values)[:, None, None] for values in (job.data.mean, job.data.std))
    return (x.float() / 255 - mean) / std if x.dtype == torch.uint8 else (x - mean) / std


@pytest.mark.parametrize("monitored", [0, None], ids=["unwatched", "monitored"])
def test_what_the_test_rows_are_changes_nothing(tmp_path: Path, monitored: int | None) -> None:
    """The same training rows beside its test rows, beside others with other labels, and beside none."""
    digits = load("digits", limit=200, test_limit=50)
    assert digits.test is not None
    x, y = digits.train.inputs.read(torch.arange(200)).flatten(1).float().numpy(), digits.train.labels
    test = digits.test.inputs.read(torch.arange(50)).flatten(1).float().numpy()
    assert y is not None
    versions: list[dict[str, Any]] = [
        {"x_test": test, "y_test": digits.test.labels},
        {"x_test": test[::-1] * 1000, "y_test": np.zeros(50, dtype=np.int64)},
        {},
    ]
    found = []
    for i, version in enumerate(versions):
        np.savez(tmp_path / "rows.npz", x_train=x, y_train=y, **version)
        changes = {"data": {"name": str(tmp_path / "rows.npz"), "validation": 0.2}, "augment": ["vector-noise"] * 2}
        trial = small(tmp_path / str(i), **{**changes, "run.monitor_every": monitored})
        done = run_trial(trial)
        assert done.state == "done"
        found.append((done.score, comparable(Run.of(trial).metrics_file), (done.folder / "result.json").read_text()))
    assert found[1:] == found[:1] * 2


def test_the_check_could_see_a_look_at_the_test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left as they are, the test rows are what the score is taken on."""
    blind = run_trial(small(tmp_path / "blind")).folder
    monkeypatch.setattr(trials, "without_test_rows", lambda job: job)
    seeing = run_trial(small(tmp_path / "seeing")).folder
    rows = [json.loads((path / "result.json").read_text())["results"][0]["test_rows"] for path in (blind, seeing)]
    assert rows == [40, 100]


def test_unlabelled_rows_are_scored_with_the_labelled_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = {"x_train": rng.normal(size=(60, 8)), "x_unlabelled": rng.normal(size=(90, 8))}
    np.savez(tmp_path / "rows.npz", y_train=np.arange(60) % 3, **x)
    data = {"name": str(tmp_path / "rows.npz"), "split": "unlabelled", "validation": 0.2}
    trial = small(tmp_path, "simclr", data=data, augment=["vector-noise"] * 2)
    job = without_test_rows(make_job(trial, torch.device("cpu")))
    assert job.data.test is not None
    assert (len(job.train), len(job.data.train), len(job.data.test)) == (72, 48, 12)
    done = run_trial(trial)
    assert done.accuracy
    assert done.score is not None


def test_without_labels_the_score_is_minus_a_loss(tmp_path: Path) -> None:
    done = run_trial(small(tmp_path, "simclr", **{"data.labelled": False}))
    assert (done.state, done.accuracy, done.by) == ("done", False, "minus InfoNCE, τ = 0.1, between two views")
    last = [line["validation"] for line in Run(done.folder).metrics() if "validation" in line][-1]
    assert done.score == last < 0


# ------------------------------------------------------------------------------------------------ once, and again


def test_a_finished_trial_is_read_and_keeps_no_checkpoint(tmp_path: Path) -> None:
    done = run_trial(small(tmp_path))
    before = files(tmp_path)
    assert run_trial(small(tmp_path), check=compared_with([1.0, 1.0, 1.0])) == done, "what is finished is not given up"
    assert files(tmp_path) == before
    assert not (done.folder / "checkpoints").exists()


def test_a_hopeless_trial_is_given_up_half_way_and_may_go_on(tmp_path: Path) -> None:
    trial = small(tmp_path)
    given_up = run_trial(trial, check=compared_with([1.0, 1.0]))
    assert (given_up.state, given_up.score) == ("stopped early", None)
    assert "below the median of 2 trials before it, 1.0000" in given_up.note
    steps = [line["step"] for line in Run(given_up.folder).metrics()]
    assert max(steps) == 10, "2 of 3 epochs of 5 steps"
    before = files(tmp_path)
    assert run_trial(trial, check=compared_with([1.0, 1.0])) == given_up
    assert files(tmp_path) == before
    went_on = run_trial(trial, check=compared_with([0.1, 0.1]))
    straight = run_trial(small(tmp_path / "straight"))
    assert went_on == Outcome("done", given_up.folder, straight.score, given_up.half_way, by=straight.by)
    assert comparable(given_up.folder / "metrics.jsonl") == comparable(straight.folder / "metrics.jsonl")


def test_one_epoch_has_no_half(tmp_path: Path) -> None:
    done = run_trial(small(tmp_path, **{"train.epochs": 1}), check=compared_with([1.0, 1.0]))
    assert (done.state, done.half_way) == ("done", None)


def test_what_diverges_fails_once(tmp_path: Path) -> None:
    trial = small(tmp_path, "ce", **{"optim.lr": 1e30, "schedule": "constant", "augment": ["none"]})
    failed = run_trial(trial)
    assert (failed.state, failed.score) == ("failed", None)
    assert failed.note.startswith("NonFiniteLoss: the loss is ")
    before = files(tmp_path)
    assert run_trial(trial) == failed
    assert files(tmp_path) == before


def test_what_failed_otherwise_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(job: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(trials, "evaluate_job", full)
        failed = run_trial(small(tmp_path))
    assert (failed.state, failed.note) == ("failed", "OSError: no space left on device")
    assert run_trial(small(tmp_path)).state == "done"


def test_an_error_of_the_recipe_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"train\.batch_size=999"):
        run_trial(small(tmp_path, **{"train.batch_size": 999}))


def test_an_interrupted_trial_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the validation half-way, past which the rule has no say any more."""
    honest = Training._step

    def stopped(training: Training, batch: Any) -> Any:
        if training.state.step == 12:
            training.save(None)
            raise Stopped(15, 12)
        return honest(training, batch)

    trial = small(tmp_path, **{"run.checkpoint_every": 4})
    with monkeypatch.context() as patched:
        patched.setattr(Training, "_step", stopped)
        with pytest.raises(Stopped):
            run_trial(trial)
    assert Run.of(trial).status == "interrupted"
    done = run_trial(trial)
    straight = run_trial(small(tmp_path / "straight", **{"run.checkpoint_every": 4}))
    assert (done.score, done.half_way) == (straight.score, straight.half_way)
    assert comparable(done.folder / "metrics.jsonl") == comparable(straight.folder / "metrics.jsonl")


# ------------------------------------------------------------------------------------------------ the rule


def test_nothing_is_hopeless_before_there_are_two_to_compare_with() -> None:
    assert reason_to_stop(0.0, [], 1000) is None
    assert reason_to_stop(0.0, [0.9], 1000) is None
    assert reason_to_stop(0.0, [0.9, 0.9], 1000)


@pytest.mark.parametrize("rows", [100, 1000, 2048])
def test_the_margin_is_three_errors_of_a_difference(rows: int) -> None:
    p = (0.8 * rows + 2) / (rows + 4)
    margin = 3 * math.sqrt(2 * p * (1 - p) / rows)
    assert reason_to_stop(0.8 - margin + 1e-9, [0.7, 0.8, 0.9], rows) is None
    assert reason_to_stop(0.8 - margin - 1e-9, [0.7, 0.8, 0.9], rows)


def test_a_perfect_median_still_has_a_margin() -> None:
    assert reason_to_stop(0.99, [1.0, 1.0], 200) is None


def test_without_an_accuracy_it_is_the_plain_median() -> None:
    assert reason_to_stop(-4.01, [-4.0, -5.0, -3.0], None)
    assert reason_to_stop(-4.0, [-4.0, -5.0, -3.0], None) is None


def test_half_way_is_the_first_validation_from_half_on_and_never_the_last() -> None:
    lines = [{"step": step, "validation": step / 100} for step in (6, 12, 18)]
    assert find_half_way(lines, 18) == (12, 0.12)
    assert find_half_way(lines, 12) == (6, 0.06)
    assert find_half_way(lines[:1], 18) is None
    assert find_half_way([{"step": 18, "validation": 0.9}], 18) is None
    assert find_half_way([{"step": 12, "loss": 1.0}], 18) is None
    assert find_half_way([{"step": 12, "validation": None}], 18) is None, "what was no number"
