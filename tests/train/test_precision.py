"""Mixed precision."""

from __future__ import annotations

import pytest
import torch

from kontrast.train.precision import Precision

CPU = torch.device("cpu")


def test_float32_changes_nothing() -> None:
    precision = Precision("float32", CPU)
    with precision.autocast():
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.float32
    assert precision.state_dict() == {}
    precision.load_state_dict({})


def test_bfloat16_multiplies_in_bfloat16() -> None:
    with Precision("bfloat16", CPU).autocast():
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.bfloat16


def test_step_is_the_optimisers() -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimiser = torch.optim.SGD([weight], lr=0.5)
    precision = Precision("float32", CPU)
    precision.scale((2 * weight).sum()).backward()
    precision.step(optimiser)
    assert float(weight.detach()) == 0.0


def test_errors() -> None:
    with pytest.raises(ValueError, match="float16 needs a GPU"):
        Precision("float16", CPU)
    with pytest.raises(ValueError, match="expected float32, bfloat16 or float16"):
        Precision("half", CPU)
