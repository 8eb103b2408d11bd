"""Monitors and validation look at fixed rows, and leave no trace."""

from __future__ import annotations

import pytest
import torch

from kontrast.train.job import Job, make_job
from kontrast.train.resolving import resolve
from kontrast.train.watching import HELD, Validation, Watch, features, fixed_views
from tests.train.small import recipe


def job(method: str = "tcl", **changes: object) -> Job:
    return make_job(resolve(recipe(method, **changes)), torch.device("cpu"))


def test_what_runs_depends_on_labels_views_and_the_loss() -> None:
    assert Watch(job("tcl"), None).names == [
        "effective-rank",
        "entropy",
        "gradient-response",
        "knn",
        "similarity",
        "tolerance",
        "uniformity",
    ]
    assert "gradient-response" not in Watch(job("simclr"), None).names
    assert Watch(job("simclr", **{"data.labelled": False}), None).names == [
        "effective-rank",
        "entropy",
        "similarity",
        "uniformity",
    ]
    assert Watch(job("instance"), ["uniformity"]).names == ["uniformity"]


def test_a_monitor_that_cannot_run_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'gradient-response' cannot run on this method"):
        Watch(job("simclr"), ["gradient-response"])


def test_the_same_network_gives_the_same_values_and_is_left_as_it_was() -> None:
    made = job()
    made.method.train()
    before = {name: value.clone() for name, value in made.method.state_dict().items()}
    watch = Watch(made, None)
    assert watch() == watch()
    assert all(torch.equal(before[name], value) for name, value in made.method.state_dict().items())
    assert all(module.training for module in made.method.modules())


def test_held_out_rows_are_the_validations_if_there_are_some_else_the_tests() -> None:
    made = job(**{"data.validation": 0.2})
    assert len(Watch(made, None).held) == 40
    assert len(Watch(job(), None).held) == min(HELD, 100)


def test_views_are_fixed_and_enough() -> None:
    made = job("instance")
    assert torch.equal(fixed_views(made, made.train), fixed_views(made, made.train))
    assert fixed_views(made, made.train).shape == (200, 1, 1, 8, 8)
    two = fixed_views(made, made.train, least=2)
    assert two.shape == (200, 2, 1, 8, 8)
    assert not torch.equal(two[:, 0], two[:, 1])


def test_validation_is_knn_of_the_held_out_part() -> None:
    made = job(**{"data.validation": 0.2})
    value = Validation(made)()
    held, reference = features(made, made.validation), features(made, made.train)
    unit = torch.nn.functional.normalize
    near, rows = (unit(held, dim=1) @ unit(reference, dim=1).T).topk(20)
    votes = torch.zeros(40, 10).scatter_add_(1, made.train.labels[rows], (near / 0.07).exp())
    assert abs(value - float((votes.argmax(1) == made.validation.labels).float().mean())) < 1e-6
