"""Evaluation of a run: its protocols, an untrained encoder, and what comes later."""

from __future__ import annotations

import torch

from kontrast.train import resolve
from kontrast.train.evaluation import untrained_subject
from kontrast.train.job import make_job
from tests.train.small import recipe


def test_its_features_are_those_before_the_first_step() -> None:
    made = resolve(recipe("simclr"))
    job = make_job(made, torch.device("cpu"))
    found = untrained_subject(made)
    encoder = job.method.encoder.eval()
    with torch.no_grad():
        for name, tensor in encoder.state_dict().items():
            assert torch.equal(found.encoder.state_dict()[name], tensor), name  # type: ignore[union-attr]
    assert len(found.test) == 100
    other = untrained_subject(resolve(made.override({"seed": 1, "data.limit": None, "data.test_limit": None})))
    assert not torch.equal(found.test, other.test[: len(found.test)]), "another seed has other weights"
