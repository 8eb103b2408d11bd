"""A whole adaptation: what ships, why, and the same verdict however often it was killed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import kontrast
from kontrast.adaptation import Adaptation, session
from kontrast.adaptation.planning import plan
from kontrast.data import load
from kontrast.runs import Run
from kontrast.train import Stopped, Training
from tests.adaptation.small import SETTINGS, adapt, frozen_start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return frozen_start(tmp_path_factory.mktemp("start"))


EPOCHS = {"train.epochs": 12}
KILLED = {"train.epochs": 3, "run.checkpoint_every": 4}


@pytest.fixture(scope="module")
def adapted(start: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return adapt(start, tmp_path_factory.mktemp("adapted"), **EPOCHS)


@pytest.fixture(scope="module")
def whole(start: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return adapt(start, tmp_path_factory.mktemp("whole"), **KILLED)


def same_weights(one: Run, other: Run) -> bool:
    a, b = load_file(one.weights_file), load_file(other.weights_file)
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_better_encoder_ships(start: Run, adapted: Run) -> None:
    run = adapted
    verdict = run.verdict
    assert verdict is not None
    assert (verdict.shipped, verdict.status) == ("adapted", "better")
    assert not same_weights(start, run)
    knn = verdict.measures[0]
    assert (knn.name, knn.low > 0, knn.p < 0.025) == ("knn20", True, True)
    held = round(0.33 * 50) * 10  # of each of ten classes
    assert verdict.rows == {"learned": 500 - held, "chose": held, "cross-fitted": knn.rows - 200, "unseen": 200}
    assert "shipped the adapted encoder" in verdict.sentence
    card = json.loads(run.card_file.read_text())
    assert card["verdict"]["sentence"] == verdict.sentence == run.result["verdict"]["sentence"]
    page = run.report_file.read_text(encoding="utf-8")
    assert verdict.sentence[1:] in page
    assert "Verdict" in page
    rules = {finding.rule: finding for finding in run.findings or []}
    assert rules["worse-than-start"].status == "ok"
    # What ships is what is evaluated and loaded: the nearest training rows of the verdict are a part of these.
    assert run.value("knn20") == pytest.approx(knn.adapted, abs=0.1)
    assert run.encoder()(torch.zeros(1, 1, 8, 8)).shape == (1, 16)
    assert adapt(start, run.path.parent, **EPOCHS).path == run.path, "done: found again"


def test_what_is_worse_is_not_shipped(adapted: Run, tmp_path: Path) -> None:
    run = adapt(adapted, tmp_path, **{"optim.lr": 30.0, "train.epochs": 2, "data.limit": 60, "optim.name": "sgd"})
    verdict = run.verdict
    assert verdict is not None
    assert verdict.shipped == "frozen"
    assert verdict.status in ("not better", "diverged")
    assert same_weights(adapted, run)
    assert "kept the frozen encoder" in verdict.sentence


def test_a_loss_that_is_no_number_keeps_the_frozen_encoder(
    start: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Training._step

    def diverge(self: Training, views: Any) -> torch.Tensor:
        if self.state.step == 6:
            for parameter in self.job.method.parameters():
                parameter.data.fill_(torch.nan)
        return step(self, views)

    monkeypatch.setattr(Training, "_step", diverge)
    run = adapt(start, tmp_path, **{"train.epochs": 4})
    verdict = run.verdict
    assert verdict is not None
    assert (verdict.shipped, verdict.status, run.status) == ("frozen", "diverged", "done")
    assert "the loss is nan at step 7" in verdict.sentence
    assert same_weights(start, run)
    assert run.value("knn20") > 0.1
    assert run.report_file.exists()


def test_without_labels_nothing_is_judged(start: Run, tmp_path: Path) -> None:
    images = load("digits", limit=200, labelled=False)
    run = adapt(start, tmp_path, images, **{"train.epochs": 2, "data.limit": None})
    verdict = run.verdict
    assert verdict is not None
    assert (verdict.shipped, verdict.status, verdict.measures) == ("frozen", "not judged", [])
    assert same_weights(start, run)
    assert run.recipe.method.name == "sce"
    accepted = adapt(start, tmp_path, images, accept=True, **{"train.epochs": 2, "data.limit": None})
    assert accepted.path == run.path, "the same training"
    assert accepted.verdict is not None
    assert (accepted.verdict.shipped, accepted.verdict.status) == ("adapted", "accepted")
    assert not same_weights(start, accepted)
    again = adapt(start, tmp_path, images, **{"train.epochs": 2, "data.limit": None})
    assert again.verdict == accepted.verdict, "what was accepted stays"


@pytest.mark.parametrize("killed", [5, 11, None])
def test_killed_and_called_again_it_has_the_same_verdict(
    start: Run, whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: int | None
) -> None:
    """In the first epoch, after a validation that no checkpoint has, and while it is judged."""
    step = Training._step

    def kill(self: Training, views: Any) -> torch.Tensor:
        if self.state.step == killed:
            raise KeyboardInterrupt
        return step(self, views)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "_step", kill)
        if killed is None:
            patch.setattr(session, "export", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            adapt(start, tmp_path / "parts", **KILLED)
    (folder,) = (tmp_path / "parts").iterdir()
    assert Run(folder).verdict is None
    with pytest.raises(ValueError, match=r"is an unfinished run of `kontrast adapt`, which alone can judge it"):
        kontrast.run(folder)
    parts = adapt(start, tmp_path / "parts", **KILLED)
    assert parts.path == folder
    assert parts.verdict == whole.verdict
    assert same_weights(whole, parts)
    first, second = whole.read_selection(), parts.read_selection()
    assert all((first[name] == second[name]).all() for name in first)


def test_the_recipe_repeats_the_training(adapted: Run, tmp_path: Path) -> None:
    run = adapted
    again = kontrast.run(run.path / "recipe.yaml", run={"out": str(tmp_path / "again"), "progress": False})
    assert again.path.name == run.path.name
    assert same_weights(run, again)
    assert again.verdict is None


def test_the_clock_ends_the_training(start: Run, tmp_path: Path) -> None:
    now = [0.0]

    def tick() -> float:
        now[0] += 1.0
        return now[0]

    settings = {**SETTINGS, "train.epochs": 50, "train.patience": 50, "run.out": str(tmp_path)}
    planned = plan(start.path, "digits", minutes=2.0, settings=settings, clock=tick)
    assert planned.request.deadline < 120
    one = Adaptation(planned.recipe, planned.data, request=planned.request)
    with one.open():
        one.train()
        assert one.training is not None
        stopped = one.training.state
        assert stopped.step < 50 * one.training.job.steps_per_epoch
        assert "leave no time for another epoch" in (stopped.reason or "")
        assert now[0] < planned.request.deadline + 3
        one.evaluate()
        assert one.verdict is not None
        one.analyse()
        one.finish()


def test_no_time_for_an_epoch_keeps_the_frozen_encoder(start: Run, tmp_path: Path) -> None:
    settings = {**SETTINGS, "train.epochs": 5, "run.out": str(tmp_path)}
    planned = plan(start.path, "digits", minutes=2.0, settings=settings)
    request = session.Request(key=planned.request.key, minutes=2.0, deadline=-1.0)
    one = Adaptation(planned.recipe, planned.data, request=request)
    with one.open():
        one.train()
        one.evaluate()
        assert one.verdict is not None
        assert (one.verdict.status, one.verdict.shipped) == ("not trained", "frozen")
        one.analyse()
        one.finish()
    assert same_weights(start, one.run)


def test_a_signal_saves_and_stops(start: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Training._step

    def stop(self: Training, views: Any) -> torch.Tensor:
        if self.state.step == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, views)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "_step", stop)
        with pytest.raises(Stopped):
            adapt(start, tmp_path, **{"train.epochs": 2})
    (folder,) = tmp_path.iterdir()
    assert Run(folder).status == "interrupted"
    assert adapt(start, tmp_path, **{"train.epochs": 2}).verdict is not None
