"""Whether and when the training labels are fitted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast import data, evaluate
from kontrast.train import load, run_recipe
from kontrast.train.fitting import Fit
from kontrast.train.job import make_job
from kontrast.train.resolving import resolve
from tests.train.small import recipe, same_runs

PLAIN = {"augment.views": [{"name": "none"}], "head": "none", "train.epochs": 40, "train.fit_every": 6}


@pytest.mark.parametrize("method", ["ce", "sc"])
def test_stops_at_the_step_that_fits_and_not_before(method: str, tmp_path: Path) -> None:
    run = run_recipe(recipe(method, tmp_path, **PLAIN))
    shares = {line["step"]: line["fitted"] for line in run.metrics() if "fitted" in line}
    at = run.result["fitted_at"]
    assert at is not None
    assert at < 240
    assert shares[at] == 1.0
    assert list(shares) == list(range(6, at + 1, 6))
    assert all(share < 1.0 for step, share in shares.items() if step < at)
    assert run.result["steps"] == at


def test_a_run_that_does_not_fit_is_censored(tmp_path: Path) -> None:
    run = run_recipe(recipe("ce", tmp_path, **{**PLAIN, "train.epochs": 2, "data.noise": 1.0}))
    assert run.result["fitted_at"] is None
    assert run.result["steps"] == 12


def test_the_share_is_that_of_the_own_classifier() -> None:
    job = make_job(resolve(recipe("ce", **PLAIN)), torch.device("cpu"))
    digits = data.load("digits", limit=200, test_limit=100)
    h = evaluate.extract(job.method.encoder, digits.train, mean=digits.mean, std=digits.std)
    right = (h @ job.method.loss.weight.detach().T).argmax(1) == digits.train.labels
    assert Fit(job)() == pytest.approx(float(right.double().mean()), abs=1e-9)
    assert job.method.training


def test_goes_on_after_the_end_as_fitted(tmp_path: Path) -> None:
    """A run that had fitted before it was killed in the evaluation does not train further."""
    whole = run_recipe(recipe("ce", tmp_path / "a", **PLAIN))
    again = run_recipe(recipe("ce", tmp_path / "b", **PLAIN))
    (again.path / "result.json").unlink()
    (again.path / "run.json").unlink()
    again = run_recipe(recipe("ce", tmp_path / "b", **PLAIN))
    same_runs(whole.path, again.path)
    assert load(again) is not None
