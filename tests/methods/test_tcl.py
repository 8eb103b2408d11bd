"""TCL is its loss on the batch, and SupCon at k1 = 0, k2 = 1."""

from __future__ import annotations

import torch

from kontrast import losses
from tests.methods.samples import batch, made


def test_loss_is_tcl() -> None:
    method, seen = made("tcl", temperature=0.2, k1=7.0, k2=1.3).eval(), batch("tcl")
    expected = losses.TCLLoss(0.2, 7.0, 1.3)(method.embed(seen.views), seen.labels)
    torch.testing.assert_close(method.step(seen)["loss"], expected)


def test_supcon_is_a_special_case() -> None:
    seen = batch("tcl")
    one = made("tcl", k1=0.0, k2=1.0).eval().step(seen)["loss"]
    torch.testing.assert_close(one, made("supcon").eval().step(seen)["loss"])
