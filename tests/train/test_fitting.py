"""Whether and when the training labels are fitted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from kontrast import data, evaluate
from kontrast.pipeline import run_recipe
from kontrast.sphere import unit
from kontrast.train import load
from kontrast.train.fitting import PENALTY, SCALE, Fit, fit_linear, share_predicted
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


@pytest.mark.parametrize("method", ["ce", "sc"])
def test_the_criterion_is_one_for_every_method(method: str) -> None:
    """A linear classifier fitted anew on unit features: scikit-learn's has the same share of rows right, but for two.

    Both minimise the same convex loss; where classes overlap, rows at the boundary may fall either way.
    """
    job = make_job(resolve(recipe(method, **PLAIN)), torch.device("cpu"))
    digits = data.load("digits", limit=200, test_limit=100)
    h = unit(evaluate.extract(job.method.encoder, digits.train, mean=digits.mean, std=digits.std))
    labels = digits.train.labels
    assert labels is not None
    penalty = 1 / (2 * 200 * PENALTY / SCALE**2)
    other = LogisticRegression(C=penalty, fit_intercept=False, max_iter=100).fit(h.numpy(), labels.numpy())
    share = Fit(job)()["fitted"]
    assert share == pytest.approx(other.score(h.numpy(), labels.numpy()), abs=2.1 / 200)
    assert job.method.training


def test_the_head_finds_what_can_be_told_apart() -> None:
    """Random labels: more rows than directions cannot be fitted, as many as directions can."""
    draw = torch.Generator().manual_seed(0)
    z, labels = unit(torch.randn(400, 20, generator=draw)), torch.randint(4, (400,), generator=draw)
    assert share_predicted(z, labels, fit_linear(z, labels, 4)) < 0.9
    assert share_predicted(z[:20], labels[:20], fit_linear(z[:20], labels[:20], 4)) == 1.0
    torch.testing.assert_close(fit_linear(z, labels, 4), fit_linear(z, labels, 4), rtol=0, atol=0)


def test_interaction_is_logged_for_sc_and_not_for_ce(tmp_path: Path) -> None:
    short = {**PLAIN, "train.epochs": 1}
    named = {}
    for method in ("ce", "sc"):
        run = run_recipe(recipe(method, tmp_path / method, **short))
        named[method] = {key for line in run.metrics() for key in line if key.startswith("interaction/")}
    assert named["ce"] == set()
    assert {"interaction/share_2", "interaction/net_4", "interaction/agreement_8"} <= named["sc"]


def test_goes_on_after_the_end_as_fitted(tmp_path: Path) -> None:
    """A run that had fitted before it was killed in the evaluation does not train further."""
    whole = run_recipe(recipe("ce", tmp_path / "a", **PLAIN))
    again = run_recipe(recipe("ce", tmp_path / "b", **PLAIN))
    (again.path / "result.json").unlink()
    (again.path / "run.json").unlink()
    again = run_recipe(recipe("ce", tmp_path / "b", **PLAIN))
    same_runs(whole.path, again.path)
    assert load(again) is not None
