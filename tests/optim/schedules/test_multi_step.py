"""The multi-step schedule against torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kontrast import optim


def test_eq_1_is_torchs_epoch_by_epoch() -> None:
    """Both multiply by 0.1 a few times: 1e-12 is rounding."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones=[160, 190], gamma=0.1)
    ours = optim.schedule("multi-step", total_steps=200 * 3, steps_per_epoch=3, milestones=[190, 160])
    for epoch in range(200):
        for i in range(3):
            assert ours(3 * epoch + i) == pytest.approx(optimiser.param_groups[0]["lr"], rel=1e-12)
        optimiser.step()
        theirs.step()


def test_a_milestone_within_an_epoch() -> None:
    ours = optim.schedule("multi-step", total_steps=20, steps_per_epoch=10, milestones=[0.5], factor=0.5)
    assert [ours(i) for i in (4, 5, 19)] == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("wrong", [(), "160", 160, [0], [-5]])
def test_milestones_are_epochs_after_the_start(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"milestones.*must be"):
        optim.schedule("multi-step", total_steps=20, steps_per_epoch=10, milestones=wrong)
