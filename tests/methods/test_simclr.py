"""SimCLR is NT-Xent of two views; the hard one both directions of the hard loss."""

from __future__ import annotations

import pytest
import torch

from kontrast import losses
from tests.methods.samples import batch, made


def test_ordinary_is_nt_xent() -> None:
    method, seen = made("simclr", temperature=0.3).eval(), batch("simclr")
    first, second = (method.online(seen.views[:, v]) for v in (0, 1))
    torch.testing.assert_close(method.step(seen)["loss"], losses.NTXentLoss(0.3)(first, second))


def test_hard_keeps_the_nearest_both_ways() -> None:
    method, seen = made("simclr", loss="hard", hard_negatives=4).eval(), batch("simclr")
    first, second = (method.online(seen.views[:, v]) for v in (0, 1))
    hard = losses.HardContrastiveLoss(0.1, 4)
    torch.testing.assert_close(method.step(seen)["loss"], (hard(first, second) + hard(second, first)) / 2)


def test_unknown_loss() -> None:
    with pytest.raises(ValueError, match="simclr has 'ordinary'"):
        made("simclr", loss="soft")
