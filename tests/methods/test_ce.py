"""CE is the cross-entropy of a linear classifier without bias."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.methods.samples import batch, made


def test_loss_is_torchs_cross_entropy() -> None:
    method, seen = made("ce").eval(), batch("ce")
    logits = method.embed(seen.views).flatten(0, 1) @ method.loss.weight.T
    torch.testing.assert_close(method.step(seen)["loss"], F.cross_entropy(logits, seen.labels.repeat_interleave(3)))


def test_accuracy_of_the_batch_is_reported() -> None:
    method, seen = made("ce").eval(), batch("ce")
    method.step(seen)
    guess = (method.embed(seen.views) @ method.loss.weight.T).argmax(2)
    expected = float((guess == seen.labels[:, None]).float().mean())
    assert abs(method.report()["batch_accuracy"] - expected) < 1e-6


def test_first_weights_are_the_seeds() -> None:
    torch.manual_seed(1)
    one = made("ce").loss.weight
    torch.manual_seed(2)
    assert torch.equal(made("ce").loss.weight, one)
