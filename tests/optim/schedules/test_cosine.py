"""The cosine schedule against torch's and against tcl's published loop."""

from __future__ import annotations

import math

import pytest
import torch

from kontrast import optim


def test_eq_1_is_torchs() -> None:
    """Torch's goes from step to step; over 40 steps its rounding adds up to less than 1e-12."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=40, eta_min=0.2)
    ours = optim.schedule("cosine", total_steps=40, steps_per_epoch=7, final=0.1)
    for step in range(40):
        assert math.isclose(optimiser.param_groups[0]["lr"], 2.0 * ours(step), rel_tol=1e-12)
        optimiser.step()
        theirs.step()


def test_eq_2_holds_the_rate_through_an_epoch() -> None:
    ours = optim.schedule("cosine", total_steps=40, steps_per_epoch=10, per="epoch")
    assert [ours(10 * e) for e in range(4)] == [(1 + math.cos(math.pi * e / 4)) / 2 for e in range(4)]
    assert all(len({ours(10 * e + i) for i in range(10)}) == 1 for e in range(4))


def test_eq_3_is_tcls_published_loop() -> None:
    """The loop as FACTS has it: train an epoch, then set the rate from that epoch's number."""
    base, epochs, per_epoch = 0.1, 20, 3
    end = base * 0.1**3
    seen, rate = [], base
    for epoch in range(epochs):
        seen += [rate] * per_epoch
        rate = end + (base - end) * (1 + math.cos(math.pi * epoch / epochs)) / 2
    ours = optim.schedule(
        "cosine", total_steps=epochs * per_epoch, steps_per_epoch=per_epoch, per="epoch", late=True, final=0.1**3
    )
    assert [base * ours(i) for i in range(epochs * per_epoch)] == pytest.approx(seen, rel=1e-12)
    assert ours(0) == ours(2 * per_epoch - 1) == 1.0 > ours(2 * per_epoch)


def test_a_last_epoch_cut_short_counts_as_one() -> None:
    ours = optim.schedule("cosine", total_steps=25, steps_per_epoch=10, per="epoch")
    assert ours(24) == pytest.approx((1 + math.cos(math.pi * 2 / 3)) / 2, rel=1e-12)


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="per='step': must be 'epoch' with late=True"):
        optim.schedule("cosine", total_steps=10, steps_per_epoch=5, late=True)
    with pytest.raises(ValueError, match="per='batch': must be one of 'step', 'epoch'"):
        optim.schedule("cosine", total_steps=10, steps_per_epoch=5, per="batch")
    with pytest.raises(ValueError, match=r"final=.*: must be a finite number of at least 0"):
        optim.schedule("cosine", total_steps=10, steps_per_epoch=5, final=-0.1)
