"""CE-L2 adds λ‖W‖²."""

from __future__ import annotations

import torch

from tests.methods.samples import batch, made


def test_the_penalty_is_added_once() -> None:
    plain, penal, seen = made("ce").eval(), made("ce-l2", weight_penalty=0.1).eval(), batch("ce")
    expected = plain.step(seen)["loss"] + 0.1 * plain.loss.weight.square().sum()
    torch.testing.assert_close(penal.step(seen)["loss"], expected)
