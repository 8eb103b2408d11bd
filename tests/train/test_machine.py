"""The machine as run.json has it."""

from __future__ import annotations

import json

import torch

from kontrast.runs import State
from kontrast.train.machine import machine


def test_machine_fits_the_schema() -> None:
    record = machine(torch.device("cpu"))
    assert json.loads(json.dumps(record)) == record
    assert State.model_validate(record).versions["torch"] == torch.__version__
