"""SC: Graf et al. count anchors without a positive."""

from __future__ import annotations

import torch

from kontrast import losses
from kontrast.methods import ViewBatch
from tests.methods.samples import batch, made


def test_an_anchor_alone_in_its_class_counts_as_zero() -> None:
    """Sum over anchors with a positive, divided by the batch size: their code's reduction."""
    method, seen = made("sc").eval(), batch("sc")
    labels = torch.tensor([0] * 5 + [1] * 6 + [2])
    views = seen.views[:, :1]
    z = method.online(views[:, 0])
    each = losses.SupConLoss(0.1, reduction="none")(z, labels)
    torch.testing.assert_close(method.step(ViewBatch(views, labels))["loss"], each.sum() / 12)
