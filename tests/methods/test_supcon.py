"""SupCon is its loss on all views of the batch."""

from __future__ import annotations

import torch

from kontrast import losses
from tests.methods.samples import batch, made


def test_loss_is_supcon_of_the_embedded_views() -> None:
    method, seen = made("supcon", temperature=0.2).eval(), batch("supcon")
    z = torch.stack([method.online(seen.views[:, v]) for v in range(3)], 1)
    expected = losses.SupConLoss(0.2)(z, seen.labels)
    torch.testing.assert_close(method.step(seen)["loss"], expected)


def test_batch_norm_sees_all_views_at_once() -> None:
    method, seen = made("supcon"), batch("supcon")
    z = method.online(seen.views.flatten(0, 1)).view(len(seen), 3, -1)
    torch.testing.assert_close(method.embed(seen.views), z)
