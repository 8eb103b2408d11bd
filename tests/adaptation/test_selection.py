"""What is recorded of each epoch: kNN as the loop validates, and the same bits after a resume."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast.adaptation.planning import plan
from kontrast.adaptation.selection import Selection, measure
from kontrast.evaluate import Subject, evaluate
from kontrast.runs import Run
from kontrast.train import Job, Training, make_job
from kontrast.train.watching import Validation
from tests.adaptation.small import SETTINGS, frozen_start


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("start")
    settings = {**SETTINGS, "train.epochs": 2, "run.out": str(folder)}
    return make_job(plan(frozen_start(folder).path, "digits", settings=settings).recipe, torch.device("cpu"))


def selection(job: Job, folder: Path) -> Selection:
    return Selection(job, Run(folder), Training(job, Run(folder)).state)


def test_knn_is_the_validation_of_the_loop(job: Job, tmp_path: Path) -> None:
    ours = selection(job, tmp_path)
    ours.state.step = 5
    assert ours() == Validation(job)()
    assert ours.steps == [5]


def test_each_measure_is_its_protocol(job: Job, tmp_path: Path) -> None:
    draw = torch.Generator().manual_seed(0)
    labels, others = torch.randint(3, (60,), generator=draw), torch.randint(4, (40,), generator=draw)
    x, y = (torch.randn(len(z), 8, generator=draw) + z[:, None] for z in (labels, others))
    right = measure(y, others, x, labels)
    subject = Subject(labels, others, num_classes=4, features=(x, y))
    for name, options in {"knn20": {}, "logistic": {"iterations": 100}, "retrieval": {"references": "train"}}.items():
        result = evaluate(subject, name, **options)
        known = others < 3 if name == "retrieval" else torch.ones(40).bool()  # queries without a reference are left out
        assert torch.equal(right[name][known], result.predictions == others[known]), name
        assert not right[name][others == 3].any(), "no reference is of this class"


def test_records_are_kept_up_to_the_checkpoint(job: Job, tmp_path: Path) -> None:
    first = selection(job, tmp_path)
    frozen = first.record_frozen()
    for step in (5, 10, 15):
        first.state.step = step
        first()
    resumed = Selection(job, Run(tmp_path), first.state)
    assert resumed.steps == [5, 10, 15]
    first.state.step = 10
    resumed = Selection(job, Run(tmp_path), first.state)
    assert resumed.steps == [5, 10], "a record of a step after the checkpoint is made again"
    assert all(torch.equal(resumed.records[0][name], frozen[name]) for name in frozen)
    first.run.selection_file.unlink()
    with pytest.raises(
        ValueError, match=r"selection\.npz lacks the measurements of step 0; put back a copy, or remove"
    ):
        Selection(job, Run(tmp_path), first.state)
