"""TCL without labels: views are positives, and two positives per anchor with three views."""

from __future__ import annotations

import torch

from kontrast import losses
from kontrast.methods import ViewBatch
from tests.methods.samples import N, batch, made


def test_labels_do_not_matter() -> None:
    method, seen = made("tcl-self").eval(), batch("tcl-self")
    bare = method.step(ViewBatch(seen.views))["loss"]
    assert torch.equal(method.step(seen)["loss"], bare)
    expected = losses.TCLLoss(0.2, 1.0, 1.5)(
        method.embed(seen.views).flatten(0, 1), torch.arange(N).repeat_interleave(3)
    )
    torch.testing.assert_close(bare, expected)
