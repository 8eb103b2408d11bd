"""ReSSL: relations to the queue, no positive."""

from __future__ import annotations

import torch

from kontrast import losses
from tests.methods.samples import batch, made


def test_loss_is_ressl() -> None:
    method, seen = made("ressl", temperature=0.2, target_temperature=0.05).eval(), batch("ressl")
    with torch.no_grad():
        target = method.pair.target(seen.views[:, 0])
    online = method.pair.online(seen.views[:, 1])
    expected = losses.ReSSLLoss(0.2, 0.05)(online, target, method.queue.read())
    torch.testing.assert_close(method.step(seen)["loss"], expected)
